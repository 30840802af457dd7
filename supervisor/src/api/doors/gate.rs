//! What one run, and one tenant, may have under way at once and ask for in a second.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use kernel::{Actor, BoardId, RunId, Tenant};
use tokio::sync::OwnedSemaphorePermit;

use super::account::{Account, FORGOTTEN};
use super::crowd;
use crate::api::identity::{Caller, Who};
use crate::config::ApiConfig;
use crate::exit::Code;
use crate::failure::Failure;
use crate::service::{BoardHandle, Service};

/// How long a run rests that has made more requests than it may: neither its connections nor its door are looked at. It is
/// also what the refusal says in `Retry-After`.
pub(crate) const REST: Duration = Duration::from_secs(1);
/// A throttled run leaves an event and a line in the log at most this often.
const NOTED: Duration = Duration::from_mins(1);

type RunKey = (BoardId, RunId);
type TenantKey = (BoardId, Option<Tenant>);

/// What a request counts for. A run that has ended counts for its tenant still: it gets replies that are stored.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Whose {
    run: RunKey,
    tenant: TenantKey,
}

/// What the workers of one daemon have under way.
#[derive(Debug)]
pub(crate) struct Gate {
    service: Arc<Service>,
    accounts: Mutex<Accounts>,
}

#[derive(Debug)]
struct Accounts {
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
    whose: Whose,
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
        let accounts = Accounts { runs, tenants, uploads: 0, bytes: 0, tidied: Instant::now() };
        Gate { service, accounts: Mutex::new(accounts) }
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
        let bound = Bound::rate(format!("run {}", run.1), rate, "requests_per_second_per_run");
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
        let Some(board) = &caller.board else { return Ok(None) };
        let Some(run) = caller.run() else { return Ok(None) };
        let tenant = match &caller.who {
            Who::Live(Actor { tenant, .. }) | Who::Ended { tenant, .. } => tenant.clone(),
        };
        let tenant = (board.id(), tenant);
        let (gate, board) = (Arc::clone(self), Arc::clone(board));
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

impl Accounts {
    /// Forgets those who have nothing under way and had nothing for a while.
    fn tidy(&mut self, now: Instant) {
        if now.duration_since(self.tidied) > FORGOTTEN {
            self.tidied = now;
            self.runs.retain(|_, account| !account.is_over(now));
            self.tenants.retain(|_, account| !account.is_over(now));
        }
    }

    fn enter(&mut self, whose: &Whose, api: &ApiConfig, now: Instant) -> Result<(), Bound> {
        let rate = api.requests_per_second_per_run;
        let run = self.runs.entry(whose.run).or_insert_with(|| Account::new(rate, now));
        let most = api.requests_per_run;
        if run.requests >= most {
            return Err(Bound::at_once(whose.run(), most, "requests under way", "requests_per_run"));
        }
        let rate = api.requests_per_second_per_tenant;
        let tenant = self.tenants.entry(whose.tenant.clone()).or_insert_with(|| Account::new(rate, now));
        let most = api.requests_per_tenant;
        if tenant.requests >= most {
            return Err(Bound::at_once(whose.tenant(), most, "requests under way", "requests_per_tenant"));
        }
        if !tenant.may_ask(rate, now) {
            run.rests_until = Some(now + REST);
            return Err(Bound::rate(whose.tenant(), rate, "requests_per_second_per_tenant"));
        }
        run.requests += 1;
        tenant.requests += 1;
        Ok(())
    }

    /// Does something to the accounts of a request. They are there as long as it has something under way.
    fn each(&mut self, whose: &Whose, change: impl Fn(&mut Account)) {
        self.runs.get_mut(&whose.run).into_iter().for_each(&change);
        self.tenants.get_mut(&whose.tenant).into_iter().for_each(&change);
    }

    /// What the run, its tenant and all workers have of something.
    fn had(&self, whose: &Whose, of: impl Fn(&Account) -> usize, all: usize) -> [usize; 3] {
        let run = self.runs.get(&whose.run).map_or(0, &of);
        [run, self.tenants.get(&whose.tenant).map_or(0, &of), all]
    }

    fn upload(&mut self, whose: &Whose, api: &ApiConfig) -> Result<(), Bound> {
        let had = self.had(whose, |account| account.uploads, self.uploads);
        let bounds = [
            (api.uploads_per_run, "uploads_per_run"),
            (api.uploads_per_tenant, "uploads_per_tenant"),
            (api.uploads, "uploads"),
        ];
        whose.may_add(had, 1, bounds, "files on their way in")?;
        self.uploads += 1;
        self.each(whose, |account| account.uploads += 1);
        Ok(())
    }

    fn reserve(&mut self, whose: &Whose, bytes: usize, api: &ApiConfig) -> Result<(), Bound> {
        let had = self.had(whose, |account| account.bytes, self.bytes);
        let bounds = [
            (api.unread_bytes_per_run, "unread_bytes_per_run"),
            (api.unread_bytes_per_tenant, "unread_bytes_per_tenant"),
            (api.unread_bytes, "unread_bytes"),
        ];
        whose.may_add(had, bytes, bounds, "bytes of bodies and of replies that are not read")?;
        self.bytes += bytes;
        self.each(whose, |account| account.bytes += bytes);
        Ok(())
    }
}

impl Whose {
    fn run(&self) -> String {
        format!("run {}", self.run.1)
    }

    fn tenant(&self) -> String {
        match &self.tenant.1 {
            Some(tenant) => format!("tenant {tenant}"),
            None => "the tasks without a tenant together".to_owned(),
        }
    }

    /// Refuses what goes over the bound of the run, of its tenant, or of all workers.
    ///
    /// Who has nothing yet gets one, however large it is (what is made for one request is bounded where it is made), and
    /// however much other tenants have: they cannot keep a tenant out by using up what all share.
    fn may_add(
        &self,
        [run, tenant, all]: [usize; 3],
        more: usize,
        [of_run, of_tenant, of_all]: [(usize, &'static str); 3],
        what: &str,
    ) -> Result<(), Bound> {
        let over = |had: usize, (most, _): (usize, &str)| had.saturating_add(more) > most;
        if run > 0 && over(run, of_run) {
            return Err(Bound::at_once(self.run(), of_run.0, what, of_run.1));
        }
        if tenant > 0 && over(tenant, of_tenant) {
            return Err(Bound::at_once(self.tenant(), of_tenant.0, what, of_tenant.1));
        }
        if tenant > 0 && over(all, of_all) {
            return Err(Bound::at_once("all workers".to_owned(), of_all.0, what, of_all.1));
        }
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
    fn refuse(&self, bound: Bound) -> Failure {
        self.gate.refuse(Some(&self.board), self.whose.run, bound)
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

    /// Reserves bytes for the caller: of a body, or of a reply.
    pub(crate) fn reserve(&self, bytes: usize) -> Result<Reserved, Failure> {
        let config = self.0.gate.service.config();
        let reserved = self.0.gate.accounts().reserve(&self.0.whose, bytes, &config.api);
        reserved.map(|()| Reserved(Arc::clone(&self.0), bytes)).map_err(|bound| self.0.refuse(bound))
    }

    /// Refuses a connection of the caller's run where each of its others has a request under way.
    pub(crate) fn crowded(&self, bound: crowd::Bound) -> Failure {
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

#[cfg(test)]
mod tests {
    use super::*;

    fn accounts() -> Accounts {
        let (runs, tenants) = (HashMap::new(), HashMap::new());
        Accounts { runs, tenants, uploads: 0, bytes: 0, tidied: Instant::now() }
    }

    /// A run of a tenant that has a request under way.
    fn run(accounts: &mut Accounts, number: i64, tenant: &str) -> Whose {
        let board = "6f1c0c4e-7a55-4f0e-9d51-0a8d3a6b1c02".parse().unwrap();
        let tenant = (!tenant.is_empty()).then(|| tenant.parse().unwrap());
        let whose = Whose { run: (board, RunId(number)), tenant: (board, tenant) };
        let entered = accounts.enter(&whose, &ApiConfig::default(), Instant::now());
        assert!(entered.is_ok(), "{}", bound(entered));
        whose
    }

    fn bound(refused: Result<(), Bound>) -> &'static str {
        refused.map_or_else(|bound| bound.key, |()| "none")
    }

    #[test]
    fn a_run_and_a_tenant_have_so_many_requests_under_way_and_no_more() {
        let (mut accounts, api) = (accounts(), ApiConfig::default());
        let whose = run(&mut accounts, 1, "hostile");
        let ask = |accounts: &mut Accounts, whose: &Whose| bound(accounts.enter(whose, &api, Instant::now()));
        for _ in 1..api.requests_per_run {
            assert_eq!(ask(&mut accounts, &whose), "none");
        }
        assert_eq!(ask(&mut accounts, &whose), "requests_per_run");
        let others = (2..).take(api.requests_per_tenant - api.requests_per_run);
        others.for_each(|number| drop(run(&mut accounts, number, "hostile")));
        let another = Whose { run: (whose.run.0, RunId(1000)), ..whose.clone() };
        assert_eq!(ask(&mut accounts, &another), "requests_per_tenant");
        run(&mut accounts, 2000, "neighbour");
        accounts.each(&whose, |account| account.requests -= 1);
        assert_eq!(ask(&mut accounts, &another), "none", "one was answered");
    }

    #[test]
    fn a_tenant_with_many_runs_leaves_room_for_the_files_of_others() {
        let (mut accounts, api) = (accounts(), ApiConfig::default());
        let hostile: Vec<Whose> = (0..4).map(|n| run(&mut accounts, n, "hostile")).collect();
        let met: Vec<&str> =
            hostile.iter().flat_map(|run| [run; 5]).map(|run| bound(accounts.upload(run, &api))).collect();
        assert_eq!(met.iter().filter(|bound| **bound == "none").count(), api.uploads_per_tenant);
        assert_eq!(met[4], "uploads_per_run");
        assert_eq!(met[19], "uploads_per_tenant");
        let neighbour = run(&mut accounts, 9, "");
        assert_eq!(bound(accounts.upload(&neighbour, &api)), "none");
    }

    #[test]
    fn tenants_that_use_up_what_all_share_leave_one_of_it_to_each_other() {
        let (mut accounts, api) = (accounts(), ApiConfig::default());
        for number in 0..40 {
            let hostile = run(&mut accounts, number, &format!("hostile-{}", number % 4));
            while accounts.upload(&hostile, &api).is_ok() {}
            while accounts.reserve(&hostile, 1 << 20, &api).is_ok() {}
        }
        assert!(accounts.uploads <= api.uploads + 4 && accounts.bytes <= api.unread_bytes + (4 << 20));
        let neighbour = run(&mut accounts, 99, "neighbour");
        assert_eq!(bound(accounts.upload(&neighbour, &api)), "none");
        assert_eq!(bound(accounts.upload(&neighbour, &api)), "uploads");
        assert_eq!(bound(accounts.reserve(&neighbour, 1 << 20, &api)), "none");
        assert_eq!(bound(accounts.reserve(&neighbour, 1 << 20, &api)), "unread_bytes");
    }

    #[test]
    fn one_reply_may_be_larger_than_a_bound_and_a_second_may_not() {
        let (mut accounts, api) = (accounts(), ApiConfig::default());
        let run = run(&mut accounts, 1, "t");
        assert_eq!(bound(accounts.reserve(&run, api.unread_bytes * 2, &api)), "none");
        assert_eq!(bound(accounts.reserve(&run, 1, &api)), "unread_bytes_per_run");
    }
}
