//! Decides when starts are tried again after failures whose end no event announces, at growing intervals.
//!
//! Four kinds of failure stop starts. After a failure of the host or the board, all tasks wait. After a failure of an
//! environment, the tasks that need it wait (see [`Environment`]). After several immediate deaths of a tenant's runs, the
//! tasks of this tenant wait. After a failure of a single task, this task waits. The first three are tested by one start at
//! a time, the probe.
//!
//! See decision 0129.

mod breaker_change;
mod host;
#[cfg(test)]
mod testing;

use std::collections::{BTreeMap, BTreeSet};

use kernel::{
    BoardName, Clock as _, Finding, FindingCode, Remedy, SystemClock, Tenant, Timestamp, Waiting, WaitingCode,
};

pub(crate) use self::breaker_change::BreakerChange;
pub(crate) use self::host::Died;
use self::host::HostBreakers;
use super::wait::{FIRST, Wait, after};
use crate::run::attempt::Charge;
use crate::run::environment::Environment;
use crate::run::key::TaskKey;
use base::time::timestamp;

/// Number of failures in a row that open the breaker of an environment. A board then stores the breaker for later daemons,
/// and probes are rare.
const OPEN: u32 = 5;
/// Limit on the remembered suspects. A forgotten suspect trips its environment again, and becomes a suspect again.
const SUSPECTS: usize = 4096;

/// State of an environment that has failed to start a worker.
#[derive(Clone, Debug)]
struct Breaker {
    wait: Wait,
    /// Board of the task whose start failed first, which stores the breaker while it is open.
    board: BoardName,
    /// True once a read has found the breaker on that board. If a later read does not find it, a person has released it.
    is_kept: bool,
    /// Task whose start failed last; none if an earlier daemon saw that failure.
    by: Option<TaskKey>,
    /// Task whose start is the probe.
    probe: Option<TaskKey>,
}

impl Breaker {
    fn is_open(&self) -> bool {
        self.wait.times >= OPEN
    }

    /// Returns the command that triggers a probe at once, if the breaker is open.
    fn release(&self, environment: &Environment) -> Option<String> {
        self.is_open().then(|| breaker_change::release(&self.board, &environment.hold()))
    }
}

/// Number of tasks that may start now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Allowance {
    /// All admitted tasks.
    Everything,
    /// A single task, as a probe.
    OneProbe,
    /// No task.
    Nothing,
}

/// A broken environment, for display.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
pub struct Broken {
    pub what: String,
    /// Error of the last try.
    pub why: String,
    /// Time of the next try; none during a probe.
    pub until: Option<Timestamp>,
    /// Command that triggers a probe at once, if the breaker is open.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub release: Option<String>,
}

impl Broken {
    /// Returns the finding about it: an open breaker, or an environment that is tried again soon.
    pub(super) fn finding(&self) -> Finding {
        let finding = match &self.release {
            Some(release) => {
                let arguments = release.strip_prefix("supervisor ").unwrap_or(release);
                let again = Remedy::command("have it tried at once", arguments);
                Finding::error(FindingCode::BreakerOpen, "it does not work").remedy(again.suggested())
            }
            None => Finding::error(FindingCode::EnvironmentBroken, "it does not work"),
        };
        let again =
            self.until.map(|at| format!(" (tried again at {})", timestamp::soon(at, SystemClock.now())));
        finding.about(self.what.clone()).detail(format!("{}{}", self.why, again.unwrap_or_default()))
    }
}

/// Failures that stop all or some starts.
#[derive(Clone, Debug)]
pub struct Backoff {
    /// Source of random numbers from 0 to 1.
    chance: fn() -> f64,
    /// Wait of all starts.
    pause: Option<Wait>,
    /// True while a task is the probe of that wait.
    is_probed: bool,
    /// Number of shortages of the host in a row. Failures at the same moment count once.
    shortages: u32,
    /// Broken environments, whose tasks wait.
    broken: BTreeMap<Environment, Breaker>,
    /// Tasks whose start failed because of an environment that then worked for another task, so that the task itself may be
    /// at fault.
    suspected_tasks: BTreeSet<TaskKey>,
    /// Waits of single tasks.
    deferred: BTreeMap<TaskKey, Wait>,
    /// Breakers of tenants with several immediate deaths.
    host: HostBreakers,
    /// Breakers for boards to store or to remove; the dispatcher takes them.
    kept: Vec<(BoardName, BreakerChange)>,
}

impl Default for Backoff {
    fn default() -> Self {
        Backoff {
            chance: rand::random,
            pause: None,
            is_probed: false,
            shortages: 0,
            broken: BTreeMap::new(),
            suspected_tasks: BTreeSet::new(),
            deferred: BTreeMap::new(),
            host: HostBreakers::default(),
            kept: Vec::new(),
        }
    }
}

#[cfg(test)]
impl Backoff {
    /// Replaces the source of random numbers.
    pub fn drawing(self, chance: fn() -> f64) -> Self {
        Backoff { chance, ..self }
    }
}

impl Backoff {
    fn wait(&self, why: String, times: u32, now: Timestamp) -> Wait {
        Wait::again(why, times, now, (self.chance)())
    }

    /// Records that a board cannot be read or written. Another try costs little, so it comes soon.
    pub fn pause(&mut self, why: String, now: Timestamp) {
        self.pause = Some(self.wait(why, 0, now));
        self.is_probed = false;
    }

    /// Records that the host lacked a resource for a start. Each try costs a run, so the intervals between tries grow.
    pub fn shortage(&mut self, why: String, now: Timestamp) {
        // A start that began before the pause reports the same shortage again.
        if self.is_paused() && !self.is_probed {
            return;
        }
        self.is_probed = false;
        self.pause = Some(self.wait(why, self.shortages, now));
        self.shortages = self.shortages.saturating_add(1);
    }

    /// Records that a task could not start for a reason of its own.
    pub(crate) fn defer(&mut self, key: TaskKey, why: String, now: Timestamp) {
        let times = self.deferred.get(&key).map_or(0, |wait| wait.times);
        self.deferred.insert(key, self.wait(why, times, now));
    }

    /// Records that a start failed because of an environment.
    pub(crate) fn trip(&mut self, environment: Environment, by: TaskKey, why: String, now: Timestamp) {
        let before = self.broken.get(&environment);
        let times = before.map_or(0, |breaker| breaker.wait.times);
        let (board, is_kept) =
            before.map_or((by.board.clone(), false), |before| (before.board.clone(), before.is_kept));
        let wait = if times.saturating_add(1) < OPEN {
            self.wait(why, times, now)
        } else {
            let wait = Wait::seldom(why, times, now);
            self.kept.push((board.clone(), BreakerChange::open(environment.hold(), &wait)));
            wait
        };
        self.broken.insert(environment, Breaker { wait, board, is_kept, by: Some(by), probe: None });
    }

    /// Records that the command of a task runs since `begun`, which ends the waits for earlier failures of the host, of this
    /// task and of its environments. Returns true if a wait that other tasks share was ended.
    pub fn started<'a>(
        &mut self,
        key: &TaskKey,
        needs: impl IntoIterator<Item = &'a Environment>,
        started_at: Timestamp,
        now: Timestamp,
    ) -> bool {
        self.deferred.remove(key);
        self.suspected_tasks.remove(key);
        let is_mended = |wait: &Wait| wait.is_older_than(started_at, now);
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
                    self.kept.push((breaker.board, BreakerChange::Closed(environment.hold())));
                }
                // The environment works for this task, so the task that failed in it last may be at fault itself.
                if let Some(by) = breaker.by.filter(|by| by != key) {
                    if self.suspected_tasks.len() == SUSPECTS {
                        self.suspected_tasks.clear();
                    }
                    self.suspected_tasks.insert(by);
                }
            }
        }
        freed
    }

    /// Records that a start is over, with any result, so that it is no longer a probe.
    pub fn tried(&mut self, key: &TaskKey) {
        for breaker in self.broken.values_mut().filter(|breaker| breaker.probe.as_ref() == Some(key)) {
            breaker.probe = None;
        }
        self.host.tried(key);
    }

    /// Returns the party to charge if an environment fails in a start of this task: a suspect is charged itself.
    pub fn charge(&self, key: &TaskKey) -> Charge {
        if self.suspected_tasks.contains(key) { Charge::Task } else { Charge::Environment }
    }

    /// Ends the pause, because no task is left as a probe.
    pub fn rest(&mut self) {
        self.pause = None;
    }

    /// Forgets the waits of single tasks and environments after a change of the configuration. Open breakers stay, and
    /// are probed at once.
    pub fn forget(&mut self) {
        self.deferred.clear();
        self.suspected_tasks.clear();
        self.broken.retain(|_, breaker| breaker.is_open());
        for breaker in self.broken.values_mut() {
            breaker.wait.until = None;
        }
        self.host.try_now();
    }

    /// Forgets the waits of a board's tasks.
    pub(crate) fn forget_board(&mut self, board: &BoardName) {
        self.deferred.retain(|key, _| &key.board != board);
        self.suspected_tasks.retain(|key| &key.board != board);
        self.broken.retain(|_, breaker| &breaker.board != board);
        self.host.forget_board(board);
    }

    /// Returns the wait of a task for its own failure; none if it need not wait.
    pub(crate) fn deferral(&self, key: &TaskKey) -> Option<Waiting> {
        let wait = self.deferred.get(key)?;
        let until = wait.until?;
        Some(Waiting::new(WaitingCode::Retry, format!("waits for another try: {}", wait.why)).until(until))
    }

    /// Returns the wait of a task for a broken environment that it needs. `probed` are the environments with a probe in
    /// progress.
    ///
    /// After the first failure another task may start at once. Its result shows whether the environment or the first task is
    /// broken.
    pub(crate) fn breakage<'a>(
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

    /// Returns the broken environments among the given ones.
    pub(crate) fn broken_of<'a>(
        &self,
        needs: impl IntoIterator<Item = &'a Environment>,
    ) -> impl Iterator<Item = Environment> {
        needs.into_iter().filter(|environment| self.broken.contains_key(environment)).cloned()
    }

    /// Makes a starting task the probe of its broken environments.
    pub(crate) fn try_environments<'a>(
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

    pub fn broken(&self) -> Vec<Broken> {
        let to_broken = |(environment, breaker): (&Environment, &Breaker)| Broken {
            what: environment.to_string(),
            why: breaker.wait.why.clone(),
            until: breaker.wait.until,
            release: breaker.release(environment),
        };
        self.broken.iter().map(to_broken).chain(self.host.broken()).collect()
    }

    /// Returns the wait of all tasks during a pause or a probe.
    pub fn obstacle(&self) -> Option<Waiting> {
        let pause = self.pause.as_ref()?;
        let text = format!("waits for dispatch to resume: {}", pause.why);
        let waiting = Waiting::new(WaitingCode::Host, text);
        Some(match pause.until {
            Some(until) => waiting.until(until),
            None => waiting,
        })
    }

    /// Returns the number of tasks that may start now.
    pub(crate) fn allowance(&self) -> Allowance {
        match &self.pause {
            None => Allowance::Everything,
            Some(Wait { until: None, .. }) => Allowance::OneProbe,
            Some(Wait { until: Some(_), .. }) => Allowance::Nothing,
        }
    }

    /// Returns true if no task may start now.
    pub(crate) fn is_paused(&self) -> bool {
        matches!(self.allowance(), Allowance::Nothing)
    }

    /// Records that a probe starts, so that no second one starts beside it.
    pub(crate) fn probing(&mut self, now: Timestamp) {
        if let Some(pause) = &mut self.pause {
            pause.until = Some(after(now, FIRST));
            self.is_probed = true;
        }
    }

    /// Returns the reason for a pause.
    pub fn why(&self) -> Option<String> {
        self.pause.as_ref().map(|pause| pause.why.clone())
    }

    /// Returns the wait of a tenant's tasks because several of its runs died immediately; none if a task may start. If
    /// `is_tried` is true, a probe has been admitted already and no other may start.
    pub(crate) fn deaths(&self, tenant: Option<&Tenant>, is_tried: bool) -> Option<Waiting> {
        self.host.refusal(tenant, is_tried)
    }

    /// Ends the waits whose time has come. Returns true if there were any.
    pub fn expire(&mut self, now: Timestamp) -> bool {
        let breakers = self.broken.values_mut().map(|breaker| &mut breaker.wait);
        let waits = self.pause.iter_mut().chain(self.deferred.values_mut()).chain(breakers);
        // `count` ends all of these waits; `any` would stop at the first.
        let over = waits.filter_map(|wait| wait.expire(now).then_some(())).count() > 0;
        self.expire_host(now) || over
    }

    /// Returns the end of the next wait.
    pub fn nearest(&self) -> Option<Timestamp> {
        let breakers = self.broken.values().map(|breaker| &breaker.wait);
        let waits = self.pause.iter().chain(self.deferred.values()).chain(breakers);
        waits.filter_map(|wait| wait.until).chain(self.host.nearest()).min()
    }
}

#[cfg(test)]
#[path = "backoff_tests.rs"]
mod tests;
