//! Enforces budgets: a run's own, and today's of its tenant and its account.
//!
//! The board knows the use that is recorded. Use since the last query is added here, for all runs of a payer
//! together, so that concurrent requests do not overdraw a budget.
//!
//! See decision 0116.

use std::collections::HashMap;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use kernel::{
    Amount, Balance, BoardId, Budgets, Consumed, DayUse, Payer, SharedQuotas, SpentBudget, Timestamp,
};
use tokio::time::Instant;

use super::tally::{Line, Tally};

/// Age up to which the board's figures may be used for a decision.
const FRESH: Duration = Duration::from_secs(1);

/// Reason why a request is not admitted.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum NotTaken {
    Spent(SpentBudget),
    /// The use by the run and its payers could never be read. Another try may succeed after [`FRESH`].
    Unknown,
}

/// Queries the board for the use by a run and its payers. Blocking.
pub(super) type Ask = Arc<dyn Fn() -> io::Result<Balance> + Send + Sync>;

/// Today's use by all runs of a payer.
#[derive(Debug)]
pub(super) struct Purse(Mutex<DayUse>);

/// Purses of the payers that have a run with a proxy.
#[derive(Debug, Default)]
pub(super) struct Purses(Mutex<HashMap<(BoardId, Payer), Weak<Purse>>>);

impl Purses {
    fn of(&self, board: BoardId, day: &DayUse) -> Arc<Purse> {
        let mut purses = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        purses.retain(|_, purse| purse.strong_count() > 0);
        let key = (board, day.payer.clone());
        purses.get(&key).and_then(Weak::upgrade).unwrap_or_else(|| {
            let purse = Arc::new(Purse(Mutex::new(day.clone())));
            purses.insert(key, Arc::downgrade(&purse));
            purse
        })
    }
}

impl Purse {
    fn used(&self) -> MutexGuard<'_, DayUse> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Merges the board's figures. Use since the query is not in them, so they may only raise the known use of the
    /// same day.
    fn learn(&self, day: &DayUse) {
        let mut used = self.used();
        let consumed = if used.day == day.day { used.consumed.max(day.consumed) } else { day.consumed };
        *used = DayUse { consumed, ..day.clone() };
    }
}

/// Budget meter of one run.
pub(super) struct Meter {
    board: BoardId,
    tally: Arc<Tally>,
    quotas: SharedQuotas,
    purses: Arc<Purses>,
    ask: Ask,
    known: tokio::sync::Mutex<Option<Instant>>,
    own: Mutex<Own>,
    /// Requests that are admitted and have not reached their host yet.
    pending: AtomicU64,
}

/// Latest figures of the board.
#[derive(Default)]
struct Own {
    /// True once the board was read.
    is_known: bool,
    run: Consumed,
    payers: Vec<Arc<Purse>>,
}

impl Meter {
    pub(super) fn new(
        board: BoardId,
        tally: Arc<Tally>,
        quotas: SharedQuotas,
        purses: Arc<Purses>,
        ask: Ask,
    ) -> Arc<Self> {
        Arc::new(Meter {
            board,
            tally,
            quotas,
            purses,
            ask,
            known: tokio::sync::Mutex::default(),
            own: Mutex::default(),
            pending: AtomicU64::new(0),
        })
    }

    /// Admits a request to a host, or reports the spent budget. If any budget is configured, no request is admitted
    /// before the board's figures were read.
    pub(super) async fn take(self: &Arc<Self>, host: &str) -> Result<Passage, NotTaken> {
        let budgets = &self.quotas.get().budgets;
        let is_bounded = *budgets != Budgets::default();
        if is_bounded {
            self.refresh().await;
        }
        let own = self.own();
        if is_bounded && !own.is_known {
            return Err(NotTaken::Unknown);
        }
        let mut run = own.run.max(self.through());
        run.requests = run.requests.saturating_add(self.pending.load(Ordering::Relaxed));
        if let Some(spent) = budgets.spent_by_run(&run) {
            return Err(NotTaken::Spent(spent));
        }
        // Check and count must be one step: this holds the lock, and purses are always locked in the order of their
        // payers.
        let mut purses: Vec<MutexGuard<'_, DayUse>> = own.payers.iter().map(|purse| purse.used()).collect();
        if let Some(spent) = purses.iter().find_map(|used| budgets.spent_on_day(used)) {
            return Err(NotTaken::Spent(spent));
        }
        for used in &mut purses {
            used.consumed.requests = used.consumed.requests.saturating_add(1);
        }
        self.pending.fetch_add(1, Ordering::Relaxed);
        drop(purses);
        drop(own);
        Ok(Passage { meter: Arc::clone(self), line: self.tally.line(host), is_pending: true })
    }

    /// Queries the board if its figures are too old: only the board knows agents' reports and granted amounts.
    async fn refresh(&self) {
        let mut known = self.known.lock().await;
        if known.is_some_and(|at| at.elapsed() < FRESH) {
            return;
        }
        let ask = Arc::clone(&self.ask);
        match tokio::task::spawn_blocking(move || ask()).await.map_err(io::Error::other).flatten() {
            Ok(balance) => self.learn(&balance),
            // Decisions continue with the last figures, if there are any.
            Err(error) => tracing::warn!(%error, "budget_not_read"),
        }
        *known = Some(Instant::now());
    }

    fn learn(&self, balance: &Balance) {
        let mut own = self.own();
        own.is_known = true;
        own.run = balance.run;
        own.payers = balance.payers.iter().map(|day| self.purses.of(self.board, day)).collect();
        for (purse, day) in own.payers.iter().zip(&balance.payers) {
            purse.learn(day);
        }
    }

    fn own(&self) -> MutexGuard<'_, Own> {
        self.own.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the use that passed through the proxy.
    fn through(&self) -> Consumed {
        let (requests, bytes) = self.tally.passed();
        Consumed { requests, bytes, ..Consumed::default() }
    }

    /// Returns true if a budget of bytes is spent.
    fn is_out_of_bytes(&self) -> bool {
        let budgets = &self.quotas.get().budgets;
        if *budgets == Budgets::default() {
            return false;
        }
        let only = |consumed: Consumed| Consumed { bytes: consumed.bytes, ..Consumed::default() };
        let is_bytes = |spent: SpentBudget| spent.amount == Amount::Bytes;
        let own = self.own();
        let of_day = |purse: &Arc<Purse>| {
            let used = purse.used();
            budgets.spent_on_day(&DayUse { consumed: only(used.consumed), ..used.clone() })
        };
        budgets.spent_by_run(&only(own.run.max(self.through()))).is_some_and(is_bytes)
            || own.payers.iter().filter_map(of_day).any(is_bytes)
    }

    fn count_bytes(&self, bytes: usize) {
        self.tally.changed.notify_one();
        for purse in &self.own().payers {
            let mut used = purse.used();
            used.consumed.bytes = used.consumed.bytes.saturating_add(bytes as u64);
        }
    }
}

/// An admitted request. Counted for good once it has reached its host; otherwise its drop returns the charge.
pub(super) struct Passage {
    meter: Arc<Meter>,
    line: Arc<Line>,
    is_pending: bool,
}

impl Passage {
    /// Records that the host is reached.
    pub(super) fn reached(&mut self) {
        if std::mem::take(&mut self.is_pending) {
            self.line.request();
            self.meter.pending.fetch_sub(1, Ordering::Relaxed);
            self.meter.tally.changed.notify_one();
        }
    }

    /// Counts bytes from the worker.
    pub(super) fn sent(&self, bytes: usize) {
        self.line.sent(bytes);
        self.meter.count_bytes(bytes);
    }

    /// Counts bytes to the worker.
    pub(super) fn received(&self, bytes: usize) {
        self.line.received(bytes);
        self.meter.count_bytes(bytes);
    }

    /// Counts a response. `opens` is the time at which the host accepts requests again, if the response names one.
    pub(super) fn answered(&self, status: u16, opens: Option<Timestamp>) {
        self.line.answered(status, opens);
    }

    /// Returns true if uncounted traffic, such as requests in a tunnel, has spent a budget of bytes.
    pub(super) fn is_over(&self) -> bool {
        self.meter.is_out_of_bytes()
    }
}

impl Drop for Passage {
    fn drop(&mut self) {
        if !self.is_pending {
            return;
        }
        self.meter.pending.fetch_sub(1, Ordering::Relaxed);
        for purse in &self.meter.own().payers {
            let mut used = purse.used();
            used.consumed.requests = used.consumed.requests.saturating_sub(1);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicBool;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn no_request_passes_before_the_board_has_said_what_is_used_and_later_ones_go_on_with_that() {
        let mut quotas = kernel::Quotas::default();
        quotas.budgets.per_run.requests = Some(2);
        let quotas = SharedQuotas::new(quotas);
        let fails = Arc::new(AtomicBool::new(true));
        let is_failing = Arc::clone(&fails);
        let ask: Ask = Arc::new(move || {
            let is_failing = is_failing.load(Ordering::Relaxed);
            if is_failing { Err(io::Error::other("not readable")) } else { Ok(Balance::default()) }
        });
        let board = BoardId(uuid::Uuid::nil());
        let meter = Meter::new(board, Arc::default(), quotas.clone(), Arc::default(), ask);
        let take = async || meter.take("a.example:443").await.map(|mut passage| passage.reached());
        for _ in 0..2 {
            assert_eq!(take().await, Err(NotTaken::Unknown));
        }
        fails.store(false, Ordering::Relaxed);
        tokio::time::advance(FRESH).await;
        assert_eq!(take().await, Ok(()));
        fails.store(true, Ordering::Relaxed);
        tokio::time::advance(FRESH).await;
        assert_eq!(take().await, Ok(()), "it goes on with what is known");
        assert!(matches!(take().await, Err(NotTaken::Spent(_))));
        quotas.set(kernel::Quotas::default());
        assert_eq!(take().await, Ok(()), "without a budget nothing has to be known");
    }
}
