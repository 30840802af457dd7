//! Client of the verbs: sends a verb to the socket of the daemon, or without a daemon runs it in this process under the lock
//! of the root.

mod exchange;

use std::any::Any;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use http_body_util::Full;
use hyper::body::Bytes;
use hyper::{Method, Request, StatusCode, header};
use kernel::{BoardName, TaskId, brief};

use self::exchange::{DaemonResponse, ExchangeError, answers, exchange, is_listened_at, listener};
use crate::resources::surface;
use api::{
    AnyReply, AnyVerb, BOARD_HEADER, Effect, KEY_HEADER, OperatorKey, REQUEST_HEADER, Typed, Verb, VerbEntry,
    VerbRequest, in_process,
};
use base::cli_context;
use base::environment;
use base::exit::Code;
use base::failure::{Failure, INVALID_BODY, Problem};
use base::invocation::{Address, Invocation, WorkerSelf};
use base::owner::{Owner, OwnerLock, Ownership, Role};
use base::paths::{Root, RootChoice};
use base::short_ids;
use base::terminal::complain;
use host::socket_file::in_its_place;
use service::{Mode, Service};
use setup::config::Config;
use verbs::{Resolve, ResolveReply};

/// Time for which a worker tries again without a daemon. A restart takes less.
const WORKER_RETRIES_FOR: Duration = Duration::from_mins(1);
/// Time for which a command of an operator waits for the lock, or for a daemon that has the lock and does not respond yet.
const OPERATOR_RETRIES_FOR: Duration = Duration::from_secs(5);

/// Content type of most requests.
const JSON: &str = "application/json";

/// Time to wait for a response before checking the daemon's state.
const LOOK: Duration = Duration::from_secs(2);
/// Time without a response after which the client tests that the daemon responds to any request.
const SILENCE: Duration = Duration::from_secs(10);
/// Time limit of that test.
const SIGN_OF_LIFE: Duration = Duration::from_secs(20);
/// Pause before a throttled request is repeated.
const THROTTLED: Duration = Duration::from_millis(500);

/// Sends the verbs of one command line.
#[derive(Debug)]
pub(crate) struct Client {
    here: Invocation,
    /// Service for reads without a daemon, so that several reads open the board once.
    reading: Mutex<Option<Arc<Service>>>,
    /// Empty directory that is read in place of a root that does not exist, because reads do not create a root.
    nothing: OnceLock<tempfile::TempDir>,
}

/// Makes the error for a verb to which a running daemon has not responded.
fn unanswered(effect: Effect, within: Duration, owner: Option<Owner>) -> Failure {
    let named = owner.map(|owner| format!(" ({owner})")).unwrap_or_default();
    let why = format!("the daemon{named} has not answered within {}", brief(within));
    let hint = match (effect, owner.and_then(Owner::pid)) {
        (Effect::Read, Some(pid)) => format!(
            "unless the host is busy, the daemon hangs: systemd restarts it; `kill -9 {pid}` ends it by hand. Its workers continue, and \
             the next daemon takes them over"
        ),
        (Effect::Read, None) => "try again in a moment".to_owned(),
        (Effect::Write | Effect::Daemon, _) => {
            "the change may have been made: check before you repeat it".to_owned()
        }
    };
    Failure::new(Code::TryAgain, why).hint(hint)
}

impl Client {
    /// Makes a client for a root and board, or for the run of this process.
    pub(crate) fn new(root: Root, board: BoardName, worker: Option<WorkerSelf>) -> Self {
        Client {
            here: Invocation::new(root, board, worker),
            reading: Mutex::default(),
            nothing: OnceLock::new(),
        }
    }

    /// Makes a client for the run of this process, outside of a command.
    pub(crate) fn of_this_run() -> Result<Self, Failure> {
        let worker = WorkerSelf::from_env(environment::text)?
            .ok_or_else(|| Failure::failed("it is not a process of a run: SUPERVISOR_TOKEN is not set"))?;
        let root = RootChoice::default().resolve(|name| environment::variable(name).map(Into::into))?;
        let board = environment::text("SUPERVISOR_BOARD").unwrap_or_default();
        let board = board.parse().map_err(|e| Failure::usage(format!("SUPERVISOR_BOARD: {e}")))?;
        Ok(Self::new(root, board, Some(worker)))
    }

    /// Returns the invocation of the command.
    pub(crate) fn here(&self) -> &Invocation {
        &self.here
    }

    pub(crate) fn root(&self) -> &Root {
        self.here.root()
    }

    pub(crate) fn board(&self) -> &BoardName {
        self.here.board()
    }

    /// Returns the run of this process.
    pub(crate) fn worker(&self) -> Option<&WorkerSelf> {
        self.here.worker()
    }

    /// Calls a verb, and returns its reply. An operator may abbreviate ids of tasks.
    pub(crate) fn call<V: Verb>(&self, verb: &V) -> Typed<'_, V::Reply> {
        let (request, entry, within) =
            (verb.http_request(), VerbEntry::for_verb::<V>(), verb.answered_within());
        Typed::of(Box::pin(
            async move { Ok(self.called(request?, &entry, within).await? as Box<dyn Any + Send>) },
        ))
    }

    /// Calls any verb.
    pub(crate) async fn call_any(&self, verb: &dyn AnyVerb) -> Result<Box<dyn AnyReply>, Failure> {
        self.called(verb.http_request()?, &verb.entry(), verb.answered_within()).await
    }

    /// Sends the request of any verb, with whole ids of tasks.
    async fn called(
        &self,
        mut request: VerbRequest,
        verb: &VerbEntry,
        within: Duration,
    ) -> Result<Box<dyn AnyReply>, Failure> {
        let is_open = self.worker().is_none() && request.content_type == JSON;
        if is_open {
            let resolve = async |ids| self.resolved(ids).await;
            let widened = short_ids::widened(verb.request, &request.body, resolve).await?;
            request.body = widened.map_or(request.body, Into::into);
        }
        read(verb, &self.send(&request, verb, within).await?)
    }

    pub(crate) async fn whole_ids(&self, ids: &[TaskId]) -> Result<Vec<TaskId>, Failure> {
        if self.worker().is_some() {
            return Ok(ids.to_vec());
        }
        self.resolved(ids.iter().map(ToString::to_string).collect()).await
    }

    /// Returns the whole ids for abbreviated ones.
    async fn resolved(&self, ids: Vec<String>) -> Result<Vec<TaskId>, Failure> {
        let resolve: &dyn AnyVerb = &Resolve { ids };
        let entry = resolve.entry();
        let body = self.send(&resolve.http_request()?, &entry, resolve.answered_within()).await?;
        Ok(read(&entry, &body)?.typed::<ResolveReply>()?.ids)
    }

    async fn send(
        &self,
        request: &VerbRequest,
        verb: &VerbEntry,
        within: Duration,
    ) -> Result<Bytes, Failure> {
        let request_id = uuid::Uuid::new_v4().to_string();
        let answer = self.deliver(verb.effect, request, &request_id, within).await?;
        self.reply(answer, request, verb.name).await
    }

    /// Calls a reading verb in this process if no daemon runs. A request to the socket would start a daemon if the service
    /// manager listens on it.
    pub(crate) async fn read_here<V: Verb>(&self, verb: &V) -> Result<V::Reply, Failure> {
        let (request, request_id) = (verb.http_request()?, uuid::Uuid::new_v4().to_string());
        let entry = VerbEntry::for_verb::<V>();
        let body = match self.offline(Effect::Read, &request, &request_id).await? {
            Some(answer) => self.reply(answer, &request, entry.name).await?,
            None => self.send(&request, &entry, verb.answered_within()).await?,
        };
        read(&entry, &body)?.typed()
    }

    async fn reply(
        &self,
        answer: DaemonResponse,
        request: &VerbRequest,
        verb: &str,
    ) -> Result<Bytes, Failure> {
        if answer.status.is_success() {
            return Ok(answer.body);
        }
        Err(match serde_json::from_slice::<Problem>(&answer.body) {
            Ok(problem) => self.of_release(problem.into(), request, verb).await,
            Err(_) => Failure::new(
                Code::from_wire(None, answer.status.as_u16()),
                format!("`{verb}` was refused: {}", String::from_utf8_lossy(&answer.body)),
            ),
        })
    }

    /// Replaces a failure by one about another release, if the daemon does not know the verb or a field of its body. The body
    /// was made from the type of the verb, so the user has made no error.
    async fn of_release(&self, failure: Failure, request: &VerbRequest, verb: &str) -> Failure {
        let is_unread = failure.code == Code::Usage && failure.message.starts_with(INVALID_BODY);
        let is_unknown = is_unread || (failure.code == Code::NotFound && self.is_lacking(request).await);
        if !is_unknown {
            return failure;
        }
        let lacks = if is_unread { "what this command sends with" } else { "the verb" };
        let why = failure.message;
        Failure::failed(format!("the daemon is of another release and does not know {lacks} `{verb}`: {why}")).hint(
            "restart it with this binary, which leaves its workers running: systemctl restart supervisor, or \
             supervisor stop --leave and supervisor daemon",
        )
    }

    /// Returns true if the daemon does not know the path. A daemon that knows it refuses the method of this test request.
    async fn is_lacking(&self, request: &VerbRequest) -> bool {
        let address = match self.worker() {
            Some(worker) => worker.socket().clone(),
            None => Address::Unix(self.root().operator_socket()),
        };
        let key = OperatorKey::load(self.root()).ok().flatten().filter(|_| self.worker().is_none());
        let bare = VerbRequest { body: Bytes::new(), ..request.clone() };
        let Ok(mut request) = self.request(&bare, "", key.as_ref()) else { return false };
        *request.method_mut() = Method::GET;
        let answered = tokio::time::timeout(LOOK, exchange(&address, request)).await;
        matches!(answered, Ok(Ok(answer)) if answer.status == StatusCode::NOT_FOUND)
    }

    async fn deliver(
        &self,
        effect: Effect,
        request: &VerbRequest,
        request_id: &str,
        within: Duration,
    ) -> Result<DaemonResponse, Failure> {
        let retries_for = if self.worker().is_some() { WORKER_RETRIES_FOR } else { OPERATOR_RETRIES_FOR };
        // The time for retries begins after the first attempt, which may take longer than the retries.
        let mut until = None;
        loop {
            let (address, key) = match self.worker() {
                Some(worker) => (worker.socket().clone(), None),
                None => (Address::Unix(self.root().operator_socket()), OperatorKey::load(self.root())?),
            };
            let message = self.request(request, request_id, key.as_ref())?;
            let mut answered = self.answered(&address, message, effect, within).await;
            if self.worker().is_none()
                && let Ok(Err(ExchangeError::Denied(_))) = &answered
            {
                // This user is no operator, and may be a member of a tenant.
                let members = Address::Unix(self.root().members_socket());
                let message = self.request(request, request_id, None)?;
                match self.answered(&members, message, effect, within).await {
                    // Without a socket for members, the first error is the one to report.
                    Ok(Err(ExchangeError::Absent(_))) => {}
                    other => answered = other,
                }
            }
            let until = *until.get_or_insert_with(|| Instant::now() + retries_for);
            let trouble = match answered {
                Ok(Ok(answer)) if is_throttled(&answer) && Instant::now() < until => {
                    tokio::time::sleep(THROTTLED).await;
                    continue;
                }
                // The first daemon of a root creates the key after the service manager has accepted the connection.
                Ok(Ok(answer))
                    if answer.status == StatusCode::FORBIDDEN
                        && key.is_none()
                        && self.worker().is_none()
                        && OperatorKey::load(self.root())?.is_some() =>
                {
                    continue;
                }
                Ok(Ok(answer)) => return Ok(answer),
                Ok(Err(trouble)) => trouble,
                // Another try would take as long again, so the caller decides about it.
                Err(unanswered) => return Err(unanswered),
            };
            if let ExchangeError::Denied(reason) = &trouble {
                // Waiting does not change permissions.
                return Err(Failure::new(
                    Code::NotPermitted,
                    format!("the daemon does not serve this user: {reason}"),
                )
                .hint("run the command as the user that owns the root, or choose another with --root DIR"));
            }
            if self.worker().is_none()
                && let ExchangeError::Absent(_) = trouble
                && let Some(answer) = self.offline(effect, request, request_id).await?
            {
                return Ok(answer);
            }
            if Instant::now() >= until {
                return Err(self.gave_up(&trouble));
            }
            // The kernel announces neither a daemon's start nor a free lock, so this polls.
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    /// Waits for a response. The outer error means that none came in time, or that the daemon is stopped by a signal or
    /// responds to no request.
    async fn answered(
        &self,
        address: &Address,
        request: Request<Full<Bytes>>,
        effect: Effect,
        within: Duration,
    ) -> Result<Result<DaemonResponse, ExchangeError>, Failure> {
        let mut exchange = Box::pin(exchange(address, request));
        let start = Instant::now();
        let mut last_sign = start;
        loop {
            if let Ok(answer) = tokio::time::timeout(LOOK.min(within), &mut exchange).await {
                return Ok(answer);
            }
            let ownership = OwnerLock::ownership(self.root());
            let owner = match ownership {
                Ownership::Owned(owner) => Some(owner),
                Ownership::Free | Ownership::Hidden => None,
            };
            let seen = match (ownership, address) {
                // The lock file is closed to this user, but the kernel knows the listening process.
                (Ownership::Hidden, Address::Unix(path)) if self.worker().is_none() => {
                    listener(path).await.map(Owner::of_socket)
                }
                _ => owner,
            };
            if let Some(pid) = seen.and_then(Owner::stopped) {
                let who =
                    if owner.is_some() { "continue it with" } else { "ask its operator to continue it with" };
                return Err(Failure::new(
                    Code::TryAgain,
                    format!("the daemon (pid {pid}) is stopped and does not answer"),
                )
                .hint(format!("{who}: kill -CONT {pid}; it may still carry out the request")));
            }
            // A daemon without a response may be busy. The request is given up only if the daemon does not respond to any
            // other request either.
            let left = within.saturating_sub(start.elapsed());
            if last_sign.elapsed() >= SILENCE && !left.is_zero() {
                tokio::select! {
                    answer = &mut exchange => return Ok(answer),
                    is_alive = answers(address, SIGN_OF_LIFE.min(left)) => if is_alive {
                        last_sign = Instant::now();
                        continue;
                    },
                }
                return Err(unanswered(effect, start.elapsed(), owner));
            }
            if left.is_zero() {
                return Err(unanswered(effect, within, owner));
            }
        }
    }

    fn gave_up(&self, trouble: &ExchangeError) -> Failure {
        let (ExchangeError::Absent(reason) | ExchangeError::Denied(reason) | ExchangeError::Broken(reason)) =
            trouble;
        if self.worker().is_some() {
            return Failure::new(Code::Unreachable, format!("the daemon does not answer: {reason}")).hint(
                match trouble {
                    ExchangeError::Absent(_) | ExchangeError::Denied(_) => {
                        "nothing was recorded; try again in a moment"
                    }
                    ExchangeError::Broken(_) => "the change may have been made: check before you repeat it",
                },
            );
        }
        match OwnerLock::ownership(self.root()) {
            Ownership::Owned(owner) => Failure::new(
                Code::TryAgain,
                format!("another process is using {}: {owner}", self.root().dir().display()),
            )
            .hint(
                in_its_place(&self.root().operator_socket())
                    .unwrap_or_else(|| "try again in a moment".to_owned()),
            ),
            Ownership::Free => {
                Failure::new(Code::Unreachable, format!("the daemon does not answer: {reason}"))
                    .hint("start one with: supervisor daemon")
            }
            Ownership::Hidden => self.no_daemon(),
        }
    }

    /// Makes the error for a request that needs a daemon, if there is none.
    pub(crate) fn no_daemon(&self) -> Failure {
        let root = self.root().dir().display();
        let failure = Failure::new(Code::Unreachable, format!("no daemon serves {root}"));
        match OwnerLock::ownership(self.root()) {
            Ownership::Hidden => failure.hint(
                "the root is another user's: ask its operator to start one, or choose a root of your own with --root DIR",
            ),
            Ownership::Free | Ownership::Owned(_) => failure
                .hint("start one with: supervisor daemon; if yours has another root, name it with --root DIR"),
        }
    }

    /// Returns true if a daemon or a pass runs the tasks of the root. For a worker it is always true: its run has a daemon.
    pub(crate) async fn is_served(&self) -> bool {
        if self.worker().is_some() {
            return true;
        }
        match OwnerLock::ownership(self.root()) {
            Ownership::Owned(_) => true,
            Ownership::Free => false,
            Ownership::Hidden => is_listened_at(&self.root().members_socket()).await,
        }
    }

    fn request(
        &self,
        request: &VerbRequest,
        request_id: &str,
        key: Option<&OperatorKey>,
    ) -> Result<Request<Full<Bytes>>, Failure> {
        let mut message = Request::post(&request.path)
            .header(header::HOST, "supervisor")
            .header(header::CONTENT_TYPE, request.content_type)
            .header(BOARD_HEADER, self.board().as_str())
            .header(REQUEST_HEADER, request_id);
        if let Some(worker) = self.worker() {
            message = message.header(header::AUTHORIZATION, format!("Bearer {}", worker.token()));
        }
        if let Some(key) = key {
            message = message.header(KEY_HEADER, key.as_str());
        }
        message
            .body(Full::new(request.body.clone()))
            .map_err(|e| Failure::failed(format!("the request cannot be written: {e}")))
    }

    /// Runs the verb in this process. Returns none if another process owns the root; the caller then tries its socket again.
    async fn offline(
        &self,
        effect: Effect,
        request: &VerbRequest,
        request_id: &str,
    ) -> Result<Option<DaemonResponse>, Failure> {
        let (mode, _lock) = match effect {
            _ if OwnerLock::ownership(self.root()) == Ownership::Hidden => return Err(self.no_daemon()),
            Effect::Daemon => {
                return match OwnerLock::owner(self.root()) {
                    Some(_) => Ok(None),
                    None => Err(self.no_daemon()),
                };
            }
            Effect::Read => (Mode::Reading, None),
            Effect::Write => {
                self.root().create()?;
                match OwnerLock::try_acquire(self.root(), Role::Command)? {
                    Some(lock) => (Mode::Offline, Some(lock)),
                    None => return Ok(None),
                }
            }
        };
        let service = match mode {
            Mode::Reading => self.reader()?,
            Mode::Offline | Mode::Daemon(_) => self.service(mode)?,
        };
        let request = self.request(request, request_id, None)?;
        let (status, body) = in_process(service, surface(), request).await?;
        Ok(Some(DaemonResponse { status, body }))
    }
}

impl Client {
    fn service(&self, mode: Mode) -> Result<Arc<Service>, Failure> {
        Ok(Arc::new(Service::new(self.root().clone(), Config::load(self.root())?, mode)))
    }

    fn reader(&self) -> Result<Arc<Service>, Failure> {
        let mut reading = self.reading.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(service) = &*reading {
            return Ok(Arc::clone(service));
        }
        let (config, defect) = Config::to_read_with(self.root());
        let root = if self.root().is_nothing() { self.empty_root()? } else { self.root().clone() };
        let service = Arc::new(Service::new(root, config, Mode::Reading));
        if let Some(defect) = defect {
            service.use_settings(Err(defect));
        }
        *reading = Some(Arc::clone(&service));
        Ok(service)
    }

    /// Returns an empty root in place of a missing one. Warns a person who named the root, because the name may be mistyped.
    fn empty_root(&self) -> Result<Root, Failure> {
        let place = std::env::temp_dir();
        let dir = tempfile::tempdir().map_err(|e| Failure::file("make a directory in", &place, &e))?;
        let dir = self.nothing.get_or_init(|| dir);
        if cli_context::names_root() && self.root().is_named() {
            let named = self.root().dir().display();
            complain(&format!(
                "warning: {named} does not exist: there is no board until something is created there"
            ));
        }
        Ok(self.root().with_state(dir.path()))
    }
}

fn read(verb: &VerbEntry, body: &[u8]) -> Result<Box<dyn AnyReply>, Failure> {
    (verb.reply)(body).map_err(|e| {
        Failure::failed(format!("the reply to `{}` cannot be read: {e}", verb.name))
            .hint("the daemon may have another version: restart it with this binary")
    })
}

/// Returns true if a limit on the rate or the number of requests refused the request, so that a later try may succeed. An
/// exhausted quota or budget does not count.
fn is_throttled(answer: &DaemonResponse) -> bool {
    let is_exhausted = |problem: Problem| Failure::from(problem).code == Code::Exhausted;
    answer.status == StatusCode::TOO_MANY_REQUESTS
        && !serde_json::from_slice::<Problem>(&answer.body).is_ok_and(is_exhausted)
}
