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

use super::traffic::{HostTraffic, Traffic};

/// Age up to which the board's figures may be used for a decision.
const FRESH: Duration = Duration::from_secs(1);

/// Reason why a request is not admitted.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum NotAdmitted {
    Spent(SpentBudget),
    /// The use by the run and its payers could never be read. Another try may succeed after [`FRESH`].
    Unknown,
}

/// Queries the board for the use by a run and its payers. Blocking.
pub(super) type ReadBalance = Arc<dyn Fn() -> io::Result<Balance> + Send + Sync>;

/// Today's use by all runs of a payer.
#[derive(Debug)]
pub(super) struct DayBudget(Mutex<DayUse>);

/// Day budgets of the payers that have a run with a proxy.
#[derive(Debug, Default)]
pub(super) struct DayBudgets(Mutex<HashMap<(BoardId, Payer), Weak<DayBudget>>>);

impl DayBudgets {
    fn for_payer(&self, board: BoardId, day: &DayUse) -> Arc<DayBudget> {
        let mut budgets_of_payers = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        budgets_of_payers.retain(|_, day_budget| day_budget.strong_count() > 0);
        let key = (board, day.payer.clone());
        budgets_of_payers.get(&key).and_then(Weak::upgrade).unwrap_or_else(|| {
            let day_budget = Arc::new(DayBudget(Mutex::new(day.clone())));
            budgets_of_payers.insert(key, Arc::downgrade(&day_budget));
            day_budget
        })
    }
}

impl DayBudget {
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
    traffic: Arc<Traffic>,
    quotas: SharedQuotas,
    day_budgets: Arc<DayBudgets>,
    read_balance: ReadBalance,
    known: tokio::sync::Mutex<Option<Instant>>,
    figures: Mutex<Figures>,
    /// Requests that are admitted and have not reached their host yet.
    pending: AtomicU64,
}

/// Latest figures of the board.
#[derive(Default)]
struct Figures {
    /// True once the board was read.
    is_known: bool,
    run: Consumed,
    payers: Vec<Arc<DayBudget>>,
}

impl Meter {
    pub(super) fn new(
        board: BoardId,
        traffic: Arc<Traffic>,
        quotas: SharedQuotas,
        day_budgets: Arc<DayBudgets>,
        ask: ReadBalance,
    ) -> Arc<Self> {
        Arc::new(Meter {
            board,
            traffic,
            quotas,
            day_budgets,
            read_balance: ask,
            known: tokio::sync::Mutex::default(),
            figures: Mutex::default(),
            pending: AtomicU64::new(0),
        })
    }

    /// Admits a request to a host, or reports the spent budget. If any budget is configured, no request is admitted
    /// before the board's figures were read.
    pub(super) async fn admit(self: &Arc<Self>, host: &str) -> Result<MeteredRequest, NotAdmitted> {
        let budgets = &self.quotas.get().budgets;
        let is_bounded = *budgets != Budgets::default();
        if is_bounded {
            self.refresh().await;
        }
        let figures = self.figures();
        if is_bounded && !figures.is_known {
            return Err(NotAdmitted::Unknown);
        }
        let mut run = figures.run.max(self.through());
        run.requests = run.requests.saturating_add(self.pending.load(Ordering::Relaxed));
        if let Some(spent) = budgets.spent_by_run(&run) {
            return Err(NotAdmitted::Spent(spent));
        }
        // Check and count must be one step: this holds the lock, and the budgets are always locked in the order of their
        // payers.
        let mut budgets_of_payers: Vec<MutexGuard<'_, DayUse>> =
            figures.payers.iter().map(|day_budget| day_budget.used()).collect();
        if let Some(spent) = budgets_of_payers.iter().find_map(|used| budgets.spent_on_day(used)) {
            return Err(NotAdmitted::Spent(spent));
        }
        for used in &mut budgets_of_payers {
            used.consumed.requests = used.consumed.requests.saturating_add(1);
        }
        self.pending.fetch_add(1, Ordering::Relaxed);
        drop(budgets_of_payers);
        drop(figures);
        Ok(MeteredRequest { meter: Arc::clone(self), host: self.traffic.host(host), is_pending: true })
    }

    /// Queries the board if its figures are too old: only the board knows agents' reports and granted amounts.
    async fn refresh(&self) {
        let mut known = self.known.lock().await;
        if known.is_some_and(|at| at.elapsed() < FRESH) {
            return;
        }
        let ask = Arc::clone(&self.read_balance);
        match tokio::task::spawn_blocking(move || ask()).await.map_err(io::Error::other).flatten() {
            Ok(balance) => self.learn(&balance),
            // Decisions continue with the last figures, if there are any.
            Err(error) => tracing::warn!(%error, "budget_not_read"),
        }
        *known = Some(Instant::now());
    }

    fn learn(&self, balance: &Balance) {
        let mut figures = self.figures();
        figures.is_known = true;
        figures.run = balance.run;
        figures.payers =
            balance.payers.iter().map(|day| self.day_budgets.for_payer(self.board, day)).collect();
        for (day_budget, day) in figures.payers.iter().zip(&balance.payers) {
            day_budget.learn(day);
        }
    }

    fn figures(&self) -> MutexGuard<'_, Figures> {
        self.figures.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the use that passed through the proxy.
    fn through(&self) -> Consumed {
        let (requests, bytes) = self.traffic.totals();
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
        let figures = self.figures();
        let of_day = |day_budget: &Arc<DayBudget>| {
            let used = day_budget.used();
            budgets.spent_on_day(&DayUse { consumed: only(used.consumed), ..used.clone() })
        };
        budgets.spent_by_run(&only(figures.run.max(self.through()))).is_some_and(is_bytes)
            || figures.payers.iter().filter_map(of_day).any(is_bytes)
    }

    fn count_bytes(&self, bytes: usize) {
        self.traffic.changed.notify_one();
        for day_budget in &self.figures().payers {
            let mut used = day_budget.used();
            used.consumed.bytes = used.consumed.bytes.saturating_add(bytes as u64);
        }
    }
}

/// An admitted request. Counted for good once it has reached its host; otherwise its drop returns the charge.
pub(super) struct MeteredRequest {
    meter: Arc<Meter>,
    host: Arc<HostTraffic>,
    is_pending: bool,
}

impl MeteredRequest {
    /// Records that the host is reached.
    pub(super) fn reached(&mut self) {
        if std::mem::take(&mut self.is_pending) {
            self.host.request();
            self.meter.pending.fetch_sub(1, Ordering::Relaxed);
            self.meter.traffic.changed.notify_one();
        }
    }

    /// Counts bytes from the worker.
    pub(super) fn sent(&self, bytes: usize) {
        self.host.sent(bytes);
        self.meter.count_bytes(bytes);
    }

    /// Counts bytes to the worker.
    pub(super) fn received(&self, bytes: usize) {
        self.host.received(bytes);
        self.meter.count_bytes(bytes);
    }

    /// Counts a response. `opens` is the time at which the host accepts requests again, if the response names one.
    pub(super) fn answered(&self, status: u16, opens: Option<Timestamp>) {
        self.host.answered(status, opens);
    }

    /// Returns true if uncounted traffic, such as requests in a tunnel, has spent a budget of bytes.
    pub(super) fn is_over(&self) -> bool {
        self.meter.is_out_of_bytes()
    }
}

impl Drop for MeteredRequest {
    fn drop(&mut self) {
        if !self.is_pending {
            return;
        }
        self.meter.pending.fetch_sub(1, Ordering::Relaxed);
        for day_budget in &self.meter.figures().payers {
            let mut used = day_budget.used();
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
        let ask: ReadBalance = Arc::new(move || {
            let is_failing = is_failing.load(Ordering::Relaxed);
            if is_failing { Err(io::Error::other("not readable")) } else { Ok(Balance::default()) }
        });
        let board = BoardId(uuid::Uuid::nil());
        let meter = Meter::new(board, Arc::default(), quotas.clone(), Arc::default(), ask);
        let take = async || meter.admit("a.example:443").await.map(|mut passage| passage.reached());
        for _ in 0..2 {
            assert_eq!(take().await, Err(NotAdmitted::Unknown));
        }
        fails.store(false, Ordering::Relaxed);
        tokio::time::advance(FRESH).await;
        assert_eq!(take().await, Ok(()));
        fails.store(true, Ordering::Relaxed);
        tokio::time::advance(FRESH).await;
        assert_eq!(take().await, Ok(()), "it goes on with what is known");
        assert!(matches!(take().await, Err(NotAdmitted::Spent(_))));
        quotas.set(kernel::Quotas::default());
        assert_eq!(take().await, Ok(()), "without a budget nothing has to be known");
    }
}
