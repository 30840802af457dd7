//! Requests of a sender: the parameters of the methods. Unknown members are ignored, as the protocol requires.

use kernel::{Profile, TaskId};
use serde::Deserialize;
use serde_json::Value;

use super::reply::RpcError;

/// Limit on the parts of a message.
const PARTS: usize = 64;
/// Size limit of a message, in bytes; a task has 1 MiB of text.
const TEXT: usize = 1 << 20;
/// Limit on a title, in characters.
const TITLE: usize = 120;

/// A JSON-RPC 2.0 request.
#[derive(Debug, Deserialize)]
pub(super) struct RpcRequest {
    pub(super) jsonrpc: String,
    /// Id; none for a notification.
    pub(super) id: Option<Value>,
    pub(super) method: String,
    #[serde(default)]
    pub(super) params: Value,
}

/// Parameters of `SendMessage`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct SendMessage {
    pub(super) message: A2aMessage,
    #[serde(default)]
    pub(super) configuration: SendConfiguration,
    #[serde(default)]
    metadata: SendMetadata,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct A2aMessage {
    #[serde(rename = "messageId")]
    pub(super) id: String,
    task_id: Option<String>,
    pub(super) context_id: Option<String>,
    parts: Vec<MessagePart>,
    #[serde(default)]
    metadata: SendMetadata,
}

/// Part of a message. Has `text`, `data`, `raw` or `url`.
#[derive(Debug, Deserialize)]
struct MessagePart {
    text: Option<String>,
    data: Option<Value>,
    raw: Option<Value>,
    url: Option<Value>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct SendConfiguration {
    return_immediately: Option<bool>,
    /// Name in drafts of the protocol.
    blocking: Option<bool>,
    push_notification_config: Option<Value>,
    task_push_notification_config: Option<Value>,
}

impl SendConfiguration {
    /// Returns true if the response waits until the task rests.
    pub(super) fn waits(&self) -> bool {
        !self.return_immediately.unwrap_or_else(|| self.blocking == Some(false))
    }

    pub(super) fn asks_for_push(&self) -> bool {
        self.push_notification_config.is_some() || self.task_push_notification_config.is_some()
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct SendMetadata {
    skill: Option<Profile>,
}

impl SendMessage {
    /// Returns the profile in the metadata, used if the address names none.
    pub(super) fn skill(&self) -> Option<&Profile> {
        self.message.metadata.skill.as_ref().or(self.metadata.skill.as_ref())
    }
}

/// Parses the id of a task. An invalid id belongs to no task.
fn named(name: &str) -> Result<TaskId, RpcError> {
    name.parse().map_err(|_| RpcError::no_task())
}

impl A2aMessage {
    /// Returns the task that the message refers to; none for a new task.
    pub(super) fn task(&self) -> Result<Option<TaskId>, RpcError> {
        self.task_id.as_deref().filter(|name| !name.is_empty()).map(named).transpose()
    }

    /// Returns the text of the message. Data is written as JSON; files are refused.
    pub(super) fn text(&self) -> Result<String, RpcError> {
        if self.parts.len() > PARTS {
            return Err(RpcError::invalid(format!("a message has at most {PARTS} parts")));
        }
        let mut whole: Vec<String> = Vec::new();
        for part in &self.parts {
            match part {
                MessagePart { text: Some(text), .. } => whole.push(text.clone()),
                MessagePart { data: Some(data), .. } => whole.push(format!("{data:#}")),
                MessagePart { raw: Some(_), .. } | MessagePart { url: Some(_), .. } => {
                    return Err(RpcError::content("files are not taken: send `text` or `data`"));
                }
                MessagePart { text: None, data: None, raw: None, url: None } => {
                    return Err(RpcError::invalid("a part has `text` or `data`"));
                }
            }
        }
        let text = whole.join("\n\n");
        if text.trim().is_empty() {
            return Err(RpcError::invalid("the message has no text"));
        }
        if text.len() > TEXT {
            return Err(RpcError::invalid("the message has more than 1 MiB"));
        }
        Ok(text)
    }
}

/// Returns the title of a task: the first line that is not empty.
pub(super) fn title(text: &str) -> String {
    let line = text.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or("a message");
    let line: String = line.trim_start_matches('#').trim().chars().filter(|c| !c.is_control()).collect();
    let mut title: String = line.chars().take(TITLE).collect();
    if line.chars().count() > TITLE {
        title.push('…');
    }
    if title.is_empty() { "a message".to_owned() } else { title }
}

/// Parameters that name a task.
#[derive(Debug, Deserialize)]
pub(super) struct TaskParams {
    id: String,
}

impl TaskParams {
    pub(super) fn task(&self) -> Result<TaskId, RpcError> {
        named(&self.id)
    }
}

/// Parameters of `ListTasks`.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct ListParams {
    pub(super) context_id: Option<String>,
    pub(super) status: Option<String>,
    pub(super) page_size: Option<u32>,
    pub(super) page_token: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_title_is_the_first_line_that_says_something() {
        assert_eq!(title("\n  # Fix the parser\nall of it"), "Fix the parser");
        assert_eq!(title(&"x".repeat(200)).chars().count(), 121);
        assert_eq!((title(" \n"), title("#")), ("a message".to_owned(), "a message".to_owned()));
    }

    #[test]
    fn a_message_is_its_texts_and_data_and_no_file() {
        let message = |parts: Value| -> A2aMessage {
            serde_json::from_value(serde_json::json!({"messageId": "m", "role": "ROLE_USER", "parts": parts}))
                .unwrap()
        };
        let text = message(serde_json::json!([{"text": "a"}, {"data": {"b": 1}}])).text().unwrap();
        assert_eq!(text, "a\n\n{\n  \"b\": 1\n}");
        assert!(message(serde_json::json!([{"raw": "AA=="}])).text().is_err());
        assert!(message(serde_json::json!([{}])).text().is_err());
        assert!(message(serde_json::json!([])).text().is_err());
    }
}
