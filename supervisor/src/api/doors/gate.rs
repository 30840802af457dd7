//! What one run, and one tenant, may have under way at once and ask for in a second.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use kernel::{Actor, BoardId, RunId, Tenant};
use tokio::sync::OwnedSemaphorePermit;

use super::account::{Account, FORGOTTEN};
use crate::api::identity::{Caller, Who};
use crate::config::ApiConfig;
use crate::exit::Code;
use crate::failure::Failure;
use crate::service::{BoardHandle, Service};

/// A throttled run leaves an event and a line in the log at most this often.
const NOTED: Duration = Duration::from_mins(1);

type RunKey = (BoardId, RunId);
type TenantKey = (BoardId, Option<Tenant>);

/// What the workers of one daemon have under way.
#[derive(Debug)]
pub(crate) struct Gate {
    service: Arc<Service>,
    books: Mutex<Books>,
}

#[derive(Debug)]
struct Books {
    runs: HashMap<RunKey, Account>,
    tenants: HashMap<TenantKey, Account>,
    uploads: usize,
    bytes: usize,
    tidied: Instant,
}

/// Whose request it is.
#[derive(Debug)]
struct Ticket {
    gate: Arc<Gate>,
    board: Arc<BoardHandle>,
    run: RunKey,
    /// None of a run that has ended: it gets replies that are stored, and nothing of its tenant's.
    tenant: Option<TenantKey>,
}

/// A bound that was met: what it is called, how much it is, and its key in the configuration.
struct Bound {
    whose: String,
    what: String,
    key: &'static str,
}

impl Gate {
    /// A gate with the bounds of the service's configuration, as it stands at each request.
    pub(crate) fn new(service: Arc<Service>) -> Self {
        let (runs, tenants) = (HashMap::new(), HashMap::new());
        let books = Books { runs, tenants, uploads: 0, bytes: 0, tidied: Instant::now() };
        Gate { service, books: Mutex::new(books) }
    }

    /// Lets a request in. None for an operator, who is bounded by the number of connections alone.
    pub(crate) fn enter(self: &Arc<Self>, caller: &Caller) -> Result<Option<Pass>, Failure> {
        let Some(board) = &caller.board else { return Ok(None) };
        let id = board.id();
        let (run, tenant) = match &caller.who {
            Who::Live(Actor { run: Some(run), tenant, .. }) => (run.run, Some((id, tenant.clone()))),
            Who::Ended(run) => (*run, None),
            Who::Live(_) => return Ok(None),
        };
        let (gate, board) = (Arc::clone(self), Arc::clone(board));
        let ticket = Arc::new(Ticket { gate, board, run: (id, run), tenant });
        let config = self.service.config();
        let entered = self.books().enter(&ticket, &config.api, Instant::now());
        match entered {
            Ok(()) => Ok(Some(Pass(ticket))),
            Err(bound) => Err(ticket.refuse(bound)),
        }
    }

    fn books(&self) -> MutexGuard<'_, Books> {
        self.books.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Books {
    fn enter(&mut self, ticket: &Ticket, api: &ApiConfig, now: Instant) -> Result<(), Bound> {
        if now.duration_since(self.tidied) > FORGOTTEN {
            self.tidied = now;
            self.runs.retain(|_, account| !account.is_over(now));
            self.tenants.retain(|_, account| !account.is_over(now));
        }
        let rate = api.requests_per_second_per_run;
        let run = self.runs.entry(ticket.run).or_insert_with(|| Account::new(rate, now));
        let name = || format!("run {}", ticket.run.1);
        let most = api.requests_per_run;
        if run.requests >= most {
            return Err(Bound::at_once(name(), most, "requests under way", "requests_per_run"));
        }
        if !run.may_ask(rate, now) {
            return Err(Bound::rate(name(), rate, "requests_per_second_per_run"));
        }
        let Some(key) = ticket.tenant.clone() else {
            run.begin();
            return Ok(());
        };
        let rate = api.requests_per_second_per_tenant;
        let tenant = self.tenants.entry(key).or_insert_with(|| Account::new(rate, now));
        let most = api.requests_per_tenant;
        if tenant.requests >= most {
            return Err(Bound::at_once(ticket.tenants(), most, "requests under way", "requests_per_tenant"));
        }
        if !tenant.may_ask(rate, now) {
            return Err(Bound::rate(ticket.tenants(), rate, "requests_per_second_per_tenant"));
        }
        run.begin();
        tenant.begin();
        Ok(())
    }

    /// Does something to the accounts of a ticket. They are there as long as it has something under way.
    fn each(&mut self, ticket: &Ticket, change: impl Fn(&mut Account)) {
        self.runs.get_mut(&ticket.run).into_iter().for_each(&change);
        let tenant = ticket.tenant.as_ref().and_then(|key| self.tenants.get_mut(key));
        tenant.into_iter().for_each(&change);
    }

    fn upload(&mut self, ticket: &Ticket, api: &ApiConfig) -> Result<(), Bound> {
        let (own, all) = (self.runs.get(&ticket.run).map_or(0, |run| run.uploads), self.uploads);
        if own >= api.uploads_per_run {
            let name = format!("run {}", ticket.run.1);
            return Err(Bound::at_once(
                name,
                api.uploads_per_run,
                "files on their way in",
                "uploads_per_run",
            ));
        }
        if all >= api.uploads {
            let name = "the daemon".to_owned();
            return Err(Bound::at_once(name, api.uploads, "files of workers on their way in", "uploads"));
        }
        self.uploads += 1;
        self.each(ticket, |account| account.uploads += 1);
        Ok(())
    }

    fn hold(&mut self, ticket: &Ticket, bytes: usize, api: &ApiConfig) -> Result<(), Bound> {
        let own = self.runs.get(&ticket.run).map_or(0, |run| run.bytes);
        let bounds = [
            (own, api.unread_bytes_per_run, format!("run {}", ticket.run.1), "unread_bytes_per_run"),
            (self.bytes, api.unread_bytes, "the daemon".to_owned(), "unread_bytes"),
        ];
        for (held, most, name, key) in bounds {
            // One alone may be larger: what a single reply has is bounded where it is made.
            if held > 0 && held.saturating_add(bytes) > most {
                return Err(Bound::at_once(name, most, "bytes of workers' bodies and unread replies", key));
            }
        }
        self.bytes += bytes;
        self.each(ticket, |account| account.bytes += bytes);
        Ok(())
    }
}

impl Bound {
    fn at_once(whose: String, most: usize, what: &str, key: &'static str) -> Self {
        Bound { whose, what: format!("may have up to {most} {what}"), key }
    }

    fn rate(whose: String, rate: u32, key: &'static str) -> Self {
        Bound { whose, what: format!("may make up to {rate} requests a second, and a short burst"), key }
    }
}

impl Ticket {
    fn tenants(&self) -> String {
        match self.tenant.as_ref().and_then(|(_, tenant)| tenant.as_ref()) {
            Some(tenant) => format!("tenant {tenant}"),
            None => "the tasks without a tenant together".to_owned(),
        }
    }

    /// Refuses something, and notes it once in a while with the run: in its task's events, and in the log.
    fn refuse(&self, bound: Bound) -> Failure {
        let Bound { whose, what, key } = bound;
        let now = Instant::now();
        let fresh = self.gate.books().runs.get_mut(&self.run).is_some_and(|account| {
            let fresh = account.noted.is_none_or(|at| now.duration_since(at) > NOTED);
            if fresh {
                account.noted = Some(now);
            }
            fresh
        });
        if fresh {
            tracing::warn!(board = %self.board.name(), run = %self.run.1, bound = key, "throttled");
            note(&self.board, self.run.1, key);
        }
        Failure::new(Code::Throttled, format!("{whose} {what}"))
            .hint(format!("wait a moment and send it again; the bound is {key} in [api] of supervisor.toml"))
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

/// Bytes that are kept for a worker, until it is dropped.
#[derive(Debug)]
pub(crate) struct Held(Arc<Ticket>, usize);

/// A file on its way in, until it is dropped.
#[derive(Debug)]
pub(crate) struct Upload(Arc<Ticket>);

impl Pass {
    /// Waits until the request may be worked on, which it may until the return value is dropped.
    pub(crate) async fn turn(&self) -> Option<OwnedSemaphorePermit> {
        let turns = self.0.gate.books().runs.get(&self.0.run).map(|account| Arc::clone(&account.turns));
        // It is never closed.
        turns?.acquire_owned().await.ok()
    }

    /// Keeps bytes for the caller: of a body, or of a reply.
    pub(crate) fn hold(&self, bytes: usize) -> Result<Held, Failure> {
        let config = self.0.gate.service.config();
        let held = self.0.gate.books().hold(&self.0, bytes, &config.api);
        held.map(|()| Held(Arc::clone(&self.0), bytes)).map_err(|bound| self.0.refuse(bound))
    }

    /// Lets a file in.
    pub(crate) fn upload(&self) -> Result<Upload, Failure> {
        let config = self.0.gate.service.config();
        let begun = self.0.gate.books().upload(&self.0, &config.api);
        begun.map(|()| Upload(Arc::clone(&self.0))).map_err(|bound| self.0.refuse(bound))
    }
}

impl Drop for Pass {
    fn drop(&mut self) {
        self.0.gate.books().each(&self.0, |account| account.requests -= 1);
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        let mut books = self.0.gate.books();
        books.bytes -= self.1;
        books.each(&self.0, |account| account.bytes -= self.1);
    }
}

impl Drop for Upload {
    fn drop(&mut self) {
        let mut books = self.0.gate.books();
        books.uploads -= 1;
        books.each(&self.0, |account| account.uploads -= 1);
    }
}
