//! The breakers of the host, one for each tenant: where too many starts of a tenant die at once, in a row, nothing of it is started for a
//! while, then one task to try. What a tenant starts opens its own alone; where the starts of several die and none lives, the host is what
//! they have in common, and those of all of them open.

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::time::Duration;

use kernel::{BoardName, HoldOn, Tenant, Timestamp, Waiting, WaitingCode, Within};

use super::super::wait::{Wait, after};
use super::kept::{self, Kept};
use super::{Backoff, Broken};
use crate::config::admission::DispatchConfig;
use crate::daemon::run::key::TaskKey;

/// A run that fails so soon after its command was started has died at once.
const AT_ONCE: Duration = Duration::from_secs(2);
/// After how many waits in a row the next ones are long.
const SELDOM_AFTER: u32 = 4;

/// From how many tenants on deaths count together, the tasks without a tenant as one. No tenant has a greater part in the count than if that many died
/// alike.
const SEVERAL: usize = 3;

/// The breakers of the host: those of the tenants, and that of the tasks without one.
#[derive(Clone, Debug, Default)]
pub(super) struct HostBreakers {
    of: BTreeMap<Option<Tenant>, HostBreaker>,
    /// When a run of whatever tenant lived or ended well at last.
    lived: Option<Timestamp>,
}

/// The breaker of one tenant.
#[derive(Clone, Debug, Default)]
struct HostBreaker {
    /// When its starts died in a row; fewer than open it.
    recent: Vec<Timestamp>,
    /// The board of the last of them.
    board: Option<BoardName>,
    /// The last death of those that opened it.
    opened: Option<Timestamp>,
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

/// A run that has failed.
#[derive(Clone, Debug)]
pub(in crate::daemon) struct Died {
    pub(in crate::daemon) tenant: Option<Tenant>,
    /// How long its command ran; none where it was never started.
    pub(in crate::daemon) lived: Option<Duration>,
    /// When it ended, by its shim: on a slow disk the daemon learns of it later.
    pub(in crate::daemon) at: Timestamp,
}

impl Died {
    fn is_at_once(&self) -> bool {
        self.lived.is_none_or(|lived| lived < AT_ONCE)
    }
}

impl HostBreaker {
    /// Takes in a death on a board. Returns whether there are as many as open it, all within a window.
    fn counts(
        &mut self,
        (at, board): (Timestamp, &BoardName),
        (most, window): (usize, Duration),
        now: Timestamp,
    ) -> bool {
        self.recent.push(at);
        self.board = Some(board.clone());
        let newest = self.recent.iter().copied().filter(|at| *at <= now).max().unwrap_or(now);
        // What ended in the future did so before the clock was set back.
        self.recent.retain(|at| *at <= newest && after(*at, window) > newest);
        self.recent.len() >= most
    }
}

impl HostBreakers {
    /// The tenants that have died at once within a window in which nobody's run has lived, with the board of each; nobody where they are too few, or
    /// where it is the doing of one or two.
    fn common(&self, (most, window): (usize, Duration), at: Timestamp) -> Vec<(Option<Tenant>, BoardName)> {
        let is_in_it =
            |death: Timestamp| after(death, window) > at && self.lived.is_none_or(|lived| lived < death);
        let share = most.div_ceil(SEVERAL);
        let deaths = self.of.iter().map(|(tenant, breaker)| {
            let recent = breaker.recent.iter().filter(|death| is_in_it(**death)).count();
            let opened = breaker.opened.filter(|death| is_in_it(*death)).map_or(0, |_| share);
            (tenant, breaker, recent.max(opened).min(share))
        });
        let deaths: Vec<_> = deaths.filter(|(_, _, count)| *count > 0).collect();
        if deaths.len() < SEVERAL || deaths.iter().map(|(_, _, count)| count).sum::<usize>() < most {
            return Vec::new();
        }
        let closed = deaths.into_iter().filter(|(_, breaker, _)| breaker.open.is_none());
        closed.filter_map(|(tenant, breaker, _)| Some((tenant.clone(), breaker.board.clone()?))).collect()
    }

    /// What every task of a tenant waits for. `is_tried` says whether one of them tries by now.
    pub(super) fn refusal(&self, tenant: Option<&Tenant>, is_tried: bool) -> Option<Waiting> {
        let open = self.of.get(&tenant.cloned())?.open.as_ref()?;
        let release = kept::release(&open.board, &HoldOn::host(tenant));
        let text = format!("waits for dispatch to resume: {}; `{release}` resumes it at once", open.wait.why);
        match open.wait.until {
            Some(until) => Some(Waiting::new(WaitingCode::Host, text).until(until)),
            None if open.probe.is_none() && !is_tried => None,
            None => {
                let text = format!("{text}; one task is started to try");
                Some(Waiting::new(WaitingCode::Host, text))
            }
        }
    }

    /// The start of a task has ended, whatever came of it.
    pub(super) fn tried(&mut self, key: &TaskKey) {
        if let Some(open) = self.tried_by(key) {
            open.probe = None;
            open.lives_at = None;
        }
    }

    fn tried_by(&mut self, key: &TaskKey) -> Option<&mut Open> {
        self.of
            .values_mut()
            .filter_map(|breaker| breaker.open.as_mut())
            .find(|open| open.probe.as_ref() == Some(key))
    }

    /// Has one task of each try at once.
    pub(super) fn try_now(&mut self) {
        for open in self.of.values_mut().filter_map(|breaker| breaker.open.as_mut()) {
            open.wait.until = None;
        }
    }

    pub(super) fn forget_board(&mut self, board: &BoardName) {
        self.of.retain(|_, breaker| breaker.open.as_ref().is_none_or(|open| open.board != *board));
    }

    /// Takes in one that a board keeps; one that another release has named is left alone.
    pub(super) fn learn(
        &mut self,
        board: &BoardName,
        on: &HoldOn,
        (why, until): (&str, Timestamp),
        now: Timestamp,
    ) {
        let Some(Within::Tenant(tenant)) = on.whose_starts() else { return };
        let open = self.of.entry(tenant).or_default().open.get_or_insert_with(|| Open {
            wait: Wait::taken_over(why.to_owned(), SELDOM_AFTER, until, now),
            board: board.clone(),
            is_kept: true,
            probe: None,
            lives_at: None,
        });
        open.is_kept |= open.board == *board;
    }

    /// Closes those that the board which kept them keeps no more. True if there was one.
    pub(super) fn release(&mut self, board: &BoardName, is_there: impl Fn(&HoldOn) -> bool) -> bool {
        let before = self.of.len();
        self.of.retain(|tenant, breaker| {
            let is_its = |open: &Open| open.board == *board && open.is_kept;
            !breaker.open.as_ref().is_some_and(is_its) || is_there(&HoldOn::host(tenant.as_ref()))
        });
        self.of.len() < before
    }

    pub(super) fn nearest(&self) -> Option<Timestamp> {
        let open = self.of.values().filter_map(|breaker| breaker.open.as_ref());
        open.flat_map(|open| open.wait.until.into_iter().chain(open.lives_at)).min()
    }

    /// Those that are open, for a person.
    pub(super) fn broken(&self) -> impl Iterator<Item = Broken> {
        self.of.iter().filter_map(|(tenant, breaker)| {
            let (open, on) = (breaker.open.as_ref()?, HoldOn::host(tenant.as_ref()));
            let release = Some(kept::release(&open.board, &on));
            Some(Broken { what: on.to_string(), why: open.wait.why.clone(), until: open.wait.until, release })
        })
    }

    /// Closes that of a tenant. Returns the board that kept it.
    fn close(&mut self, tenant: Option<&Tenant>) -> Option<BoardName> {
        self.of.remove(&tenant.cloned())?.open.map(|open| open.board)
    }
}

impl Backoff {
    /// A task is started. It tries the breaker of its tenant where that is open.
    pub(in crate::daemon) fn try_host(&mut self, key: &TaskKey, tenant: Option<&Tenant>) {
        let breaker = self.host.of.get_mut(&tenant.cloned());
        let open = breaker.and_then(|breaker| breaker.open.as_mut()).filter(|open| open.wait.until.is_none());
        if let Some(open) = open {
            open.probe = Some(key.clone());
            open.lives_at = None;
        }
    }

    /// The command of a task runs. One that tries a breaker has to live for a while.
    pub(in crate::daemon) fn lives(&mut self, key: &TaskKey, now: Timestamp) {
        if let Some(open) = self.host.tried_by(key) {
            open.lives_at = Some(after(now, AT_ONCE));
        }
    }

    /// A run has failed. Opens the breaker of its tenant where too many have died at once. True if something may start for that: the one
    /// that tried has lived for a while.
    pub(in crate::daemon) fn died(
        &mut self,
        key: &TaskKey,
        died: &Died,
        limits: &DispatchConfig,
        now: Timestamp,
    ) -> bool {
        let (most, window) = (limits.max_deaths, limits.death_window.duration());
        if most == 0 || !died.is_at_once() {
            return self.ended_well(key, died.tenant.as_ref(), died.at);
        }
        // Tenants whose last death is long ago are forgotten, so that their number is bounded by what has just run.
        self.host.of.retain(|tenant, breaker| {
            let is_recent = breaker.recent.iter().any(|at| after(*at, window) > died.at);
            *tenant == died.tenant || breaker.open.is_some() || is_recent
        });
        let breaker = self.host.of.entry(died.tenant.clone()).or_default();
        let within = (AT_ONCE.as_secs(), window.as_secs());
        let why = format!(
            "{most} runs in a row failed within {} s of their start, in {} s or less",
            within.0, within.1
        );
        if let Some(open) = &breaker.open {
            if open.probe.as_ref() == Some(key) {
                let again = (open.wait.times, open.board.clone(), open.is_kept);
                self.open_host(died.tenant.as_ref(), why, again, (died.at, now));
            }
            return false;
        }
        if breaker.counts((died.at, &key.board), (most, window), now) {
            self.open_host(died.tenant.as_ref(), why, (0, key.board.clone(), false), (died.at, now));
        }
        for (tenant, board) in self.host.common((most, window), died.at) {
            let why = format!(
                "{most} runs in a row, of several tenants, failed within {} s of their start, in {} s or less",
                within.0, within.1
            );
            self.open_host(tenant.as_ref(), why, (0, board, false), (died.at, now));
        }
        false
    }

    /// Opens the breaker of a tenant, kept by a board, for the first time or once more.
    fn open_host(
        &mut self,
        tenant: Option<&Tenant>,
        why: String,
        (times, board, is_kept): (u32, BoardName, bool),
        (died, now): (Timestamp, Timestamp),
    ) {
        // The first waits are of a minute: what broke may be mended by then.
        let wait = if times < SELDOM_AFTER {
            Wait::lasting(why, times, now, Duration::from_mins(1))
        } else {
            Wait::seldom(why, times, now)
        };
        self.kept.push((board.clone(), Kept::open(HoldOn::host(tenant), &wait)));
        let breaker = self.host.of.entry(tenant.cloned()).or_default();
        breaker.recent.clear();
        breaker.opened = Some(died);
        breaker.open = Some(Open { wait, board, is_kept, probe: None, lives_at: None });
    }

    /// A run has ended otherwise: its tenant's starts work, if it was the one that tried. True if something waited for that.
    pub(in crate::daemon) fn ended_well(
        &mut self,
        key: &TaskKey,
        tenant: Option<&Tenant>,
        at: Timestamp,
    ) -> bool {
        self.host.lived = self.host.lived.max(Some(at));
        let Some(breaker) = self.host.of.get_mut(&tenant.cloned()) else { return false };
        breaker.recent.clear();
        let is_probe = breaker.open.as_ref().is_some_and(|open| open.probe.as_ref() == Some(key));
        is_probe && self.close_host(tenant)
    }

    /// Ends the waits whose time has come. True if there was one.
    pub(super) fn expire_host(&mut self, now: Timestamp) -> bool {
        let lives = |breaker: &HostBreaker| {
            breaker.open.as_ref().is_some_and(|open| open.lives_at.is_some_and(|at| at <= now))
        };
        let works: Vec<Option<Tenant>> = self
            .host
            .of
            .iter()
            .filter(|(_, breaker)| lives(breaker))
            .map(|(tenant, _)| tenant.clone())
            .collect();
        if !works.is_empty() {
            self.host.lived = self.host.lived.max(Some(now));
        }
        let closed = works.iter().filter(|tenant| self.close_host(tenant.as_ref())).count();
        let open = self.host.of.values_mut().filter_map(|breaker| breaker.open.as_mut());
        let over = open.filter_map(|open| open.wait.expire(now).then_some(())).count();
        closed + over > 0
    }

    fn close_host(&mut self, tenant: Option<&Tenant>) -> bool {
        let board = self.host.close(tenant);
        let was_open = board.is_some();
        self.kept.extend(board.map(|board| (board, Kept::Closed(HoldOn::host(tenant)))));
        was_open
    }
}
