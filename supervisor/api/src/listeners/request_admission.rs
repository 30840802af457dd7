//! Admission of requests: limits the requests per second of a run, and the requests, bytes and uploads that a run or a
//! tenant may have in progress.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use kernel::{Actor, RunId};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::connection_limits;
use super::usage::CallerUsage;
use super::usage_table::{CountedFor, ReachedLimit, RunKey, UsageTable, run_name};
use crate::identity::{CallerIdentity, IdentifiedCaller};
use base::exit::Code;
use base::failure::Failure;
use base::response::REST;
use service::{BoardHandle, Service};

/// Smallest interval between two events about the throttling of a run, and between two log lines about it.
const NOTED: Duration = Duration::from_mins(1);

/// Admission control for the workers of one daemon.
#[derive(Debug)]
pub struct RequestAdmission {
    service: Arc<Service>,
    usage: Mutex<UsageTable>,
}

/// Origin of an admitted request, whose usage is counted.
#[derive(Debug)]
struct AdmittedRequest {
    admission: Arc<RequestAdmission>,
    /// Board of a worker's run; none for a member of a tenant.
    board: Option<Arc<BoardHandle>>,
    counted_for: CountedFor,
}

impl RequestAdmission {
    /// Makes an admission control that reads the limits from the service's configuration at each request.
    pub fn new(service: Arc<Service>) -> Self {
        RequestAdmission { service, usage: Mutex::new(UsageTable::new()) }
    }

    /// Counts a request of a run, before any other part of the request is read.
    ///
    /// # Errors
    /// Fails if the run exceeds its request rate. The run is then paused for [`REST`].
    pub fn count(&self, run: RunKey) -> Result<(), Failure> {
        let rate = self.service.config().api.requests_per_second_per_run;
        let now = Instant::now();
        let mut usage = self.usage();
        usage.tidy(now);
        let counters = usage.runs.entry(run).or_insert_with(|| CallerUsage::new(rate, now));
        if counters.take_token(rate, now) {
            return Ok(());
        }
        counters.rests_until = Some(now + REST);
        drop(usage);
        let bound = ReachedLimit::rate(run_name(run.1), rate, "requests_per_second_per_run");
        let board = self.service.served().into_iter().find(|board| board.id() == run.0);
        Err(self.refuse(board.as_deref(), run, bound))
    }

    /// Returns the end of a run's pause, if it is paused.
    pub(super) fn rests_until(&self, run: RunKey) -> Option<Instant> {
        let until = self.usage().runs.get(&run)?.rests_until?;
        (until > Instant::now()).then_some(until)
    }

    /// Returns the refusal of a request. Also records it as an event of the run's task and in the log, at most once per
    /// [`NOTED`] and run.
    fn refuse(&self, board: Option<&BoardHandle>, run: RunKey, bound: ReachedLimit) -> Failure {
        let ReachedLimit { owner, limit, key } = bound;
        let now = Instant::now();
        let fresh = self.usage().runs.get_mut(&run).is_some_and(|counters| {
            let fresh = counters.noted.is_none_or(|at| now.duration_since(at) > NOTED);
            if fresh {
                counters.noted = Some(now);
            }
            fresh
        });
        if fresh && let Some(board) = board {
            tracing::warn!(board = %board.name(), run = %run.1, bound = key, "throttled");
            note(board, run.1, key);
        }
        Failure::new(Code::Throttled, format!("{owner} {limit}"))
            .hint(format!("wait a moment and send it again; the bound is {key} in [api] of supervisor.toml"))
    }

    /// Admits a counted request. Returns none for an operator, who is limited only by the number of connections.
    pub fn admit(self: &Arc<Self>, caller: &IdentifiedCaller) -> Result<Option<RequestPermit>, Failure> {
        let Some(run) = caller.counted() else { return Ok(None) };
        let tenant = match &caller.identity {
            CallerIdentity::Live(Actor { tenant, .. }) | CallerIdentity::Ended { tenant, .. } => {
                tenant.clone()
            }
        };
        let board = caller.board.clone();
        let tenant = (board.as_ref().map_or(run.0, |board| board.id()), tenant);
        let admission = Arc::clone(self);
        let counted_for = CountedFor { run, tenant };
        let request = Arc::new(AdmittedRequest { admission, board, counted_for });
        let config = self.service.config();
        let entered = self.usage().count(&request.counted_for, &config.api, Instant::now());
        match entered {
            Ok(()) => Ok(Some(RequestPermit(request))),
            Err(bound) => Err(request.refuse(bound)),
        }
    }

    fn usage(&self) -> MutexGuard<'_, UsageTable> {
        self.usage.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl AdmittedRequest {
    fn refuse(&self, bound: ReachedLimit) -> Failure {
        self.admission.refuse(self.board.as_deref(), self.counted_for.run, bound)
    }
}

/// Records the throttling of a run as an event of its task.
pub(super) fn note(board: &BoardHandle, run: RunId, bound: &'static str) {
    board.submit("throttle_not_noted", move |board| board.note_throttled(run, bound));
}

/// Admission of a worker's or member's request. The request counts as in progress until this is dropped.
#[derive(Debug)]
pub struct RequestPermit(Arc<AdmittedRequest>);

/// Permits of a verb. They are held until the verb has finished, even if the caller has closed the connection.
#[derive(Debug)]
pub struct VerbPermits {
    _permits: [Option<OwnedSemaphorePermit>; 2],
    _request: Arc<RequestPermit>,
}

impl VerbPermits {
    pub fn new(permit: Arc<RequestPermit>, permits: [Option<OwnedSemaphorePermit>; 2]) -> Self {
        VerbPermits { _permits: permits, _request: permit }
    }
}

/// Bytes that are reserved for a caller until this is dropped.
#[derive(Debug)]
pub struct Reserved(Arc<AdmittedRequest>, usize);

/// Upload that counts as in progress until this is dropped.
#[derive(Debug)]
pub struct Upload(Arc<AdmittedRequest>);

impl RequestPermit {
    /// Waits for one of the run's permits to process a request. Returns none if the run has no account any more.
    pub async fn processing_permit(&self) -> Option<OwnedSemaphorePermit> {
        let permits = self
            .0
            .admission
            .usage()
            .runs
            .get(&self.0.counted_for.run)
            .map(|counters| Arc::clone(&counters.permits));
        // The semaphore is never closed.
        permits?.acquire_owned().await.ok()
    }

    /// Takes the run's only permit for a slow request. Fails if another request of the run has it.
    pub(crate) fn slow_permit(&self) -> Result<Option<OwnedSemaphorePermit>, Failure> {
        let long = self
            .0
            .admission
            .usage()
            .runs
            .get(&self.0.counted_for.run)
            .map(|counters| Arc::clone(&counters.slow_permit));
        long.map(Semaphore::try_acquire_owned).transpose().map_err(|_| {
            Failure::new(Code::TryAgain, "another request of this run is waiting for an answer")
                .hint("wait for that one: a run asks one question at a time")
        })
    }

    /// Reserves bytes for a body or a reply. Fails if the run, its tenant or the daemon would exceed its limit.
    pub fn reserve(&self, bytes: usize) -> Result<Reserved, Failure> {
        let config = self.0.admission.service.config();
        let reserved = self.0.admission.usage().reserve(&self.0.counted_for, bytes, &config.api);
        reserved.map(|()| Reserved(Arc::clone(&self.0), bytes)).map_err(|bound| self.0.refuse(bound))
    }

    /// Returns the refusal of a connection of the caller's run, because each of its other connections has a request in
    /// progress.
    pub(crate) fn refuse_connection(&self, bound: connection_limits::ConnectionLimit) -> Failure {
        let owner = format!("{}:", self.0.counted_for.run());
        self.0.refuse(ReachedLimit { owner, limit: bound.to_string(), key: "connections_per_worker" })
    }

    pub fn upload(&self) -> Result<Upload, Failure> {
        let config = self.0.admission.service.config();
        let begun = self.0.admission.usage().upload(&self.0.counted_for, &config.api);
        begun.map(|()| Upload(Arc::clone(&self.0))).map_err(|bound| self.0.refuse(bound))
    }
}

impl Drop for RequestPermit {
    fn drop(&mut self) {
        self.0.admission.usage().each(&self.0.counted_for, |counters| counters.requests -= 1);
    }
}

impl Drop for Reserved {
    fn drop(&mut self) {
        let mut usage = self.0.admission.usage();
        usage.bytes -= self.1;
        usage.each(&self.0.counted_for, |counters| counters.bytes -= self.1);
    }
}

impl Drop for Upload {
    fn drop(&mut self) {
        let mut usage = self.0.admission.usage();
        usage.uploads -= 1;
        usage.each(&self.0.counted_for, |counters| counters.uploads -= 1);
    }
}
