//! What a run may still use: its own budget, and those of its tenant and its account for today.
//!
//! The board knows what was used; what has passed since it was asked is added here, for all runs of one payer together, so that a
//! budget is not overdrawn by requests that come at the same time.

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

/// How old what the board has said may be when a request is decided.
const FRESH: Duration = Duration::from_secs(1);

/// Why a request is not let through.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum NotTaken {
    Spent(SpentBudget),
    /// What the run and its payers have used could never be read. Another try may succeed after [`FRESH`].
    Unknown,
}

/// Asks the board how a run and its payers stand. Blocking.
pub(super) type Ask = Arc<dyn Fn() -> io::Result<Balance> + Send + Sync>;

/// What a payer has used today, by all its runs.
#[derive(Debug)]
pub(super) struct Purse(Mutex<DayUse>);

/// The purses of those payers that have a run with a proxy.
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

    /// Takes over what the board says. What has passed since is in neither its figures nor less than them.
    fn learn(&self, day: &DayUse) {
        let mut used = self.used();
        let consumed = if used.day == day.day { used.consumed.max(day.consumed) } else { day.consumed };
        *used = DayUse { consumed, ..day.clone() };
    }
}

/// What one run may still use.
pub(super) struct Meter {
    board: BoardId,
    tally: Arc<Tally>,
    quotas: SharedQuotas,
    purses: Arc<Purses>,
    ask: Ask,
    known: tokio::sync::Mutex<Option<Instant>>,
    own: Mutex<Own>,
    /// Requests that are let through and have not reached their host yet.
    pending: AtomicU64,
}

/// What the board has said last.
#[derive(Default)]
struct Own {
    /// Whether it has said anything.
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

    /// Lets a request to a host through, or says which budget is spent. With budgets nothing passes before the board has said what is
    /// used.
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
        // Nothing comes between the look and the count: this owns the lock, and purses are locked in the order of their payers.
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

    /// Asks the board where that was long ago: what agents report, and what was granted, only the board knows.
    async fn refresh(&self) {
        let mut known = self.known.lock().await;
        if known.is_some_and(|at| at.elapsed() < FRESH) {
            return;
        }
        let ask = Arc::clone(&self.ask);
        match tokio::task::spawn_blocking(move || ask()).await.map_err(io::Error::other).flatten() {
            Ok(balance) => self.learn(&balance),
            // It goes on with what is known, if anything is.
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

    /// What has passed through the proxy.
    fn through(&self) -> Consumed {
        let (requests, bytes) = self.tally.passed();
        Consumed { requests, bytes, ..Consumed::default() }
    }

    /// Whether a budget of bytes is spent.
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

/// One request that is let through. It counts once it has reached its host; one that does not is given back.
pub(super) struct Passage {
    meter: Arc<Meter>,
    line: Arc<Line>,
    is_pending: bool,
}

impl Passage {
    /// Its host is reached.
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

    /// Counts an answer that refuses the request. `opens` is when the host accepts requests again, if the answer names a time.
    pub(super) fn answered(&self, status: u16, opens: Option<Timestamp>) {
        self.line.answered(status, opens);
    }

    /// Whether what passes unseen, such as the requests in a tunnel, has used up a budget.
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
