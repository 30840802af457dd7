//! One call of one verb: who asks, on which board, and the two ways to the data.

use std::sync::Arc;
use std::time::Duration;

use hyper::body::Bytes;
use kernel::{
    Actor, ActorKind, Address, Board, BoardName, Caller, Extent, Holder, Request, RequestId, Sweep, Swept,
    TaskId, Tenant, View, WorkerRole,
};
use schemars::{JsonSchema, Schema, schema_for};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::confined::confined;
use super::doors::Turn;
use super::work::{blocking, to_its_end};
use crate::exit::Code;
use crate::failure::Failure;
use crate::service::{BoardHandle, Service, stopped};
use crate::short_ids;

/// How long a client waits for most verbs: what they do takes milliseconds, and a host under load much longer.
pub(crate) const ANSWERED: Duration = Duration::from_secs(30);
/// How long the request of a worker may take, unless its verb waits for something.
pub(super) const ANSWER: Duration = Duration::from_mins(1);

/// Who may call a verb.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Audience {
    /// Operators only.
    Operator,
    /// Operators, and orchestrators about the tasks that they have made.
    Orchestrator,
    /// Operators, and workers within the limits of their run.
    Worker,
}

impl Audience {
    /// Whether a caller is among it.
    pub(crate) fn admits(self, actor: &Actor) -> bool {
        let is_worker = actor.kind == ActorKind::Worker;
        match self {
            Audience::Operator => !is_worker,
            Audience::Orchestrator => !is_worker || actor.role == WorkerRole::Orchestrator,
            Audience::Worker => true,
        }
    }
}

/// What a verb needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Effect {
    /// Reads the board: works offline without a lock.
    Read,
    /// Writes the board: works offline under the root's lock.
    Write,
    /// Only a daemon can do it.
    Daemon,
}

/// What becomes of a verb that has begun when its caller hangs up, or gets no answer within its time limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HangUp {
    /// It goes on to its end: what it has taken or begun is not left halfway.
    GoesOn,
    /// It ends where it waits. All that it takes gives itself back, and all that it writes is whole in one commit.
    Ends,
}

/// To which callers a verb is offered as a tool over MCP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scope {
    /// To the worker of any run.
    Worker,
    /// To the worker of a review.
    Reviewer,
    /// To who distributes the work.
    Orchestrator,
    /// To operators alone.
    Operator,
}

/// A verb as a tool over MCP.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Tool {
    /// To whom it is offered.
    pub(crate) scope: Scope,
    /// What an agent should know of it beside the description of the request. Whole sentences.
    pub(crate) about: &'static str,
}

/// Which board a verb needs beside being allowed to act on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OnBoard {
    /// The one that is named, which is there.
    Named,
    /// The one that is named, which is made where it is not there.
    Made,
    /// The one that is named; none where the daemon does not serve it, because something is wrong with it.
    IfServed,
    /// None: it is about the root, or about the daemon.
    None,
}

/// A verb as it goes over the wire: its request is the body of the API and the arguments of the command line; its reply is
/// the JSON of both.
pub(crate) trait Verb: Serialize + DeserializeOwned + JsonSchema + Send + Sync + 'static {
    /// The word on the command line and in the path of the API.
    const NAME: &'static str;
    /// Who may call it.
    const AUDIENCE: Audience;
    /// What it needs.
    const EFFECT: Effect;
    /// Which board it needs.
    const ON: OnBoard = OnBoard::Named;
    /// What becomes of it when its caller hangs up. One that waits for somebody else ends.
    const HANG_UP: HangUp = match Self::EFFECT {
        Effect::Read => HangUp::Ends,
        Effect::Write | Effect::Daemon => HangUp::GoesOn,
    };
    /// The tool that it is over MCP; none where it is none.
    const TOOL: Option<Tool> = None;
    /// Whether the users of a tenant may call it. A verb that says so shows and changes nothing but what [`Verb::confine`] and the
    /// tasks that its request names let through.
    const MEMBERS: bool = false;
    /// Whether a browser with a session of the dashboard may call it.
    const SESSIONS: bool = true;
    /// Whether it looks by itself for each task that a tenant's user names, and says of each what became of it.
    const ROWS: bool = false;
    /// What comes back.
    type Reply: Serialize + DeserializeOwned + Send + 'static;

    /// All that is asked for: a repeat of a request asks for the same.
    fn substance(&self) -> Result<Vec<u8>, Failure> {
        serde_json::to_vec(self).map_err(|e| Failure::failed(format!("the request cannot be written: {e}")))
    }

    /// What is sent: the verb as JSON, unless it is mostly bytes.
    fn parcel(&self) -> Result<Parcel, Failure> {
        Parcel::of(self)
    }

    /// Names the task of the caller's own run where no task is named.
    fn default_to_own(&mut self, _own: &TaskId) {}

    /// Confines a request to a tenant, for one of its users, or refuses what reaches beyond it.
    fn confine(&mut self, _tenant: &Tenant) -> Result<(), Failure> {
        Ok(())
    }

    /// How long a client waits for the answer of a daemon that has taken the request.
    fn answered_within(&self) -> Duration {
        ANSWERED
    }

    /// How long the request of a worker may take.
    fn longest(&self) -> Duration {
        ANSWER
    }

    fn run(self, call: Call) -> impl Future<Output = Result<Self::Reply, Failure>> + Send;
}

/// A verb as a table of verbs lists it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Entry {
    /// The word on the command line and in the path of the API.
    pub(crate) name: &'static str,
    /// Who may call it.
    pub(crate) audience: Audience,
    /// What it needs.
    pub(crate) effect: Effect,
    /// Which board it needs.
    pub(super) on: OnBoard,
    /// Returns the JSON Schema of its request.
    pub(crate) request: fn() -> Schema,
    /// The tool that it is over MCP.
    pub(crate) tool: Option<Tool>,
    /// Whether the users of a tenant may call it.
    pub(crate) members: bool,
    /// Whether a browser with a session of the dashboard may call it.
    pub(super) sessions: bool,
}

impl Entry {
    pub(crate) fn of<V: Verb>() -> Self {
        let request = || schema_for!(V);
        Entry {
            name: V::NAME,
            audience: V::AUDIENCE,
            effect: V::EFFECT,
            on: V::ON,
            request,
            tool: V::TOOL,
            members: V::MEMBERS,
            sessions: V::SESSIONS,
        }
    }

    /// Whether a caller may call it.
    pub(crate) fn admits(&self, actor: &Actor) -> bool {
        self.audience.admits(actor) && (self.members || confined(actor).is_none())
    }
}

/// A verb as it is sent.
#[derive(Clone, Debug)]
pub(crate) struct Parcel {
    /// Where to, with the query.
    pub(crate) path: String,
    /// The type of the body.
    pub(crate) content_type: &'static str,
    pub(crate) body: Bytes,
}

impl Parcel {
    /// The verb as JSON.
    pub(crate) fn of<V: Verb>(verb: &V) -> Result<Self, Failure> {
        let body = serde_json::to_vec(verb)
            .map_err(|e| Failure::failed(format!("the request cannot be written: {e}")))?;
        let path = format!("/api/v1/verbs/{}", V::NAME);
        Ok(Parcel { path, content_type: "application/json", body: body.into() })
    }
}

/// One call: everything a verb may use.
#[derive(Debug)]
pub(crate) struct Call {
    /// The boards and the configuration.
    pub(crate) service: Arc<Service>,
    /// The name of the board that the caller means.
    name: BoardName,
    /// That board; none for a verb that is about the root.
    board: Option<Arc<BoardHandle>>,
    pub(crate) actor: Actor,
    /// The id of the request, where the caller may repeat it.
    id: Option<RequestId>,
    /// Under which the reply of a write is kept, so that a repeat gets the same reply.
    request: Option<Request>,
    /// The tasks that the request of a tenant's user names: all of them have to be the tenant's.
    named: Arc<[TaskId]>,
    /// Where it was said, for what comes from a chat.
    chat: Option<Address>,
    /// What it counts for, for the request of a worker.
    turn: Option<Turn>,
}

impl Call {
    /// A call of somebody who may act.
    pub(crate) fn new(
        service: Arc<Service>,
        name: BoardName,
        board: Option<Arc<BoardHandle>>,
        actor: Actor,
        id: Option<RequestId>,
    ) -> Self {
        Call { service, name, board, actor, id, request: None, named: Arc::default(), chat: None, turn: None }
    }

    /// The same, from a chat: who makes a task there hears of it there.
    pub(crate) fn said_in(self, chat: Address) -> Self {
        Call { chat: Some(chat), ..self }
    }

    /// The same, which counts for a worker until it has finished.
    pub(super) fn counted(self, turn: Turn) -> Self {
        Call { turn: Some(turn), ..self }
    }

    /// Where it was said.
    pub(crate) fn chat(&self) -> Option<&Address> {
        self.chat.as_ref()
    }

    /// The name of the board that the caller means. A verb that is about the root may find no board of that name.
    pub(crate) fn board_name(&self) -> &BoardName {
        &self.name
    }

    /// The board that the call is for.
    pub(crate) fn board(&self) -> Result<&Arc<BoardHandle>, Failure> {
        self.board.as_ref().ok_or_else(|| Failure::failed("this request is about no board"))
    }

    /// Runs a verb. What becomes of it when its caller goes, [`HangUp`] says.
    pub(crate) async fn make<V: Verb>(mut self, mut verb: V) -> Result<V::Reply, Failure> {
        if let Some(tenant) = self.confined().cloned() {
            verb.confine(&tenant)?;
            if !V::ROWS {
                self.named = short_ids::of_request(&verb)?.into();
            }
            // Also of a verb that asks the daemon before it asks the board.
            if self.board.is_some() && !self.named.is_empty() {
                self.read(|_| Ok(())).await?;
            }
        }
        let mut call = self.repeatable(&verb)?;
        let (service, turn) = (Arc::clone(&call.service), call.turn.take());
        let work = verb.run(call);
        // On the heap: the futures of the verbs are large, and each caller's would have one in it.
        let work = Box::pin(async move {
            let _turn = turn;
            work.await
        });
        match V::HANG_UP {
            HangUp::GoesOn => to_its_end(&service, V::NAME, work).await,
            HangUp::Ends => work.await,
        }
    }

    /// The same for this request: its reply is kept under the id that the caller has given it.
    pub(crate) fn repeatable<V: Verb>(mut self, verb: &V) -> Result<Self, Failure> {
        if let Some(id) = self.id.take() {
            self.request = Some(Request::new(Caller::of(&self.actor), V::NAME, id, &verb.substance()?));
        }
        Ok(self)
    }

    /// The tenant that the caller is confined to, as one of its users.
    pub(crate) fn confined(&self) -> Option<&Tenant> {
        confined(&self.actor)
    }

    /// Reads the board off the runtime's threads.
    pub(crate) async fn read<T: Send + 'static>(
        &self,
        f: impl FnOnce(&View<'_>) -> Result<T, kernel::Error> + Send + 'static,
    ) -> Result<T, Failure> {
        let board = Arc::clone(self.board()?);
        let (named, actor) = (Arc::clone(&self.named), self.actor.clone());
        let read = move |view: &View<'_>| {
            require_seen(view, &named, &actor)?;
            f(view)
        };
        blocking("the read did not finish", move || board.readers().with(read)).await?.map_err(Failure::from)
    }

    /// Finds the bytes of attachments that no task has any more.
    pub(crate) async fn sweep_blobs(&self, extent: Extent, sweep: Sweep) -> Result<Swept, Failure> {
        let board = Arc::clone(self.board()?);
        blocking("the sweep did not finish", move || board.sweep_blobs(&extent, sweep)).await?
    }

    /// Refuses to decide about a task whose worker lives while no daemon is there to end it.
    pub(crate) async fn refuse_live_without_daemon(&self, tasks: &[TaskId]) -> Result<(), Failure> {
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

    /// The id under which the caller may repeat the request.
    pub(crate) fn request_id(&self) -> Option<&RequestId> {
        self.request.as_ref().map(Request::id)
    }

    /// The reply that the same request was given before.
    pub(crate) async fn replied<T: DeserializeOwned>(&self) -> Result<Option<T>, Failure> {
        self.replied_under(None).await
    }

    /// What was stored for the same request before, or for a step of it.
    pub(super) async fn replied_under<T: DeserializeOwned>(
        &self,
        step: Option<&'static str>,
    ) -> Result<Option<T>, Failure> {
        let Some(request) = self.request.as_ref().map(|request| key(request, step)) else { return Ok(None) };
        let stored = self.read(move |view| view.stored_reply(&request)).await?;
        let read = |text: String| {
            serde_json::from_str(&text)
                .map_err(|e| Failure::failed(format!("the stored reply cannot be read: {e}")))
        };
        stored.map(read).transpose()
    }

    /// Runs a job in the writer's next transaction and returns once it is durable. The reply is stored with the
    /// request id in the same transaction.
    pub(crate) async fn write<T: Serialize + DeserializeOwned + Send + 'static>(
        &self,
        job: impl FnOnce(&mut Board<'_>, &Actor) -> Result<T, kernel::Error> + Send + 'static,
    ) -> Result<T, Failure> {
        self.write_under(None, job).await
    }

    /// The same for a request, or for a step of it, whose reply is stored apart.
    pub(super) async fn write_under<T: Serialize + DeserializeOwned + Send + 'static>(
        &self,
        step: Option<&'static str>,
        job: impl FnOnce(&mut Board<'_>, &Actor) -> Result<T, kernel::Error> + Send + 'static,
    ) -> Result<T, Failure> {
        let request = self.request.as_ref().map(|request| key(request, step));
        let Some(request) = request else { return self.write_further(job).await };
        let writer = self.board()?.writer()?;
        let actor = self.actor.clone();
        let (done, reply) = tokio::sync::oneshot::channel();
        let named = Arc::clone(&self.named);
        let job = move |board: &mut Board<'_>| {
            require_seen(board, &named, &actor)?;
            job(board, &actor)
        };
        writer.submit_once(request, job, move |result| drop(done.send(result)));
        reply.await.map_err(stopped)?.map_err(Failure::from)
    }

    /// Runs a job that follows the write whose reply is kept: a repeat of the request runs it again.
    pub(crate) async fn write_further<T: Send + 'static>(
        &self,
        job: impl FnOnce(&mut Board<'_>, &Actor) -> Result<T, kernel::Error> + Send + 'static,
    ) -> Result<T, Failure> {
        let (named, actor) = (Arc::clone(&self.named), self.actor.clone());
        let job = move |board: &mut Board<'_>| {
            require_seen(board, &named, &actor)?;
            job(board, &actor)
        };
        self.board()?.write(job).await
    }
}

/// Refuses tasks that a tenant's user names and that are not the tenant's: to it they do not exist.
fn require_seen(view: &View<'_>, named: &[TaskId], actor: &Actor) -> Result<(), kernel::Error> {
    named.iter().try_for_each(|id| view.task_for(id, actor).map(drop))
}

/// The key of a request, or of one of its steps.
fn key(request: &Request, step: Option<&'static str>) -> Request {
    step.map_or_else(|| request.clone(), |step| request.step(step))
}
