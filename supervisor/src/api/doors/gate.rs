//! What one run, and one tenant, may have under way at once and ask for in a second.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use kernel::{Actor, RunId};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::account::Account;
use super::accounts::{Accounts, Bound, REST, RunKey, Whose, shown};
use super::bounds;
use crate::api::identity::{Caller, Who};
use crate::exit::Code;
use crate::failure::Failure;
use crate::service::{BoardHandle, Service};

/// A throttled run leaves an event and a line in the log at most this often.
const NOTED: Duration = Duration::from_mins(1);

/// What the workers of one daemon have under way.
#[derive(Debug)]
pub(crate) struct Gate {
    service: Arc<Service>,
    accounts: Mutex<Accounts>,
}

/// Whose request it is.
#[derive(Debug)]
struct Ticket {
    gate: Arc<Gate>,
    /// The board of a worker's run; none for a tenant's user.
    board: Option<Arc<BoardHandle>>,
    whose: Whose,
}

impl Gate {
    /// A gate with the bounds of the service's configuration, as it stands at each request.
    pub(crate) fn new(service: Arc<Service>) -> Self {
        Gate { service, accounts: Mutex::new(Accounts::new()) }
    }

    /// Counts a request of a run, before anything else of it is looked at.
    ///
    /// # Errors
    /// The run has made too many of them lately. It rests now.
    pub(crate) fn count(&self, run: RunKey) -> Result<(), Failure> {
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
        let bound = Bound::rate(shown(run), rate, "requests_per_second_per_run");
        let board = self.service.served().into_iter().find(|board| board.id() == run.0);
        Err(self.refuse(board.as_deref(), run, bound))
    }

    /// Until when nothing of a run is looked at, where that is to come.
    pub(super) fn rests_until(&self, run: RunKey) -> Option<Instant> {
        let until = self.accounts().runs.get(&run)?.rests_until?;
        (until > Instant::now()).then_some(until)
    }

    /// Refuses something, and notes it once in a while with the run: in its task's events, and in the log.
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

    /// Lets a request in that was counted. None for an operator, who is bounded by the number of connections alone.
    pub(crate) fn enter(self: &Arc<Self>, caller: &Caller) -> Result<Option<Pass>, Failure> {
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

/// Leaves an event at the task of a run that was throttled.
pub(super) fn note(board: &BoardHandle, run: RunId, bound: &'static str) {
    let Ok(writer) = board.writer() else { return };
    let noted = move |result: Result<(), kernel::Error>| {
        if let Err(error) = result {
            tracing::warn!(%run, %error, "throttle_not_noted");
        }
    };
    writer.submit(move |board| board.note_throttled(run, bound), noted);
}

/// A worker's request that was let in. It counts until it is dropped.
#[derive(Debug)]
pub(crate) struct Pass(Arc<Ticket>);

/// What the verb of a worker's request counts for until it has finished, even if its request no longer waits for it.
#[derive(Debug)]
pub(crate) struct Turn {
    _turns: [Option<OwnedSemaphorePermit>; 2],
    _pass: Arc<Pass>,
}

impl Turn {
    pub(crate) fn new(pass: Arc<Pass>, turns: [Option<OwnedSemaphorePermit>; 2]) -> Self {
        Turn { _turns: turns, _pass: pass }
    }
}

/// Bytes that are reserved for a worker, until it is dropped.
#[derive(Debug)]
pub(crate) struct Reserved(Arc<Ticket>, usize);

/// A file on its way in, until it is dropped.
#[derive(Debug)]
pub(crate) struct Upload(Arc<Ticket>);

impl Pass {
    /// Waits until the request may be worked on, which it may until the return value is dropped.
    pub(crate) async fn turn(&self) -> Option<OwnedSemaphorePermit> {
        let turns =
            self.0.gate.accounts().runs.get(&self.0.whose.run).map(|account| Arc::clone(&account.turns));
        // It is never closed.
        turns?.acquire_owned().await.ok()
    }

    /// Takes the one place of the run for a request that may take long.
    pub(crate) fn long_turn(&self) -> Result<Option<OwnedSemaphorePermit>, Failure> {
        let long =
            self.0.gate.accounts().runs.get(&self.0.whose.run).map(|account| Arc::clone(&account.long));
        long.map(Semaphore::try_acquire_owned).transpose().map_err(|_| {
            Failure::new(Code::TryAgain, "another request of this run is waiting for an answer")
                .hint("wait for that one: a run asks one question at a time")
        })
    }

    /// Reserves bytes for the caller: of a body, or of a reply.
    pub(crate) fn reserve(&self, bytes: usize) -> Result<Reserved, Failure> {
        let config = self.0.gate.service.config();
        let reserved = self.0.gate.accounts().reserve(&self.0.whose, bytes, &config.api);
        reserved.map(|()| Reserved(Arc::clone(&self.0), bytes)).map_err(|bound| self.0.refuse(bound))
    }

    /// Refuses a connection of the caller's run where each of its others has a request under way.
    pub(crate) fn crowded(&self, bound: bounds::Bound) -> Failure {
        let whose = format!("{}:", self.0.whose.run());
        self.0.refuse(Bound { whose, what: bound.to_string(), key: "connections_per_worker" })
    }

    /// Lets a file in.
    pub(crate) fn upload(&self) -> Result<Upload, Failure> {
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
