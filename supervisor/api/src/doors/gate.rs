//! Admission of requests: limits the requests per second of a run, and the requests, bytes and uploads that a run or a
//! tenant may have in progress.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use kernel::{Actor, RunId};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::account::Account;
use super::accounts::{Accounts, Bound, RunKey, Whose, shown};
use super::bounds;
use crate::identity::{Caller, Who};
use base::exit::Code;
use base::failure::Failure;
use base::response::REST;
use service::{BoardHandle, Service};

/// Smallest interval between two events about the throttling of a run, and between two log lines about it.
const NOTED: Duration = Duration::from_mins(1);

/// Admission control for the workers of one daemon.
#[derive(Debug)]
pub struct Gate {
    service: Arc<Service>,
    accounts: Mutex<Accounts>,
}

/// Origin of an admitted request, whose usage is counted.
#[derive(Debug)]
struct Ticket {
    gate: Arc<Gate>,
    /// Board of a worker's run; none for a member of a tenant.
    board: Option<Arc<BoardHandle>>,
    whose: Whose,
}

impl Gate {
    /// Makes an admission control that reads the limits from the service's configuration at each request.
    pub fn new(service: Arc<Service>) -> Self {
        Gate { service, accounts: Mutex::new(Accounts::new()) }
    }

    /// Counts a request of a run, before any other part of the request is read.
    ///
    /// # Errors
    /// Fails if the run exceeds its request rate. The run is then paused for [`REST`].
    pub fn count(&self, run: RunKey) -> Result<(), Failure> {
        let rate = self.service.config().api.requests_per_second_per_run;
        let now = Instant::now();
        let mut accounts = self.accounts();
        accounts.tidy(now);
        let account = accounts.runs.entry(run).or_insert_with(|| Account::new(rate, now));
        if account.may_ask(rate, now) {
            return Ok(());
        }
        account.rests_until = Some(now + REST);
        drop(accounts);
        let bound = Bound::rate(shown(run.1), rate, "requests_per_second_per_run");
        let board = self.service.served().into_iter().find(|board| board.id() == run.0);
        Err(self.refuse(board.as_deref(), run, bound))
    }

    /// Returns the end of a run's pause, if it is paused.
    pub(super) fn rests_until(&self, run: RunKey) -> Option<Instant> {
        let until = self.accounts().runs.get(&run)?.rests_until?;
        (until > Instant::now()).then_some(until)
    }

    /// Returns the refusal of a request. Also records it as an event of the run's task and in the log, at most once per
    /// [`NOTED`] and run.
    fn refuse(&self, board: Option<&BoardHandle>, run: RunKey, bound: Bound) -> Failure {
        let Bound { whose, what, key } = bound;
        let now = Instant::now();
        let fresh = self.accounts().runs.get_mut(&run).is_some_and(|account| {
            let fresh = account.noted.is_none_or(|at| now.duration_since(at) > NOTED);
            if fresh {
                account.noted = Some(now);
            }
            fresh
        });
        if fresh && let Some(board) = board {
            tracing::warn!(board = %board.name(), run = %run.1, bound = key, "throttled");
            note(board, run.1, key);
        }
        Failure::new(Code::Throttled, format!("{whose} {what}"))
            .hint(format!("wait a moment and send it again; the bound is {key} in [api] of supervisor.toml"))
    }

    /// Admits a counted request. Returns none for an operator, who is limited only by the number of connections.
    pub fn enter(self: &Arc<Self>, caller: &Caller) -> Result<Option<Pass>, Failure> {
        let Some(run) = caller.counted() else { return Ok(None) };
        let tenant = match &caller.who {
            Who::Live(Actor { tenant, .. }) | Who::Ended { tenant, .. } => tenant.clone(),
        };
        let board = caller.board.clone();
        let tenant = (board.as_ref().map_or(run.0, |board| board.id()), tenant);
        let gate = Arc::clone(self);
        let whose = Whose { run, tenant };
        let ticket = Arc::new(Ticket { gate, board, whose });
        let config = self.service.config();
        let entered = self.accounts().enter(&ticket.whose, &config.api, Instant::now());
        match entered {
            Ok(()) => Ok(Some(Pass(ticket))),
            Err(bound) => Err(ticket.refuse(bound)),
        }
    }

    fn accounts(&self) -> MutexGuard<'_, Accounts> {
        self.accounts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Ticket {
    fn refuse(&self, bound: Bound) -> Failure {
        self.gate.refuse(self.board.as_deref(), self.whose.run, bound)
    }
}

/// Records the throttling of a run as an event of its task.
pub(super) fn note(board: &BoardHandle, run: RunId, bound: &'static str) {
    let Ok(writer) = board.writer() else { return };
    let noted = move |result: Result<(), kernel::Error>| {
        if let Err(error) = result {
            tracing::warn!(%run, %error, "throttle_not_noted");
        }
    };
    writer.submit(move |board| board.note_throttled(run, bound), noted);
}

/// Admission of a worker's or member's request. The request counts as in progress until this is dropped.
#[derive(Debug)]
pub struct Pass(Arc<Ticket>);

/// Permits of a verb. They are held until the verb has finished, even if the caller has closed the connection.
#[derive(Debug)]
pub struct Turn {
    _turns: [Option<OwnedSemaphorePermit>; 2],
    _pass: Arc<Pass>,
}

impl Turn {
    pub fn new(pass: Arc<Pass>, turns: [Option<OwnedSemaphorePermit>; 2]) -> Self {
        Turn { _turns: turns, _pass: pass }
    }
}

/// Bytes that are reserved for a caller until this is dropped.
#[derive(Debug)]
pub struct Reserved(Arc<Ticket>, usize);

/// Upload that counts as in progress until this is dropped.
#[derive(Debug)]
pub struct Upload(Arc<Ticket>);

impl Pass {
    /// Waits for one of the run's permits to process a request. Returns none if the run has no account any more.
    pub async fn turn(&self) -> Option<OwnedSemaphorePermit> {
        let turns =
            self.0.gate.accounts().runs.get(&self.0.whose.run).map(|account| Arc::clone(&account.turns));
        // The semaphore is never closed.
        turns?.acquire_owned().await.ok()
    }

    /// Takes the run's only permit for a slow request. Fails if another request of the run has it.
    pub(crate) fn long_turn(&self) -> Result<Option<OwnedSemaphorePermit>, Failure> {
        let long =
            self.0.gate.accounts().runs.get(&self.0.whose.run).map(|account| Arc::clone(&account.long));
        long.map(Semaphore::try_acquire_owned).transpose().map_err(|_| {
            Failure::new(Code::TryAgain, "another request of this run is waiting for an answer")
                .hint("wait for that one: a run asks one question at a time")
        })
    }

    /// Reserves bytes for a body or a reply. Fails if the run, its tenant or the daemon would exceed its limit.
    pub fn reserve(&self, bytes: usize) -> Result<Reserved, Failure> {
        let config = self.0.gate.service.config();
        let reserved = self.0.gate.accounts().reserve(&self.0.whose, bytes, &config.api);
        reserved.map(|()| Reserved(Arc::clone(&self.0), bytes)).map_err(|bound| self.0.refuse(bound))
    }

    /// Returns the refusal of a connection of the caller's run, because each of its other connections has a request in
    /// progress.
    pub(crate) fn crowded(&self, bound: bounds::Bound) -> Failure {
        let whose = format!("{}:", self.0.whose.run());
        self.0.refuse(Bound { whose, what: bound.to_string(), key: "connections_per_worker" })
    }

    pub fn upload(&self) -> Result<Upload, Failure> {
        let config = self.0.gate.service.config();
        let begun = self.0.gate.accounts().upload(&self.0.whose, &config.api);
        begun.map(|()| Upload(Arc::clone(&self.0))).map_err(|bound| self.0.refuse(bound))
    }
}

impl Drop for Pass {
    fn drop(&mut self) {
        self.0.gate.accounts().each(&self.0.whose, |account| account.requests -= 1);
    }
}

impl Drop for Reserved {
    fn drop(&mut self) {
        let mut accounts = self.0.gate.accounts();
        accounts.bytes -= self.1;
        accounts.each(&self.0.whose, |account| account.bytes -= self.1);
    }
}

impl Drop for Upload {
    fn drop(&mut self) {
        let mut accounts = self.0.gate.accounts();
        accounts.uploads -= 1;
        accounts.each(&self.0.whose, |account| account.uploads -= 1);
    }
}
