//! A2A methods: each calls a verb, as a user of the sender's tenant.

use std::sync::Arc;
use std::time::Duration;

use kernel::{BlockKind, Profile, Task, TaskId};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::message::{ListParams, SendMessage, TaskParams, title};
use super::reply::{self, RpcError};
use super::senders::A2aCaller;
use super::state::{State, state_of};
use api::{Call, Verb};
use base::exit::Code;
use base::failure::Failure;
use service::{BoardHandle, Service};
use verbs::{Answer, Archive, Comment, Create, List, Show, ShownTask};

/// Longest wait of a request for its task to rest. The client then polls or streams.
const WAIT: Duration = Duration::from_mins(1);
/// Least interval between two reads of a board that changes continually.
pub(super) const READ_INTERVAL: Duration = Duration::from_millis(100);
/// Size limit of a sender's message id and context id, in bytes.
const NAME: usize = 256;
/// Default page size of a list.
const PAGE: u32 = 50;

/// Reply to a method of JSON-RPC.
#[derive(Debug)]
pub(super) enum MethodResult {
    /// A single response.
    Result(Value),
    /// A stream that begins with the present state of a task.
    Stream(TaskId),
}

/// Method handler for one sender.
#[derive(Clone, Debug)]
pub(super) struct Methods {
    pub(super) service: Arc<Service>,
    pub(super) sender: A2aCaller,
    /// Profile named by the address.
    pub(super) profile: Option<Profile>,
}

impl Methods {
    /// Calls a method, by its name in version 1.0 or an earlier one.
    pub(super) async fn handle(&self, method: &str, params: Value) -> Result<MethodResult, RpcError> {
        match method {
            "SendMessage" | "message/send" => self.send(read(params)?).await.map(MethodResult::Result),
            "SendStreamingMessage" | "message/stream" => self.stream(read(params)?).await,
            "GetTask" | "tasks/get" => {
                let id = read::<TaskParams>(params)?.task()?;
                Ok(MethodResult::Result(reply::task(&self.shown(&id).await?)))
            }
            "CancelTask" | "tasks/cancel" => self.cancel(read(params)?).await.map(MethodResult::Result),
            "ListTasks" | "tasks/list" => self.list(read(params)?).await.map(MethodResult::Result),
            "SubscribeToTask" | "tasks/resubscribe" => {
                let id = read::<TaskParams>(params)?.task()?;
                let shown = self.shown(&id).await?;
                if state_of(&shown.task).is_over() {
                    return Err(RpcError::unsupported("the task is over: GetTask returns what came of it"));
                }
                Ok(MethodResult::Stream(id))
            }
            "GetExtendedAgentCard" | "agent/getAuthenticatedExtendedCard" => {
                Err(RpcError::no_extended_card())
            }
            _ if method.contains("ushNotification") => Err(RpcError::no_push()),
            _ => Err(RpcError::no_method(method)),
        }
    }

    async fn send(&self, send: SendMessage) -> Result<Value, RpcError> {
        let waits = send.configuration.waits();
        let id = match self.accept(send).await? {
            Ok(id) => id,
            Err(rejected) => return Ok(json!({ "task": rejected })),
        };
        let shown =
            if waits { self.wait_for_rest(&id, State::rests).await? } else { self.shown(&id).await? };
        Ok(json!({ "task": reply::task(&shown) }))
    }

    async fn stream(&self, send: SendMessage) -> Result<MethodResult, RpcError> {
        match self.accept(send).await? {
            Ok(id) => Ok(MethodResult::Stream(id)),
            Err(rejected) => Ok(MethodResult::Result(json!({ "task": rejected }))),
        }
    }

    /// Accepts a message: creates a task, or adds to an existing one. A refused task is returned in the state rejected.
    async fn accept(&self, send: SendMessage) -> Result<Result<TaskId, Value>, RpcError> {
        if send.configuration.asks_for_push() {
            return Err(RpcError::no_push());
        }
        for (what, name) in
            [("messageId", Some(&send.message.id)), ("contextId", send.message.context_id.as_ref())]
        {
            let is_fit =
                |name: &str| !name.is_empty() && name.len() <= NAME && !name.contains(char::is_control);
            if name.is_some_and(|name| !is_fit(name)) {
                return Err(RpcError::invalid(format!(
                    "{what} has 1 to {NAME} bytes without control characters"
                )));
            }
        }
        let text = send.message.text()?;
        if let Some(id) = send.message.task()? {
            self.add_message(&id, text).await?;
            return Ok(Ok(id));
        }
        let profile = self.chosen(&send)?;
        let create = Create {
            title: title(&text),
            body: Some(text),
            assignee: Some(profile),
            tenant: Some(self.sender.terms.tenant.clone()),
            idempotency_key: Some(format!("{}:{}", self.sender.mark(), send.message.id)),
            session: send.message.context_id.clone(),
            workflow_template_id: Some(self.sender.mark()),
            ..Create::default()
        };
        match self.call(create).await {
            // A known key returns an existing task, which an operator may have created with the same key.
            Ok(created) if self.is_own(&created.task) => Ok(Ok(created.task.id)),
            Ok(_) => Err(RpcError::invalid("this messageId is taken")),
            Err(failure) if matches!(failure.code, Code::Conflict | Code::NotPermitted | Code::Exhausted) => {
                Ok(Err(reply::rejected(send.message.context_id.as_deref(), &failure.message)))
            }
            Err(failure) => Err(failure.into()),
        }
    }

    /// Returns the profile that a message is for.
    fn chosen(&self, send: &SendMessage) -> Result<Profile, RpcError> {
        let config = self.service.config();
        let offered: Vec<&Profile> = config.a2a.offered(&self.sender.terms).collect();
        let meant = self.profile.as_ref().or(send.skill());
        let chosen = match (meant, offered.as_slice()) {
            (Some(meant), _) => offered.iter().find(|profile| **profile == meant).copied(),
            (None, [only]) => Some(*only),
            (None, _) => None,
        };
        chosen.cloned().ok_or_else(|| {
            let names: Vec<&str> = offered.iter().map(|profile| profile.as_str()).collect();
            RpcError::invalid(format!(
                "name one of the skills in `metadata.skill` of the message: {}",
                names.join(", ")
            ))
        })
    }

    /// Answers the question of a task, or adds a comment.
    async fn add_message(&self, id: &TaskId, text: String) -> Result<(), RpcError> {
        let task = self.shown(id).await?.task;
        let state = state_of(&task);
        if state.is_over() {
            return Err(RpcError::unsupported("the task is over: begin another one"));
        }
        let task_id = Some(id.clone());
        if task.block_kind == Some(BlockKind::NeedsInput) {
            self.call(Answer { task_id, reply: Some(text), ..Answer::default() }).await?;
        } else {
            self.call(Comment { task_id, body: text, ..Comment::default() }).await?;
        }
        Ok(())
    }

    async fn cancel(&self, named: TaskParams) -> Result<Value, RpcError> {
        let id = named.task()?;
        if state_of(&self.shown(&id).await?.task).is_over() {
            return Err(RpcError::not_cancelable());
        }
        // Archiving also ends a run of the task.
        self.call(Archive { task_ids: vec![id.clone()], detach: true, ..Archive::default() }).await?;
        let shown = self.wait_for_rest(&id, State::is_over).await?;
        Ok(reply::task(&shown))
    }

    /// Waits for a suitable state of a task, within [`WAIT`]. Returns its state at the end.
    async fn wait_for_rest(
        &self,
        id: &TaskId,
        will_do: impl Fn(State) -> bool,
    ) -> Result<ShownTask, RpcError> {
        // Subscribed before the first read, so that no change is missed.
        let mut changes = self.board()?.changes();
        let until = Instant::now() + WAIT;
        loop {
            let shown = self.shown(id).await?;
            if will_do(state_of(&shown.task)) {
                return Ok(shown);
            }
            match tokio::time::timeout_at(until, changes.changed()).await {
                Ok(Ok(())) => tokio::time::sleep(READ_INTERVAL).await,
                Ok(Err(_)) | Err(_) => return Ok(shown),
            }
        }
    }

    async fn list(&self, listing: ListParams) -> Result<Value, RpcError> {
        let limit = listing.page_size.unwrap_or(PAGE).clamp(1, 100);
        let list = List {
            workflow_template_id: Some(self.sender.mark()),
            session: listing.context_id,
            tenant: Some(self.sender.terms.tenant.clone()),
            archived: true,
            limit: Some(limit),
            page: true,
            cursor: listing.page_token.filter(|token| !token.is_empty()),
            ..List::default()
        };
        let page = self.call(list).await?;
        let wanted =
            |task: &&Task| listing.status.as_deref().is_none_or(|state| state_of(task).as_str() == state);
        let (tasks, next) = page.split();
        let tasks: Vec<Value> = tasks.iter().filter(wanted).map(reply::brief).collect();
        Ok(json!({
            "totalSize": tasks.len(), "pageSize": limit, "nextPageToken": next.unwrap_or_default(), "tasks": tasks,
        }))
    }

    /// Returns a task of this sender.
    pub(super) async fn shown(&self, id: &TaskId) -> Result<ShownTask, RpcError> {
        let shown = self.call(Show { task_id: Some(id.clone()), ..Show::default() }).await?;
        if self.is_own(&shown.task) { Ok(shown) } else { Err(RpcError::no_task()) }
    }

    fn is_own(&self, task: &Task) -> bool {
        task.client.workflow_template_id.as_deref() == Some(&self.sender.mark())
            && task.tenant.as_ref() == Some(&self.sender.terms.tenant)
    }

    pub(super) fn board(&self) -> Result<Arc<BoardHandle>, Failure> {
        self.service.board(&self.sender.terms.board)
    }

    async fn call<V: Verb>(&self, verb: V) -> Result<V::Reply, Failure> {
        let board = self.board()?;
        let name = self.sender.terms.board.clone();
        Call::new(Arc::clone(&self.service), name, Some(board), self.sender.actor(), None).make(verb).await
    }
}

fn read<T: DeserializeOwned>(params: Value) -> Result<T, RpcError> {
    serde_path_to_error::deserialize(params).map_err(|e| RpcError::invalid(format!("params: {e}")))
}
