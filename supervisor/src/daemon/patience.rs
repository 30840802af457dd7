//! What dispatch waits for when nothing will tell that it may go on: tried again by itself, more and more seldom.

use std::collections::BTreeMap;
use std::time::Duration;

use kernel::{BoardName, Timestamp, Waiting, WaitingCode};

use super::TaskKey;

/// The first wait.
const FIRST: Duration = Duration::from_secs(1);
/// The longest wait.
const LONGEST: Duration = Duration::from_mins(1);

/// One reason to wait.
#[derive(Clone, Debug)]
struct Wait {
    why: String,
    /// Until when; none once that is over and a new try is due or under way.
    until: Option<Timestamp>,
    times: u32,
}

impl Wait {
    fn again(why: String, times: u32, now: Timestamp) -> Self {
        let pause = FIRST.saturating_mul(1_u32.checked_shl(times).unwrap_or(u32::MAX)).min(LONGEST);
        Wait { why, until: Some(after(now, pause)), times: times.saturating_add(1) }
    }

    /// Ends the wait if its time has come, or if the clock was set so far back that it never would.
    fn expire(&mut self, now: Timestamp) -> bool {
        let over = self.until.is_some_and(|until| until <= now || until > after(now, LONGEST));
        if over {
            self.until = None;
        }
        over
    }
}

fn after(now: Timestamp, pause: Duration) -> Timestamp {
    let pause = i64::try_from(pause.as_micros()).unwrap_or(i64::MAX);
    Timestamp::from_micros(now.as_micros().saturating_add(pause))
}

/// How much may be started now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Allowance {
    /// Whatever is admitted.
    Everything,
    /// One task, to see whether it works again.
    OneProbe,
    /// Nothing.
    Nothing,
}

/// Why nothing, or not everything, is started.
#[derive(Clone, Debug, Default)]
pub(super) struct Patience {
    /// What stops every start.
    pause: Option<Wait>,
    /// Starts in a row that the host hindered.
    shortages: u32,
    /// What stops single tasks.
    deferred: BTreeMap<TaskKey, Wait>,
}

impl Patience {
    /// The board cannot be read or written: this costs a try, so the next one is soon.
    pub(super) fn pause(&mut self, why: String, now: Timestamp) {
        self.pause = Some(Wait::again(why, 0, now));
    }

    /// The host hindered a start. This costs a run each time, so the tries become rare.
    pub(super) fn shortage(&mut self, why: String, now: Timestamp) {
        self.pause = Some(Wait::again(why, self.shortages, now));
        self.shortages = self.shortages.saturating_add(1);
    }

    /// A task could not start for a reason of its own.
    pub(super) fn defer(&mut self, key: TaskKey, why: String, now: Timestamp) {
        let times = self.deferred.get(&key).map_or(0, |wait| wait.times);
        self.deferred.insert(key, Wait::again(why, times, now));
    }

    /// A command runs: what hindered starts is over. True if something waited for that.
    pub(super) fn started(&mut self, key: &TaskKey) -> bool {
        self.deferred.remove(key);
        self.shortages = 0;
        self.pause.take().is_some()
    }

    /// Nothing is left to try.
    pub(super) fn rest(&mut self) {
        self.pause = None;
    }

    /// Forgets what single tasks waited for: the configuration is another one.
    pub(super) fn forget(&mut self) {
        self.deferred.clear();
    }

    /// Forgets what the tasks of a board waited for.
    pub(super) fn forget_board(&mut self, board: &BoardName) {
        self.deferred.retain(|key, _| &key.board != board);
    }

    /// What a task waits for by itself, if it does.
    pub(super) fn deferral(&self, key: &TaskKey) -> Option<Waiting> {
        let wait = self.deferred.get(key)?;
        let until = wait.until?;
        Some(Waiting::new(WaitingCode::Retry, format!("waits for another try: {}", wait.why)).until(until))
    }

    /// What every task waits for while nothing, or one task alone, is started.
    pub(super) fn obstacle(&self) -> Option<Waiting> {
        let pause = self.pause.as_ref()?;
        let text = format!("waits for dispatch to go on: {}", pause.why);
        let waiting = Waiting::new(WaitingCode::Host, text);
        Some(match pause.until {
            Some(until) => waiting.until(until),
            None => waiting,
        })
    }

    /// How much may be started now.
    pub(super) fn allowance(&self) -> Allowance {
        match &self.pause {
            None => Allowance::Everything,
            Some(Wait { until: None, .. }) => Allowance::OneProbe,
            Some(Wait { until: Some(_), .. }) => Allowance::Nothing,
        }
    }

    /// Whether nothing is to be tried now.
    pub(super) fn is_paused(&self) -> bool {
        matches!(self.allowance(), Allowance::Nothing)
    }

    /// A probe is under way: no second one beside it.
    pub(super) fn probing(&mut self, now: Timestamp) {
        if let Some(pause) = &mut self.pause {
            pause.until = Some(after(now, FIRST));
        }
    }

    /// Why nothing is started, where nothing is.
    pub(super) fn why(&self) -> Option<String> {
        self.pause.as_ref().map(|pause| pause.why.clone())
    }

    /// Ends the waits whose time has come. True if there was one.
    pub(super) fn expire(&mut self, now: Timestamp) -> bool {
        let waits = self.pause.iter_mut().chain(self.deferred.values_mut());
        // All of them: the first that is over is not the only one.
        waits.filter_map(|wait| wait.expire(now).then_some(())).count() > 0
    }

    /// When the next wait ends.
    pub(super) fn nearest(&self) -> Option<Timestamp> {
        self.pause.iter().chain(self.deferred.values()).filter_map(|wait| wait.until).min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_micros(seconds * 1_000_000)
    }

    fn key() -> TaskKey {
        TaskKey { board: BoardName::default(), task: "t_00000001".parse().unwrap() }
    }

    #[test]
    fn a_pause_ends_with_one_probe_and_with_everything_when_that_works() {
        let mut patience = Patience::default();
        patience.pause("disk full".to_owned(), at(0));
        assert_eq!(patience.allowance(), Allowance::Nothing);
        assert_eq!(patience.nearest(), Some(at(1)));
        let told = patience.obstacle().unwrap();
        assert_eq!((told.text.as_str(), told.until), ("waits for dispatch to go on: disk full", Some(at(1))));
        assert!(patience.expire(at(1)));
        assert_eq!(patience.allowance(), Allowance::OneProbe);
        assert_eq!(patience.nearest(), None);
        patience.probing(at(1));
        assert_eq!(patience.allowance(), Allowance::Nothing);
        assert!(patience.started(&key()));
        assert_eq!(patience.allowance(), Allowance::Everything);
    }

    #[test]
    fn shortages_in_a_row_are_probed_more_and_more_seldom() {
        let mut patience = Patience::default();
        let waits: Vec<_> = (0..8)
            .map(|_| {
                patience.shortage("no descriptors".to_owned(), at(0));
                patience.nearest().unwrap()
            })
            .collect();
        assert_eq!(waits, [1, 2, 4, 8, 16, 32, 60, 60].map(at));
        patience.started(&key());
        patience.shortage("no descriptors".to_owned(), at(0));
        assert_eq!(patience.nearest(), Some(at(1)));
    }

    #[test]
    fn a_clock_that_is_set_back_does_not_prolong_a_wait() {
        let mut patience = Patience::default();
        patience.defer(key(), "no such policy".to_owned(), at(100_000));
        assert!(patience.deferral(&key()).unwrap().text.ends_with("no such policy"));
        assert!(patience.expire(at(10)));
        assert_eq!(patience.deferral(&key()), None);
    }
}
