//! Responses to a sender: tasks, and refusals with the codes of the protocol.

use kernel::{Outcome, Task, Timestamp};
use serde_json::{Value, json};

use super::state::{State, state_of};
use base::a2a_wire::VERSION;
use base::exit::Code;
use base::failure::Failure;
use verbs::ShownTask;

/// Refusal of a request: a code of JSON-RPC or A2A (section 5.4), and a message.
#[derive(Debug)]
pub(super) struct RpcError {
    code: i32,
    message: String,
}

impl RpcError {
    fn new(code: i32, message: impl Into<String>) -> Self {
        RpcError { code, message: message.into() }
    }

    pub(super) fn unreadable(why: impl Into<String>) -> Self {
        Self::new(-32700, why)
    }

    pub(super) fn no_request(why: impl Into<String>) -> Self {
        Self::new(-32600, why)
    }

    pub(super) fn no_method(name: &str) -> Self {
        let name: String = name.chars().take(64).collect();
        Self::new(-32601, format!("there is no method `{name}`"))
    }

    pub(super) fn invalid(why: impl Into<String>) -> Self {
        Self::new(-32602, why)
    }

    pub(super) fn no_task() -> Self {
        Self::new(-32001, "this sender has no such task")
    }

    pub(super) fn not_cancelable() -> Self {
        Self::new(-32002, "the task is over")
    }

    pub(super) fn no_push() -> Self {
        Self::new(-32003, "there are no push notifications: use SendStreamingMessage, or ask with GetTask")
    }

    pub(super) fn unsupported(why: impl Into<String>) -> Self {
        Self::new(-32004, why)
    }

    pub(super) fn content(why: impl Into<String>) -> Self {
        Self::new(-32005, why)
    }

    pub(super) fn no_extended_card() -> Self {
        Self::new(-32007, "the card that everybody reads is the whole card")
    }

    pub(super) fn version(asked: &str) -> Self {
        let asked: String = asked.chars().take(16).collect();
        Self::new(-32009, format!("version {asked} is not supported; {VERSION} is"))
    }

    /// Returns the response to a request.
    pub(super) fn response(&self, id: &Value) -> Value {
        json!({ "jsonrpc": "2.0", "id": id, "error": { "code": self.code, "message": self.message } })
    }
}

impl From<Failure> for RpcError {
    fn from(failure: Failure) -> Self {
        let code = match failure.code {
            Code::NotFound => return Self::no_task(),
            Code::Usage | Code::Malformed | Code::TooLarge | Code::MediaType | Code::Method => -32602,
            Code::Conflict | Code::NotPermitted | Code::NoSession | Code::Exhausted => -32004,
            Code::Failed | Code::Unreachable | Code::TryAgain | Code::Throttled => -32603,
        };
        if failure.code == Code::Failed {
            // The message may name paths of the host.
            tracing::warn!(error = %failure, "a2a_request_failed");
            return Self::new(code, "it failed here; the log of this root has the reason");
        }
        // Without the hint, which is a command of this host.
        Self::new(code, failure.message)
    }
}

/// Formats a time for the protocol.
fn timestamp(at: Timestamp) -> String {
    let at = jiff::Timestamp::from_microsecond(at.as_micros()).unwrap_or_default();
    format!("{at:.3}")
}

/// Returns the context id of a task: the sender's, or the task's own id.
fn context(task: &Task) -> &str {
    task.client.session_id.as_deref().unwrap_or(task.id.as_str())
}

fn message(task: &Task, number: &str, text: &str) -> Value {
    json!({
        "messageId": format!("{}-{number}", task.id),
        "contextId": context(task),
        "taskId": task.id,
        "role": "ROLE_AGENT",
        "parts": [{ "text": text, "mediaType": "text/plain" }],
    })
}

/// Returns the state of a task, with a message for its sender.
pub(super) fn status(task: &Task) -> Value {
    let state = state_of(task);
    let words = match state {
        State::InputRequired | State::AuthRequired => asked(task),
        // The actual reason is withheld, because it may name paths of the host.
        State::Failed => Some("its workers have failed, and it was given up".to_owned()),
        State::Submitted | State::Working | State::Completed | State::Canceled | State::Rejected => None,
    };
    let mut status = json!({ "state": state.as_str(), "timestamp": timestamp(task.updated_at) });
    if let Some(words) = words {
        status["message"] = message(task, &format!("status-{}", task.updated_at.as_micros()), &words);
    }
    status
}

/// Returns the question with numbered choices, or the reason of the block.
fn asked(task: &Task) -> Option<String> {
    let Some(question) = &task.question else { return task.block_reason.clone() };
    let choices = question.choices.iter().enumerate().map(|(at, choice)| format!("{}. {choice}", at + 1));
    Some(std::iter::once(question.text.clone()).chain(choices).collect::<Vec<_>>().join("\n"))
}

/// Returns the result of a task: its last summary, and the metadata of its last successful run.
pub(super) fn artifacts(shown: &ShownTask) -> Vec<Value> {
    if state_of(&shown.task) != State::Completed {
        return Vec::new();
    }
    let mut parts = Vec::new();
    if let Some(text) = shown.task.result.as_ref().or(shown.latest_summary.as_ref()) {
        parts.push(json!({ "text": text, "mediaType": "text/plain" }));
    }
    let data = shown.runs.iter().rev().find(|run| run.outcome == Some(Outcome::Completed));
    if let Some(data) = data.and_then(|run| run.metadata.as_ref()) {
        parts.push(json!({ "data": data, "mediaType": "application/json" }));
    }
    if parts.is_empty() {
        return Vec::new();
    }
    vec![json!({ "artifactId": format!("{}-result", shown.task.id), "name": "result", "parts": parts })]
}

/// Returns a task for its sender.
pub(super) fn task(shown: &ShownTask) -> Value {
    let mut value = brief(&shown.task);
    value["artifacts"] = artifacts(shown).into();
    value
}

/// Returns a task for a list, without its result.
pub(super) fn brief(task: &Task) -> Value {
    json!({
        "id": task.id,
        "contextId": context(task),
        "status": status(task),
        "metadata": { "skill": task.assignee, "title": task.title },
    })
}

/// Returns a rejected task, which is on no board.
pub(super) fn rejected(context: Option<&str>, why: &str) -> Value {
    let id = uuid::Uuid::new_v4().to_string();
    let context = context.unwrap_or(&id);
    let message = json!({
        "messageId": format!("{id}-status"), "contextId": context, "taskId": id, "role": "ROLE_AGENT",
        "parts": [{ "text": why, "mediaType": "text/plain" }],
    });
    let now = format!("{:.3}", jiff::Timestamp::now());
    json!({
        "id": id, "contextId": context,
        "status": { "state": State::Rejected.as_str(), "timestamp": now, "message": message },
    })
}

/// Returns a change of state for a stream.
pub(super) fn status_update(task: &Task) -> Value {
    json!({ "statusUpdate": { "taskId": task.id, "contextId": context(task), "status": status(task) } })
}

/// Returns a result for a stream.
pub(super) fn artifact_update(shown: &ShownTask, artifact: &Value) -> Value {
    let task = &shown.task;
    json!({ "artifactUpdate": { "taskId": task.id, "contextId": context(task), "artifact": artifact, "lastChunk": true } })
}
