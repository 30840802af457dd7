//! A call of a verb: its caller, its board, and the functions that read and write the board.

pub(super) mod any;

use std::any::Any;
use std::sync::Arc;
use std::time::Duration;

use hyper::body::Bytes;
use kernel::{
    Actor, ActorKind, Address, Board, BoardName, Caller, EventFilter, EventId, Holder, Missing, Request,
    RequestId, RequestReply, Sweep, SweepScope, Swept, TaskId, TemplateTask, Tenant, View, WorkerRole,
};
use schemars::{JsonSchema, Schema, schema_for};
use serde::Serialize;
use serde::de::DeserializeOwned;

use self::any::to_json;
pub use self::any::{AnyReply, AnyVerb, Typed, Unfit, Working};
use super::confined::confined;
use super::identity::{CallingPlugin, PluginScope};
use super::listeners::VerbPermits;
use super::policy_choice::{PolicyChoice, PolicyGiver, require_name};
use super::work::{blocking, to_its_end};
use base::exit::Code;
use base::failure::Failure;
use base::json;
use base::short_ids;
use service::{BoardHandle, Service, stopped};

/// Time that a client waits for most verbs. Their work takes milliseconds, but much longer on a loaded host.
pub const REPLY_TIME: Duration = Duration::from_secs(30);
/// Time limit of a worker's request, unless its verb waits for an event.
pub(super) const WORKER_TIME: Duration = Duration::from_mins(1);

/// Callers that may call a verb.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Audience {
    /// Operators only.
    Operator,
    /// Operators, and orchestrators for the tasks that they created.
    Orchestrator,
    /// Operators, and workers within the limits of their run.
    Worker,
}

impl Audience {
    /// Returns true if the caller belongs to it.
    pub fn admits(self, actor: &Actor) -> bool {
        let is_worker = actor.kind == ActorKind::Worker;
        match self {
            Audience::Operator => !is_worker,
            Audience::Orchestrator => !is_worker || actor.role == WorkerRole::Orchestrator,
            Audience::Worker => true,
        }
    }
}

/// Resources that a verb needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Effect {
    /// Reads the board; works offline without a lock.
    Read,
    /// Writes the board; works offline under the root's lock.
    Write,
    Daemon,
}

// Decision 0199.
/// Fate of a running verb when its caller disconnects or its time limit expires.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HangUp {
    /// The verb runs to its end, so that its steps are not left incomplete.
    GoesOn,
    /// The verb is dropped at its next await. All that it holds is released by its drop, and all that it writes is
    /// one commit.
    Ends,
}

/// Callers to whom a verb is offered as an MCP tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// Operators and all workers.
    Worker,
    /// Operators, workers of a review, and workers with the role of a reviewer.
    Reviewer,
    /// Operators, and workers with the role of an orchestrator.
    Orchestrator,
    /// Operators alone.
    Operator,
}

/// A verb as an MCP tool.
#[derive(Clone, Copy, Debug)]
pub struct Tool {
    /// Callers to whom it is offered.
    pub scope: Scope,
    /// Information for agents in addition to the description of the request. Whole sentences.
    pub about: &'static str,
}

/// Board that a verb needs, in addition to the permission to act on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnBoard {
    /// The named board, which must exist.
    Named,
    /// The named board, created if missing.
    Made,
    /// The named board, or none if the daemon does not serve it because of a defect.
    IfServed,
    /// None: the verb concerns the root or the daemon.
    None,
}

/// A verb of the protocol. Its request is the body of the API and the arguments of the command line; its reply is the
/// JSON of both.
pub trait Verb: Serialize + DeserializeOwned + JsonSchema + Send + Sync + 'static {
    /// Word on the command line and in the path of the API.
    const NAME: &'static str;
    /// Permitted callers.
    const AUDIENCE: Audience;
    /// Resources that it needs.
    const EFFECT: Effect;
    /// Board that it needs.
    const ON: OnBoard = OnBoard::Named;
    /// Fate when its caller disconnects. A verb that waits for an event must end.
    const HANG_UP: HangUp = match Self::EFFECT {
        Effect::Read => HangUp::Ends,
        Effect::Write | Effect::Daemon => HangUp::GoesOn,
    };
    /// MCP tool; none if it is not offered.
    const TOOL: Option<Tool> = None;
    /// Permits calls by members of a tenant. Such a verb must show and change only what [`Verb::confine`] and the
    /// tasks in its request permit.
    const MEMBERS: bool = false;
    /// Permits calls from a session of the dashboard.
    const SESSIONS: bool = true;
    /// True if the verb itself checks each task that a member names, and reports a result for each.
    const ROWS: bool = false;
    type Reply: Serialize + DeserializeOwned + Send + 'static;

    /// Returns the significant contents of the request, which a repeat must match.
    fn substance(&self) -> Result<Vec<u8>, Failure> {
        to_json(self)
    }

    /// Returns the HTTP request: the verb as JSON, unless it consists mostly of bytes.
    fn http_request(&self) -> Result<VerbRequest, Failure> {
        VerbRequest::from_verb(self)
    }

    /// Fills in the task of the caller's own run if the request names none.
    fn default_to_own(&mut self, _own: &TaskId) {}

    /// Returns the policy that the request names for the runs of a task.
    fn policy(&self) -> Option<&str> {
        None
    }

    /// Restricts a member's request to its tenant, or refuses a request that reaches beyond it.
    fn confine(&mut self, _tenant: &Tenant) -> Result<(), Failure> {
        Ok(())
    }

    /// Returns the time that a client waits for the reply of a daemon that accepted the request.
    fn answered_within(&self) -> Duration {
        REPLY_TIME
    }

    /// Returns the time limit of a worker's request.
    fn longest(&self) -> Duration {
        WORKER_TIME
    }

    fn run(self, call: Call) -> impl Future<Output = Result<Self::Reply, Failure>> + Send;
}

/// Declares a verb inside of its `impl Verb`: its name, callers, effect and reply, and where they are not as by default
/// its board (`on`), members of tenants (`members`), sessions of the dashboard (`no_sessions`), its fate when its caller
/// disconnects (`hang_up`), its check of each task (`rows`) and its MCP tool (`tool`).
#[macro_export]
macro_rules! verb {
    ($name:literal: $audience:ident, $effect:ident $(, $option:ident $(($($value:tt)*))?)* => $reply:ty) => {
        const NAME: &'static str = $name;
        const AUDIENCE: $crate::Audience = $crate::Audience::$audience;
        const EFFECT: $crate::Effect = $crate::Effect::$effect;
        $($crate::verb!(@$option $($($value)*)?);)*
        type Reply = $reply;
    };
    (@on $board:ident) => {
        const ON: $crate::OnBoard = $crate::OnBoard::$board;
    };
    (@members) => {
        const MEMBERS: bool = true;
    };
    (@no_sessions) => {
        const SESSIONS: bool = false;
    };
    (@rows) => {
        const ROWS: bool = true;
    };
    (@hang_up $fate:ident) => {
        const HANG_UP: $crate::HangUp = $crate::HangUp::$fate;
    };
    (@tool $scope:ident, $about:expr) => {
        const TOOL: Option<$crate::Tool> = Some($crate::Tool { scope: $crate::Scope::$scope, about: $about });
    };
}

/// Function that parses the request of a verb.
pub(crate) type ParseRequest = fn(&[u8]) -> Result<Box<dyn AnyVerb>, Unfit>;

/// A verb in a table of verbs.
#[derive(Clone, Copy, Debug)]
pub struct VerbEntry {
    /// Word on the command line and in the path of the API.
    pub name: &'static str,
    /// Permitted callers.
    pub audience: Audience,
    /// Resources that it needs.
    pub effect: Effect,
    /// Board that it needs.
    pub on: OnBoard,
    /// Returns the JSON Schema of its request.
    pub request: fn() -> Schema,
    /// Parses a request.
    pub parse: ParseRequest,
    /// Parses a reply to it.
    pub reply: fn(&[u8]) -> serde_json::Result<Box<dyn AnyReply>>,
    pub tool: Option<Tool>,
    /// Permits calls by members of a tenant.
    pub members: bool,
    /// Permits calls from a session of the dashboard.
    pub(super) sessions: bool,
    /// Fate when its caller disconnects.
    hang_up: HangUp,
    /// True if the verb itself checks each task that a member names.
    rows: bool,
}

impl VerbEntry {
    pub fn for_verb<V: Verb>() -> Self {
        let request = || schema_for!(V);
        VerbEntry {
            name: V::NAME,
            audience: V::AUDIENCE,
            effect: V::EFFECT,
            on: V::ON,
            request,
            parse: any::request::<V>,
            reply: any::reply::<V::Reply>,
            tool: V::TOOL,
            members: V::MEMBERS,
            sessions: V::SESSIONS,
            hang_up: V::HANG_UP,
            rows: V::ROWS,
        }
    }

    /// Returns true if the caller may call it.
    pub fn admits(&self, actor: &Actor) -> bool {
        self.audience.admits(actor) && (self.members || confined(actor).is_none())
    }
}

/// Form of a verb as an HTTP request, without its headers.
#[derive(Clone, Debug)]
pub struct VerbRequest {
    /// Path with the query.
    pub path: String,
    pub content_type: &'static str,
    pub body: Bytes,
}

impl VerbRequest {
    /// Makes the request with the verb as JSON.
    pub fn from_verb<V: Verb>(verb: &V) -> Result<Self, Failure> {
        Ok(Self::json(V::NAME, to_json(verb)?))
    }

    fn json(verb: &str, body: Vec<u8>) -> Self {
        let path = format!("/api/v1/verbs/{verb}");
        VerbRequest { path, content_type: "application/json", body: body.into() }
    }
}

/// A call: all that a verb may use.
#[derive(Debug)]
pub struct Call {
    /// Boards and configuration.
    pub service: Arc<Service>,
    /// Name of the board in the request.
    name: BoardName,
    /// The board itself; none for a verb that concerns the root.
    board: Option<Arc<BoardHandle>>,
    pub actor: Actor,
    /// Id of the request, if the caller may repeat it.
    id: Option<RequestId>,
    /// Key under which the reply of a write is stored, so that a repeat gets the same reply.
    request: Option<Request>,
    /// Tasks that a member's request names. All of them must belong to the tenant.
    named: Arc<[TaskId]>,
    /// Address of the chat message that caused the call.
    chat: Option<Address>,
    plugin: Option<CallingPlugin>,
    /// Permits of a worker's request.
    permits: Option<VerbPermits>,
}

impl Call {
    /// Makes a call of a permitted caller.
    pub fn new(
        service: Arc<Service>,
        name: BoardName,
        board: Option<Arc<BoardHandle>>,
        actor: Actor,
        id: Option<RequestId>,
    ) -> Self {
        let (request, named, chat, plugin, turn) = (None, Arc::default(), None, None, None);
        Call { service, name, board, actor, id, request, named, chat, plugin, permits: turn }
    }

    /// Sets the plugin that calls.
    pub(super) fn by_plugin(self, plugin: CallingPlugin) -> Self {
        Call { plugin: Some(plugin), ..self }
    }

    fn bounds(&self) -> CallBounds {
        let plugin = self.plugin.as_ref();
        CallBounds {
            named: Arc::clone(&self.named),
            choice: PolicyChoice::for_giver(&self.service, self.asking()),
            is_untenanted: plugin.is_some_and(|plugin| plugin.scope == PluginScope::Of(None)),
        }
    }

    /// Returns the caller, for the decision which policies it may give.
    fn asking(&self) -> PolicyGiver<'_> {
        PolicyGiver {
            actor: &self.actor,
            plugin: self.plugin.as_ref().map(|plugin| &plugin.name),
            is_chat: self.chat.is_some(),
        }
    }

    /// Refuses tasks that the daemon will make for the caller, by the rule for the policies of its own writes.
    pub fn require_policies(&self, tasks: &[TemplateTask]) -> Result<(), Failure> {
        let Some(choice) = self.bounds().choice else { return Ok(()) };
        for TemplateTask { task, .. } in tasks {
            let policy = task.policy.as_deref();
            if let Some(policy) = policy {
                require_name(&self.service, self.asking(), policy)?;
            }
            if let Some(assignee) = &task.assignee {
                choice.require_performer(assignee, policy)?;
            }
        }
        Ok(())
    }

    /// Sets the chat from which the call comes; its notifications go there.
    #[must_use]
    pub fn from_chat(self, chat: Address) -> Self {
        Call { chat: Some(chat), ..self }
    }

    /// Attaches the permits of a worker's request, held until the verb has finished.
    #[must_use]
    pub fn counted(self, turn: VerbPermits) -> Self {
        Call { permits: Some(turn), ..self }
    }

    /// Returns the address of the chat message that caused the call.
    pub fn chat(&self) -> Option<&Address> {
        self.chat.as_ref()
    }

    /// Returns the name of the board in the request. For a verb that concerns the root, no such board need exist.
    pub fn board_name(&self) -> &BoardName {
        &self.name
    }

    /// Returns the board of the call.
    pub fn board(&self) -> Result<&Arc<BoardHandle>, Failure> {
        self.board.as_ref().ok_or_else(|| Failure::failed("this request is about no board"))
    }

    /// Runs a verb. [`HangUp`] decides its fate when the caller disconnects.
    pub fn make<V: Verb>(self, verb: V) -> Typed<'static, V::Reply> {
        let work = self.make_any(Box::new(verb));
        Typed::of(Box::pin(async move { Ok(work.await? as Box<dyn Any + Send>) }))
    }

    /// Runs any verb.
    pub async fn make_any(mut self, mut verb: Box<dyn AnyVerb>) -> Result<Box<dyn AnyReply>, Failure> {
        let entry = verb.entry();
        if let Some(policy) = verb.policy() {
            require_name(&self.service, self.asking(), policy)?;
        }
        if let Some(tenant) = self.confined().cloned() {
            verb.confine(&tenant)?;
            if !entry.rows {
                self.named = short_ids::of_request(&(entry.request)(), &verb.to_json()?)?.into();
            }
            // Checked even if the verb asks the daemon before it reads the board.
            if self.board.is_some() && !self.named.is_empty() {
                self.read(|_| Ok(())).await?;
            }
        }
        let mut call = self.repeatable(&*verb)?;
        let (service, turn) = (Arc::clone(&call.service), call.permits.take());
        let work = verb.work(call);
        let work = async move {
            let _turn = turn;
            work.await
        };
        match entry.hang_up {
            HangUp::GoesOn => to_its_end(&service, entry.name, work).await,
            HangUp::Ends => work.await,
        }
    }

    /// Prepares the call for repeats: its reply is stored under the caller's request id.
    pub fn repeatable(mut self, verb: &dyn AnyVerb) -> Result<Self, Failure> {
        if let Some(id) = self.id.take() {
            let substance = verb.substance()?;
            self.request =
                Some(Request::new(Caller::for_actor(&self.actor), verb.entry().name, id, &substance));
        }
        Ok(self)
    }

    /// Returns the tenant to which a member's call is restricted.
    pub fn confined(&self) -> Option<&Tenant> {
        confined(&self.actor)
    }

    /// Reads the board on a blocking thread.
    pub fn read<T: Send + 'static>(
        &self,
        f: impl FnOnce(&View<'_>) -> Result<T, kernel::Error> + Send + 'static,
    ) -> Typed<'static, T> {
        let read = |view: &View<'_>| f(view).map(|found| Box::new(found) as Box<dyn Any + Send>);
        Typed::of(self.read_any(Box::new(read)))
    }

    fn read_any(&self, f: Read) -> Working<'static, Box<dyn Any + Send>> {
        let board = self.board().cloned();
        let (named, actor) = (Arc::clone(&self.named), self.actor.clone());
        Box::pin(async move {
            let board = board?;
            let read = move |view: &View<'_>| {
                require_seen(view, &named, &actor)?;
                f(view)
            };
            blocking("the read did not finish", move || board.readers().with(read))
                .await?
                .map_err(Failure::from)
        })
    }

    /// Finds contents of attachments that no task refers to.
    pub async fn sweep_blobs(&self, extent: SweepScope, sweep: Sweep) -> Result<Swept, Failure> {
        let board = Arc::clone(self.board()?);
        blocking("the sweep did not finish", move || board.sweep_blobs(&extent, sweep)).await?
    }

    /// Refuses a decision about a task with a live worker if no daemon could end the worker.
    pub async fn refuse_live_without_daemon(&self, tasks: &[TaskId]) -> Result<(), Failure> {
        if self.service.daemon().is_some() {
            return Ok(());
        }
        let tasks = tasks.to_vec();
        let live = self
            .read(move |view| {
                let runs = view.open_runs()?;
                Ok(runs
                    .into_iter()
                    .find(|run| run.holder == Holder::Supervisor && tasks.contains(&run.task_id)))
            })
            .await?;
        match live {
            None => Ok(()),
            Some(run) => Err(Failure::new(
                Code::Unreachable,
                format!("{} has a worker (run {}), and no daemon is running to end it", run.task_id, run.id),
            )
            .hint("start one with: supervisor daemon; then try again")),
        }
    }

    /// Returns the id under which the caller may repeat the request.
    pub fn request_id(&self) -> Option<&RequestId> {
        self.request.as_ref().map(Request::id)
    }

    /// Returns the stored reply to the same request.
    pub async fn replied<T: DeserializeOwned>(&self) -> Result<Option<T>, Failure> {
        self.replied_under(None).await
    }

    /// Returns the stored reply to the same request, or to a step of it.
    pub(super) async fn replied_under<T: DeserializeOwned>(
        &self,
        step: Option<&'static str>,
    ) -> Result<Option<T>, Failure> {
        let stored = self.stored(step).await?;
        let read = |text: String| {
            serde_json::from_slice(text.as_bytes())
                .map_err(|e| Failure::failed(format!("the stored reply cannot be read: {e}")))
        };
        stored.map(read).transpose()
    }

    async fn stored(&self, step: Option<&'static str>) -> Result<Option<String>, Failure> {
        let Some(request) = self.request.as_ref().map(|request| key(request, step)) else { return Ok(None) };
        self.read(move |view| view.stored_reply(&request)).await
    }

    /// Runs a job in the writer's next transaction. Returns once the transaction is durable. The reply is stored with
    /// the request id in the same transaction.
    pub fn write<T: Serialize + DeserializeOwned + Send + 'static>(
        &self,
        job: impl FnOnce(&mut Board<'_>, &Actor) -> Result<T, kernel::Error> + Send + 'static,
    ) -> Typed<'static, T> {
        self.write_under(None, job)
    }

    /// Does the same for the request or for a step of it, whose reply is stored separately.
    pub(super) fn write_under<T: Serialize + DeserializeOwned + Send + 'static>(
        &self,
        step: Option<&'static str>,
        job: impl FnOnce(&mut Board<'_>, &Actor) -> Result<T, kernel::Error> + Send + 'static,
    ) -> Typed<'static, T> {
        let request = self.request.as_ref().map(|request| key(request, step));
        let Some(request) = request else { return self.write_further(job) };
        let job = |board: &mut Board<'_>, actor: &Actor| {
            job(board, actor).map(|reply| Box::new(reply) as Box<dyn AnyReply>)
        };
        Typed::of(self.write_once(request, Box::new(job), any::reply::<T>))
    }

    fn write_once(
        &self,
        request: Request,
        job: Write<Box<dyn AnyReply>>,
        read: fn(&[u8]) -> serde_json::Result<Box<dyn AnyReply>>,
    ) -> Working<'static, Box<dyn Any + Send>> {
        let board = self.board().cloned();
        let (actor, bounds) = (self.actor.clone(), self.bounds());
        Box::pin(async move {
            let (done, reply) = tokio::sync::oneshot::channel();
            let job = move |board: &mut Board<'_>| {
                let reply = bounds.hold(board, &actor, job)?;
                let mut buffer = json::Buffer::of(usize::MAX);
                let json = reply.write(&mut buffer).and_then(|()| buffer.into_text());
                let json = json.map_err(|error| not("stored", &error))?;
                let reply: Box<dyn Any + Send> = reply;
                Ok(RequestReply { json, made: Some(reply) })
            };
            board?.writer()?.submit_reply_once(
                request,
                Box::new(job),
                Box::new(move |result| drop(done.send(result))),
            );
            let RequestReply { json, made } = reply.await.map_err(stopped)??;
            if let Some(made) = made {
                return Ok(made);
            }
            let stored: Box<dyn Any + Send> = read(json.as_bytes()).map_err(|error| not("read", &error))?;
            Ok(stored)
        })
    }

    /// Runs a job after the write whose reply is stored; a repeat of the request runs it again.
    pub fn write_further<T: Send + 'static>(
        &self,
        job: impl FnOnce(&mut Board<'_>, &Actor) -> Result<T, kernel::Error> + Send + 'static,
    ) -> Typed<'static, T> {
        let job = |board: &mut Board<'_>, actor: &Actor| {
            job(board, actor).map(|made| Box::new(made) as Box<dyn Any + Send>)
        };
        Typed::of(self.write_any(Box::new(job)))
    }

    fn write_any(&self, job: Write<Box<dyn Any + Send>>) -> Working<'static, Box<dyn Any + Send>> {
        let board = self.board().cloned();
        let (bounds, actor) = (self.bounds(), self.actor.clone());
        let job = move |board: &mut Board<'_>| bounds.hold(board, &actor, job);
        Box::pin(async move { board?.write(job).await })
    }
}

/// Read without its type.
type Read = Box<dyn FnOnce(&View<'_>) -> Result<Box<dyn Any + Send>, kernel::Error> + Send>;

/// Job of a write without its type.
type Write<T> = Box<dyn FnOnce(&mut Board<'_>, &Actor) -> Result<T, kernel::Error> + Send>;

/// Makes the error of a reply that cannot be stored or read.
fn not(done: &str, error: &dyn std::fmt::Display) -> kernel::Error {
    kernel::Error::Writer { message: format!("the reply cannot be {done}: {error}") }
}

/// Bounds of a caller's write.
struct CallBounds {
    named: Arc<[TaskId]>,
    choice: Option<PolicyChoice>,
    /// True if it may change only tasks without a tenant.
    is_untenanted: bool,
}

impl CallBounds {
    /// Runs a job of a transaction. Its error undoes the job.
    fn hold<T>(self, board: &mut Board<'_>, actor: &Actor, job: Write<T>) -> Result<T, kernel::Error> {
        require_seen(board, &self.named, actor)?;
        let Some(choice) = self.choice else { return job(board, actor) };
        let before = board.last_event()?;
        let made = job(board, actor)?;
        if self.is_untenanted {
            require_untenanted(board, before)?;
        }
        choice.require(board, before)?;
        Ok(made)
    }
}

/// Refuses a write since `before` that concerns a task of a tenant, as if there were no such task.
fn require_untenanted(view: &View<'_>, before: EventId) -> Result<(), kernel::Error> {
    let mut filter = EventFilter { since: before, ..EventFilter::default() };
    loop {
        let page = view.some_events(&filter)?;
        if let Some(event) = page.rows.iter().find(|event| event.tenant.is_some()) {
            let what = event.task_id.as_ref().map(ToString::to_string).unwrap_or_default();
            return Err(kernel::Error::NotFound { what: Missing::Task, id: what });
        }
        match page.rows.last() {
            Some(last) if page.more => filter.since = last.id,
            Some(_) | None => return Ok(()),
        }
    }
}

/// Refuses tasks in a member's request that do not belong to the tenant, as if they did not exist.
fn require_seen(view: &View<'_>, named: &[TaskId], actor: &Actor) -> Result<(), kernel::Error> {
    named.iter().try_for_each(|id| view.task_for(id, actor).map(drop))
}

/// Returns the key of a request, or of a step of it.
fn key(request: &Request, step: Option<&'static str>) -> Request {
    step.map_or_else(|| request.clone(), |step| request.step(step))
}
