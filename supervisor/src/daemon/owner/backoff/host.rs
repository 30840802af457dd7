//! The breaker of the host: where too many starts in a row over all tasks die at once, nothing is started for a while, then one to try.

use std::collections::VecDeque;
use std::time::Duration;

use kernel::{BoardName, Timestamp, Waiting, WaitingCode};

use super::super::wait::{Wait, after};
use super::Backoff;
use super::kept::{self, Kept};
use crate::config::admission::DispatchConfig;
use crate::daemon::run::key::TaskKey;

/// A run that fails so soon after its command was started has died at once.
const AT_ONCE: Duration = Duration::from_secs(2);
/// After how many waits in a row the next ones are long.
const SELDOM_AFTER: u32 = 4;

/// The breaker of the host.
#[derive(Clone, Debug, Default)]
pub(super) struct HostBreaker {
    /// When starts died in a row, the oldest first; no more than open it.
    recent: VecDeque<Timestamp>,
    open: Option<Open>,
}

#[derive(Clone, Debug)]
struct Open {
    wait: Wait,
    board: BoardName,
    /// Whether that board was seen to keep it.
    is_kept: bool,
    /// Who tries it.
    probe: Option<TaskKey>,
    /// When it is closed, if the one that tries still lives.
    lives_at: Option<Timestamp>,
}

/// A run that has ended.
#[derive(Clone, Copy, Debug)]
pub(in crate::daemon) struct Died {
    /// Since when its command ran; none where it was never started.
    pub(in crate::daemon) since: Option<Timestamp>,
    pub(in crate::daemon) now: Timestamp,
}

impl Died {
    fn is_at_once(self) -> bool {
        // A clock that was set back has it die at once as well.
        self.since.is_none_or(|since| self.now < after(since, AT_ONCE))
    }
}

impl HostBreaker {
    /// What every task waits for.
    pub(super) fn refusal(&self, admitted: usize) -> Option<Waiting> {
        let open = self.open.as_ref()?;
        let release = kept::release(&open.board, &kept::host());
        let text =
            format!("waits for dispatch to go on: {}; `{release}` has it go on at once", open.wait.why);
        match open.wait.until {
            Some(until) => Some(Waiting::new(WaitingCode::Host, text).until(until)),
            None if open.probe.is_none() && admitted == 0 => None,
            None => {
                let text = format!("{text}; one task is started to try");
                Some(Waiting::new(WaitingCode::Host, text))
            }
        }
    }

    pub(super) fn begin_probe(&mut self, key: &TaskKey) {
        if let Some(open) = self.open.as_mut().filter(|open| open.wait.until.is_none()) {
            open.probe = Some(key.clone());
            open.lives_at = None;
        }
    }

    /// The start of a task has ended, whatever came of it.
    pub(super) fn tried(&mut self, key: &TaskKey) {
        if let Some(open) = self.open.as_mut().filter(|open| open.probe.as_ref() == Some(key)) {
            open.probe = None;
            open.lives_at = None;
        }
    }

    /// Has one task try at once.
    pub(super) fn try_now(&mut self) {
        if let Some(open) = &mut self.open {
            open.wait.until = None;
        }
    }

    pub(super) fn forget_board(&mut self, board: &BoardName) {
        self.open.take_if(|open| open.board == *board);
    }

    pub(super) fn learn(&mut self, board: &BoardName, (why, until): (&str, Timestamp)) {
        let open = self.open.get_or_insert_with(|| Open {
            wait: Wait::taken_over(why.to_owned(), SELDOM_AFTER, until),
            board: board.clone(),
            is_kept: true,
            probe: None,
            lives_at: None,
        });
        open.is_kept |= open.board == *board;
    }

    /// Closes it where the board that kept it keeps it no more. True if it was.
    pub(super) fn release(&mut self, board: &BoardName, is_there: bool) -> bool {
        let released = self.open.take_if(|open| open.board == *board && open.is_kept && !is_there).is_some();
        if released {
            self.recent.clear();
        }
        released
    }

    pub(super) fn nearest(&self) -> Option<Timestamp> {
        let open = self.open.as_ref()?;
        open.wait.until.into_iter().chain(open.lives_at).min()
    }
}

impl Backoff {
    /// Why nothing is started because too many starts have died at once.
    pub(in crate::daemon) fn why_host(&self) -> Option<String> {
        self.host.open.as_ref().map(|open| open.wait.why.clone())
    }

    /// The command of a task runs. One that tries the host has to live for a while.
    pub(in crate::daemon) fn lives(&mut self, key: &TaskKey, now: Timestamp) {
        if let Some(open) = self.host.open.as_mut().filter(|open| open.probe.as_ref() == Some(key)) {
            open.lives_at = Some(after(now, AT_ONCE));
        }
    }

    /// A run has failed. Opens the breaker of the host where too many have died at once. True if something may start for that: the one
    /// that tried has lived for a while.
    pub(in crate::daemon) fn died(&mut self, key: &TaskKey, died: Died, limits: &DispatchConfig) -> bool {
        let (most, window) = (limits.max_deaths, limits.death_window.duration());
        if most == 0 || !died.is_at_once() {
            return self.ended_well(key);
        }
        let now = died.now;
        let times = match &self.host.open {
            Some(open) if open.probe.as_ref() == Some(key) => open.wait.times,
            Some(_) => return false,
            None => {
                let recent = &mut self.host.recent;
                recent.push_back(now);
                recent.retain(|at| *at <= now && after(*at, window) > now);
                if recent.len() < most {
                    return false;
                }
                0
            }
        };
        let why = format!(
            "{most} runs in a row failed within {} s of their start, in {} s or less",
            AT_ONCE.as_secs(),
            window.as_secs()
        );
        // The first waits are of a minute: what broke may be mended by then.
        let wait = if times < SELDOM_AFTER {
            Wait::lasting(why, times, now, Duration::from_mins(1))
        } else {
            Wait::seldom(why, times, now)
        };
        let board = self.host.open.as_ref().map_or(&key.board, |open| &open.board).clone();
        let is_kept = self.host.open.as_ref().is_some_and(|open| open.is_kept);
        self.kept.push((board.clone(), Kept::open(kept::host(), &wait)));
        self.host.recent.clear();
        self.host.open = Some(Open { wait, board, is_kept, probe: None, lives_at: None });
        false
    }

    /// A run has ended otherwise: the host is well, if it was the one that tried. True if something waited for that.
    pub(in crate::daemon) fn ended_well(&mut self, key: &TaskKey) -> bool {
        self.host.recent.clear();
        let is_probe = self.host.open.as_ref().is_some_and(|open| open.probe.as_ref() == Some(key));
        is_probe && self.close_host()
    }

    /// Ends the waits of the host whose time has come. True if there was one.
    pub(super) fn expire_host(&mut self, now: Timestamp) -> bool {
        let Some(open) = &mut self.host.open else { return false };
        if open.lives_at.is_some_and(|at| at <= now) {
            return self.close_host();
        }
        open.wait.expire(now)
    }

    fn close_host(&mut self) -> bool {
        let closed = self.host.open.take();
        let on = |open: Open| (open.board, Kept::Closed(kept::host()));
        let was_open = closed.is_some();
        self.kept.extend(closed.map(on));
        was_open
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_micros(seconds * 1_000_000)
    }

    fn key(n: u32) -> TaskKey {
        TaskKey { board: BoardName::default(), task: format!("t_{n:08x}").parse().unwrap() }
    }

    fn limits() -> DispatchConfig {
        toml::from_str("max_deaths = 3\ndeath_window = \"10s\"").unwrap()
    }

    fn die(backoff: &mut Backoff, n: u32, seconds: i64) {
        backoff.died(&key(n), Died { since: Some(at(seconds)), now: at(seconds) }, &limits());
    }

    #[test]
    fn runs_that_die_at_once_in_a_short_time_stop_every_start_and_one_that_lives_goes_on() {
        let mut backoff = Backoff::default();
        for (n, seconds) in [(1, 0), (2, 1), (3, 20), (4, 21)] {
            die(&mut backoff, n, seconds);
        }
        assert_eq!(backoff.deaths(0), None, "they are too far apart");
        assert!(!backoff.ended_well(&key(9)));
        die(&mut backoff, 5, 21);
        die(&mut backoff, 5, 21);
        assert_eq!(backoff.deaths(0), None, "one has ended well in between");
        die(&mut backoff, 5, 22);
        let told = backoff.deaths(0).unwrap();
        assert!(
            told.text.contains("3 runs in a row failed within 2 s") && !told.text.contains("t_"),
            "workers of other tenants read it: {}",
            told.text
        );
        assert!(told.text.contains("`supervisor release --host`"), "{}", told.text);
        assert_eq!((told.until, backoff.nearest()), (Some(at(82)), Some(at(82))));
        assert!(matches!(&backoff.take_changed()[..], [(_, Kept::Open(_, _, until))] if *until == at(82)));

        assert!(backoff.expire(at(82)));
        assert_eq!((backoff.deaths(0), backoff.deaths(1).is_some()), (None, true), "one tries");
        backoff.try_environments(&key(6), []);
        assert!(backoff.deaths(0).is_some(), "and no second one");
        die(&mut backoff, 6, 83);
        assert_eq!(backoff.deaths(0).unwrap().until, Some(at(143)));
        assert!(backoff.expire(at(143)));
        backoff.try_environments(&key(7), []);
        backoff.lives(&key(7), at(144));
        assert!(!backoff.expire(at(145)) && backoff.expire(at(146)));
        assert_eq!((backoff.deaths(9), backoff.why_host()), (None, None));
        assert!(matches!(backoff.take_changed().last(), Some((_, Kept::Closed(_)))));
    }

    #[test]
    fn what_fails_after_a_while_and_what_is_switched_off_opens_nothing() {
        let mut backoff = Backoff::default();
        for n in 0..9 {
            backoff.died(&key(n), Died { since: Some(at(0)), now: at(3) }, &limits());
            let off = toml::from_str("max_deaths = 0").unwrap();
            assert!(!backoff.died(&key(n), Died { since: None, now: at(3) }, &off));
        }
        assert_eq!(backoff.deaths(0), None);
    }
}
