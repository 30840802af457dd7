//! What dispatch waits for when nothing will tell that it may go on: it tries again, at growing intervals.
//!
//! Four things can stop starts: the host or the board (everything waits), an environment (what needs it waits, see
//! [`Environment`]), starts of a tenant that have died at once (its tasks wait), and a task alone. Each of the first three is tried by one
//! start at a time, its probe.

mod host;
mod kept;
#[cfg(test)]
mod testing;

use std::collections::{BTreeMap, BTreeSet};

use kernel::{BoardName, Tenant, Timestamp, Waiting, WaitingCode};

pub(in crate::daemon) use self::host::Died;
use self::host::HostBreakers;
pub(in crate::daemon) use self::kept::Kept;
use super::wait::{FIRST, Wait, after};
use crate::daemon::run::attempt::Charge;
use crate::daemon::run::environment::Environment;
use crate::daemon::run::key::TaskKey;

/// The failures in a row after which the breaker of an environment is open: its board keeps it, also for the next daemon, and it is tried
/// seldom.
const OPEN: u32 = 5;
/// The most suspects that are remembered. A forgotten one trips its environment again, and is suspected again.
const SUSPECTS: usize = 4096;

/// An environment that has failed to start a worker.
#[derive(Clone, Debug)]
struct Breaker {
    wait: Wait,
    /// The board that keeps it while it is open: that of the task whose start failed first.
    board: BoardName,
    /// Whether that board was seen to have it. A person who releases it there closes it.
    is_kept: bool,
    /// Whose start failed last; none where an earlier daemon has seen it.
    by: Option<TaskKey>,
    /// Whose start tries it.
    probe: Option<TaskKey>,
}

impl Breaker {
    fn is_open(&self) -> bool {
        self.wait.times >= OPEN
    }

    /// The command that has it tried at once, where it is open.
    fn release(&self, environment: &Environment) -> Option<String> {
        self.is_open().then(|| kept::release(&self.board, &environment.hold()))
    }
}

/// How much may be started now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::daemon) enum Allowance {
    /// Whatever is admitted.
    Everything,
    /// One task, to see whether it works again.
    OneProbe,
    Nothing,
}

/// An environment that is broken, for a person.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
pub(crate) struct Broken {
    pub(crate) what: String,
    /// What it said when it was last tried.
    pub(crate) why: String,
    /// When it is tried again; none while it is tried.
    pub(crate) until: Option<Timestamp>,
    /// The command that has it tried at once, where its breaker is open.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) release: Option<String>,
}

/// Why nothing, or not everything, is started.
#[derive(Clone, Debug)]
pub(in crate::daemon) struct Backoff {
    /// A number from 0 to 1 at random.
    chance: fn() -> f64,
    /// What stops every start.
    pause: Option<Wait>,
    /// Whether one task tries what the pause is about.
    is_probed: bool,
    /// Shortages of the host in a row. What fails of one at the same moment is one.
    shortages: u32,
    /// What stops the tasks that need it.
    broken: BTreeMap<Environment, Breaker>,
    /// Tasks that failed in an environment which worked for another one after that.
    suspects: BTreeSet<TaskKey>,
    /// What stops single tasks.
    deferred: BTreeMap<TaskKey, Wait>,
    /// What stops the starts of a tenant because too many have died at once.
    host: HostBreakers,
    /// Breakers that boards are to keep, or to keep no more.
    kept: Vec<(BoardName, Kept)>,
}

impl Default for Backoff {
    fn default() -> Self {
        Backoff {
            chance: rand::random,
            pause: None,
            is_probed: false,
            shortages: 0,
            broken: BTreeMap::new(),
            suspects: BTreeSet::new(),
            deferred: BTreeMap::new(),
            host: HostBreakers::default(),
            kept: Vec::new(),
        }
    }
}

#[cfg(test)]
impl Backoff {
    /// The same with its numbers from elsewhere.
    pub(in crate::daemon) fn drawing(self, chance: fn() -> f64) -> Self {
        Backoff { chance, ..self }
    }
}

impl Backoff {
    fn wait(&self, why: String, times: u32, now: Timestamp) -> Wait {
        Wait::again(why, times, now, (self.chance)())
    }

    /// The board cannot be read or written: this costs a try, so the next one is soon.
    pub(in crate::daemon) fn pause(&mut self, why: String, now: Timestamp) {
        self.pause = Some(self.wait(why, 0, now));
        self.is_probed = false;
    }

    /// The host lacked something for a start. This costs a run each time, so the tries become rare.
    pub(in crate::daemon) fn shortage(&mut self, why: String, now: Timestamp) {
        // What had begun before the pause has met what the pause is about.
        if self.is_paused() && !self.is_probed {
            return;
        }
        self.is_probed = false;
        self.pause = Some(self.wait(why, self.shortages, now));
        self.shortages = self.shortages.saturating_add(1);
    }

    /// A task could not start for a reason of its own.
    pub(in crate::daemon) fn defer(&mut self, key: TaskKey, why: String, now: Timestamp) {
        let times = self.deferred.get(&key).map_or(0, |wait| wait.times);
        self.deferred.insert(key, self.wait(why, times, now));
    }

    /// A start failed because of an environment.
    pub(in crate::daemon) fn trip(
        &mut self,
        environment: Environment,
        by: TaskKey,
        why: String,
        now: Timestamp,
    ) {
        let before = self.broken.get(&environment);
        let times = before.map_or(0, |breaker| breaker.wait.times);
        let (board, is_kept) =
            before.map_or((by.board.clone(), false), |before| (before.board.clone(), before.is_kept));
        let wait = if times.saturating_add(1) < OPEN {
            self.wait(why, times, now)
        } else {
            let wait = Wait::seldom(why, times, now);
            self.kept.push((board.clone(), Kept::open(environment.hold(), &wait)));
            wait
        };
        self.broken.insert(environment, Breaker { wait, board, is_kept, by: Some(by), probe: None });
    }

    /// A command runs since `begun`: whatever had kept its start, and those of its environment, from working before is over. True if
    /// something waited for that.
    pub(in crate::daemon) fn started<'a>(
        &mut self,
        key: &TaskKey,
        needs: impl IntoIterator<Item = &'a Environment>,
        begun: Timestamp,
        now: Timestamp,
    ) -> bool {
        self.deferred.remove(key);
        self.suspects.remove(key);
        let is_mended = |wait: &Wait| wait.is_older_than(begun, now);
        let mut freed = self.pause.take_if(|pause| is_mended(pause)).is_some();
        if self.pause.is_none() {
            self.shortages = 0;
        }
        for environment in needs {
            let is_over = |breaker: &Breaker| breaker.probe.as_ref() == Some(key) || is_mended(&breaker.wait);
            if self.broken.get(environment).is_some_and(is_over)
                && let Some(breaker) = self.broken.remove(environment)
            {
                freed = true;
                if breaker.is_open() {
                    self.kept.push((breaker.board, Kept::Closed(environment.hold())));
                }
                if let Some(by) = breaker.by.filter(|by| by != key) {
                    if self.suspects.len() == SUSPECTS {
                        self.suspects.clear();
                    }
                    self.suspects.insert(by);
                }
            }
        }
        freed
    }

    /// A start has ended in whatever way: it tries no environment any more.
    pub(in crate::daemon) fn tried(&mut self, key: &TaskKey) {
        for breaker in self.broken.values_mut().filter(|breaker| breaker.probe.as_ref() == Some(key)) {
            breaker.probe = None;
        }
        self.host.tried(key);
    }

    /// To whom a failure of an environment is charged, if a task is started now.
    pub(in crate::daemon) fn charge(&self, key: &TaskKey) -> Charge {
        if self.suspects.contains(key) { Charge::Task } else { Charge::Environment }
    }

    /// Nothing is left to try.
    pub(in crate::daemon) fn rest(&mut self) {
        self.pause = None;
    }

    /// Forgets what single tasks and environments waited for: the configuration is another one. What is open stays so, and is tried
    /// at once.
    pub(in crate::daemon) fn forget(&mut self) {
        self.deferred.clear();
        self.suspects.clear();
        self.broken.retain(|_, breaker| breaker.is_open());
        for breaker in self.broken.values_mut() {
            breaker.wait.until = None;
        }
        self.host.try_now();
    }

    /// Forgets what the tasks of a board waited for.
    pub(in crate::daemon) fn forget_board(&mut self, board: &BoardName) {
        self.deferred.retain(|key, _| &key.board != board);
        self.suspects.retain(|key| &key.board != board);
        self.broken.retain(|_, breaker| &breaker.board != board);
        self.host.forget_board(board);
    }

    /// What a task waits for by itself, if it does.
    pub(in crate::daemon) fn deferral(&self, key: &TaskKey) -> Option<Waiting> {
        let wait = self.deferred.get(key)?;
        let until = wait.until?;
        Some(Waiting::new(WaitingCode::Retry, format!("waits for another try: {}", wait.why)).until(until))
    }

    /// What a task waits for because something that it needs is broken. `probed` is what others try by now.
    ///
    /// After the first failure another task may try at once: it tells a broken environment from a broken task.
    pub(in crate::daemon) fn breakage<'a>(
        &self,
        key: &TaskKey,
        needs: impl IntoIterator<Item = &'a Environment>,
        probed: &BTreeSet<Environment>,
    ) -> Option<Waiting> {
        needs.into_iter().find_map(|environment| {
            let breaker = self.broken.get(environment)?;
            let text = format!("waits for {environment} to work again ({})", breaker.wait.why);
            let text = match breaker.release(environment) {
                Some(release) => format!("{text}; `{release}` has it tried at once"),
                None => text,
            };
            let broken = |text: String| Waiting::broken(text, environment.brief(), &breaker.wait.why);
            if breaker.probe.is_some() || probed.contains(environment) {
                return Some(broken(format!("{text}; another task is trying it")));
            }
            let until = breaker.wait.until?;
            let is_second_look = breaker.wait.times == 1 && breaker.by.as_ref() != Some(key);
            (!is_second_look).then(|| broken(text).until(until))
        })
    }

    /// Those of some environments that are broken.
    pub(in crate::daemon) fn broken_of<'a>(
        &self,
        needs: impl IntoIterator<Item = &'a Environment>,
    ) -> impl Iterator<Item = Environment> {
        needs.into_iter().filter(|environment| self.broken.contains_key(environment)).cloned()
    }

    /// A task that needs them is started: it tries what is broken of them.
    pub(in crate::daemon) fn try_environments<'a>(
        &mut self,
        key: &TaskKey,
        needs: impl IntoIterator<Item = &'a Environment>,
    ) {
        for environment in needs {
            if let Some(breaker) = self.broken.get_mut(environment) {
                breaker.probe = Some(key.clone());
            }
        }
    }

    pub(in crate::daemon) fn broken(&self) -> Vec<Broken> {
        let told = |(environment, breaker): (&Environment, &Breaker)| Broken {
            what: environment.to_string(),
            why: breaker.wait.why.clone(),
            until: breaker.wait.until,
            release: breaker.release(environment),
        };
        self.broken.iter().map(told).chain(self.host.broken()).collect()
    }

    /// What every task waits for while nothing, or one task alone, is started.
    pub(in crate::daemon) fn obstacle(&self) -> Option<Waiting> {
        let pause = self.pause.as_ref()?;
        let text = format!("waits for dispatch to resume: {}", pause.why);
        let waiting = Waiting::new(WaitingCode::Host, text);
        Some(match pause.until {
            Some(until) => waiting.until(until),
            None => waiting,
        })
    }

    /// How much may be started now.
    pub(in crate::daemon) fn allowance(&self) -> Allowance {
        match &self.pause {
            None => Allowance::Everything,
            Some(Wait { until: None, .. }) => Allowance::OneProbe,
            Some(Wait { until: Some(_), .. }) => Allowance::Nothing,
        }
    }

    /// Whether nothing is to be tried now.
    pub(in crate::daemon) fn is_paused(&self) -> bool {
        matches!(self.allowance(), Allowance::Nothing)
    }

    /// A probe is under way: no second one beside it.
    pub(in crate::daemon) fn probing(&mut self, now: Timestamp) {
        if let Some(pause) = &mut self.pause {
            pause.until = Some(after(now, FIRST));
            self.is_probed = true;
        }
    }

    /// Why nothing is started for now, where nothing is.
    pub(in crate::daemon) fn why(&self) -> Option<String> {
        self.pause.as_ref().map(|pause| pause.why.clone())
    }

    /// What every task of a tenant waits for because too many starts of it have died at once; none where one may start to try. One is enough,
    /// so that none may where `is_tried` says that one is admitted.
    pub(in crate::daemon) fn deaths(&self, tenant: Option<&Tenant>, is_tried: bool) -> Option<Waiting> {
        self.host.refusal(tenant, is_tried)
    }

    /// Ends the waits whose time has come. True if there was one.
    pub(in crate::daemon) fn expire(&mut self, now: Timestamp) -> bool {
        let breakers = self.broken.values_mut().map(|breaker| &mut breaker.wait);
        let waits = self.pause.iter_mut().chain(self.deferred.values_mut()).chain(breakers);
        // All of them: the first that is over is not the only one.
        let over = waits.filter_map(|wait| wait.expire(now).then_some(())).count() > 0;
        self.expire_host(now) || over
    }

    /// When the next wait ends.
    pub(in crate::daemon) fn nearest(&self) -> Option<Timestamp> {
        let breakers = self.broken.values().map(|breaker| &breaker.wait);
        let waits = self.pause.iter().chain(self.deferred.values()).chain(breakers);
        waits.filter_map(|wait| wait.until).chain(self.host.nearest()).min()
    }
}

#[cfg(test)]
#[path = "backoff_tests.rs"]
mod tests;
