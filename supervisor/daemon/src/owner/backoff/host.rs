//! Breakers of the host, one for each tenant. If several runs of a tenant in a row fail immediately, its tasks wait for a
//! while. Then one of them starts as a probe, and the breaker closes if the probe stays alive.
//!
//! The failures of a tenant open its own breaker alone. If runs of several tenants fail and no run stays alive, the host is
//! the likely cause, and the breakers of all these tenants open.
//!
//! See decision 0129.

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::time::Duration;

use kernel::{BoardName, HoldOn, Tenant, Timestamp, Waiting, WaitingCode, Within};

use super::super::wait::{Wait, after};
use super::breaker_change::{self, BreakerChange};
use super::{Backoff, Broken};
use crate::run::key::TaskKey;
use setup::config::admission::DispatchConfig;

/// Time from the start of a command within which a failed run counts as an immediate death.
const AT_ONCE: Duration = Duration::from_secs(2);
/// Number of short waits in a row, after which waits are long.
const SELDOM_AFTER: u32 = 4;

/// Least number of tenants whose deaths are counted together; tasks without a tenant count as one tenant. Each tenant
/// contributes at most an equal share to the count.
const SEVERAL: usize = 3;

/// Breakers of the host by tenant, with none for the tasks without a tenant.
#[derive(Clone, Debug, Default)]
pub(super) struct HostBreakers {
    of: BTreeMap<Option<Tenant>, HostBreaker>,
    /// Latest time at which a run of any tenant was seen to live long enough or ended otherwise than by an immediate death.
    lived: Option<Timestamp>,
}

/// Breaker of one tenant.
#[derive(Clone, Debug, Default)]
struct HostBreaker {
    /// Times of immediate deaths in a row, fewer than the number that opens the breaker.
    recent: Vec<Timestamp>,
    /// Board of the last death.
    board: Option<BoardName>,
    /// Time of the last death before the breaker opened.
    opened: Option<Timestamp>,
    open: Option<Open>,
}

/// State of a breaker that is open: its wait, and the probe.
#[derive(Clone, Debug)]
struct Open {
    wait: Wait,
    /// Board that stores the breaker.
    board: BoardName,
    /// True once a read has found the breaker on that board.
    is_kept: bool,
    /// Task that was started as a probe.
    probe: Option<TaskKey>,
    /// Time at which the breaker closes if the probe is still alive.
    lives_at: Option<Timestamp>,
}

/// Parameters with which a breaker opens, for the first time or again.
struct Opening {
    why: String,
    /// Number of openings in a row before this one.
    times: u32,
    board: BoardName,
    /// True once a read has found the breaker on that board.
    is_kept: bool,
    /// Time of the failure that opens it.
    died: Timestamp,
}

/// A failed run.
#[derive(Clone, Debug)]
pub struct Died {
    pub tenant: Option<Tenant>,
    /// Time for which its command ran; none if it was never started.
    pub lived: Option<Duration>,
    /// Time of the end according to the shim. On a slow disk, the daemon learns of the end later.
    pub at: Timestamp,
}

impl Died {
    fn is_at_once(&self) -> bool {
        self.lived.is_none_or(|lived| lived < AT_ONCE)
    }
}

impl HostBreaker {
    /// Counts a death on a board. Returns true if the deaths within the window suffice to open the breaker.
    fn counts(
        &mut self,
        at: Timestamp,
        board: &BoardName,
        most: usize,
        window: Duration,
        now: Timestamp,
    ) -> bool {
        self.recent.push(at);
        self.board = Some(board.clone());
        let newest = self.recent.iter().copied().filter(|at| *at <= now).max().unwrap_or(now);
        // A time in the future was noted before the clock was set back, and is dropped.
        self.recent.retain(|at| *at <= newest && after(*at, window) > newest);
        self.recent.len() >= most
    }
}

impl HostBreakers {
    /// Returns the tenants whose breakers must open together, each with the board of its last death. These are the
    /// tenants with an immediate death in a window before `at` since which no run of any tenant has stayed alive, and with
    /// a closed breaker. Empty if the deaths are fewer than `most`, or of fewer than [`SEVERAL`] tenants.
    fn common(&self, most: usize, window: Duration, at: Timestamp) -> Vec<(Option<Tenant>, BoardName)> {
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

    /// Returns the reason why the tasks of a tenant must wait; none if one may start. `is_tried` is true if one of them is
    /// already admitted as a probe.
    pub(super) fn refusal(&self, tenant: Option<&Tenant>, is_tried: bool) -> Option<Waiting> {
        let open = self.of.get(&tenant.cloned())?.open.as_ref()?;
        let release = breaker_change::release(&open.board, &HoldOn::host(tenant));
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

    /// Records that the start of a task is over, with any result. If the task was a probe, another one may start.
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

    /// Ends the waits of all open breakers, so that one task of each tenant may start as a probe.
    pub(super) fn try_now(&mut self) {
        for open in self.of.values_mut().filter_map(|breaker| breaker.open.as_mut()) {
            open.wait.until = None;
        }
    }

    pub(super) fn forget_board(&mut self, board: &BoardName) {
        self.of.retain(|_, breaker| breaker.open.as_ref().is_none_or(|open| open.board != *board));
    }

    /// Adopts a breaker that a board stores. A breaker whose name only another release knows is ignored.
    pub(super) fn learn(
        &mut self,
        board: &BoardName,
        on: &HoldOn,
        why: &str,
        until: Timestamp,
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

    /// Closes the breakers that their board no longer stores. Returns true if there were any.
    pub(super) fn release(&mut self, board: &BoardName, is_there: impl Fn(&HoldOn) -> bool) -> bool {
        let before = self.of.len();
        self.of.retain(|tenant, breaker| {
            let is_its = |open: &Open| open.board == *board && open.is_kept;
            !breaker.open.as_ref().is_some_and(is_its) || is_there(&HoldOn::host(tenant.as_ref()))
        });
        self.of.len() < before
    }

    /// Returns the next time at which a wait ends, or a breaker closes by a probe that stays alive.
    pub(super) fn nearest(&self) -> Option<Timestamp> {
        let open = self.of.values().filter_map(|breaker| breaker.open.as_ref());
        open.flat_map(|open| open.wait.until.into_iter().chain(open.lives_at)).min()
    }

    /// Returns the open breakers, for display.
    pub(super) fn broken(&self) -> impl Iterator<Item = Broken> {
        self.of.iter().filter_map(|(tenant, breaker)| {
            let (open, on) = (breaker.open.as_ref()?, HoldOn::host(tenant.as_ref()));
            let release = Some(breaker_change::release(&open.board, &on));
            Some(Broken { what: on.to_string(), why: open.wait.why.clone(), until: open.wait.until, release })
        })
    }

    /// Closes a tenant's breaker. Returns the board that stored it.
    fn close(&mut self, tenant: Option<&Tenant>) -> Option<BoardName> {
        self.of.remove(&tenant.cloned())?.open.map(|open| open.board)
    }
}

impl Backoff {
    /// Records the start of a task, which becomes the probe if its tenant's breaker is open.
    pub fn try_host(&mut self, key: &TaskKey, tenant: Option<&Tenant>) {
        let breaker = self.host.of.get_mut(&tenant.cloned());
        let open = breaker.and_then(|breaker| breaker.open.as_mut()).filter(|open| open.wait.until.is_none());
        if let Some(open) = open {
            open.probe = Some(key.clone());
            open.lives_at = None;
        }
    }

    /// Records that the command of a task runs. If the task is a probe, its breaker closes after `AT_ONCE`.
    pub fn lives(&mut self, key: &TaskKey, now: Timestamp) {
        if let Some(open) = self.host.tried_by(key) {
            open.lives_at = Some(after(now, AT_ONCE));
        }
    }

    /// Records a failed run. Opens the breaker of its tenant after too many immediate deaths. Returns true if tasks may
    /// start now because the run was a probe that lived long enough.
    pub fn died(&mut self, key: &TaskKey, died: &Died, limits: &DispatchConfig, now: Timestamp) -> bool {
        let (most, window) = (limits.max_deaths, limits.death_window.duration());
        if most == 0 || !died.is_at_once() {
            return self.ended_well(key, died.tenant.as_ref(), died.at);
        }
        // Tenants without a recent death are forgotten, so that the number of entries is bounded by the recent runs.
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
                let (times, board, is_kept) = (open.wait.times, open.board.clone(), open.is_kept);
                let opening = Opening { why, times, board, is_kept, died: died.at };
                self.open_host(died.tenant.as_ref(), opening, now);
            }
            return false;
        }
        if breaker.counts(died.at, &key.board, most, window, now) {
            let board = key.board.clone();
            let opening = Opening { why, times: 0, board, is_kept: false, died: died.at };
            self.open_host(died.tenant.as_ref(), opening, now);
        }
        for (tenant, board) in self.host.common(most, window, died.at) {
            let why = format!(
                "{most} runs in a row, of several tenants, failed within {} s of their start, in {} s or less",
                within.0, within.1
            );
            let opening = Opening { why, times: 0, board, is_kept: false, died: died.at };
            self.open_host(tenant.as_ref(), opening, now);
        }
        false
    }

    /// Opens the breaker of a tenant, for the first time or again, and has the board store it.
    fn open_host(&mut self, tenant: Option<&Tenant>, opening: Opening, now: Timestamp) {
        let Opening { why, times, board, is_kept, died } = opening;
        // The first waits last a minute each, because the cause may have been removed by then.
        let wait = if times < SELDOM_AFTER {
            Wait::lasting(why, times, now, Duration::from_mins(1))
        } else {
            Wait::seldom(why, times, now)
        };
        self.kept.push((board.clone(), BreakerChange::open(HoldOn::host(tenant), &wait)));
        let breaker = self.host.of.entry(tenant.cloned()).or_default();
        breaker.recent.clear();
        breaker.opened = Some(died);
        breaker.open = Some(Open { wait, board, is_kept, probe: None, lives_at: None });
    }

    /// Records that a run has ended otherwise than by an immediate death. If it was the probe, the breaker closes. Returns
    /// true if a breaker was closed.
    pub(crate) fn ended_well(&mut self, key: &TaskKey, tenant: Option<&Tenant>, at: Timestamp) -> bool {
        self.host.lived = self.host.lived.max(Some(at));
        let Some(breaker) = self.host.of.get_mut(&tenant.cloned()) else { return false };
        breaker.recent.clear();
        let is_probe = breaker.open.as_ref().is_some_and(|open| open.probe.as_ref() == Some(key));
        is_probe && self.close_host(tenant)
    }

    /// Ends the waits whose time has come, and closes the breakers whose probe has stayed alive. Returns true if there were
    /// any.
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
        self.kept.extend(board.map(|board| (board, BreakerChange::Closed(HoldOn::host(tenant)))));
        was_open
    }
}
