//! Telegram bridge, by long polling (`getUpdates`).
//!
//! A request confirms the updates that were handled before, by its offset. If the bridge ends before, the service sends
//! these updates again, with the same ids, by which the conversation recognizes them.

use std::time::Duration;

use serde::Deserialize;
use serde_json::{Value, json};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::bridge::Bridge;
use delivery::notify::Undelivered;
use setup::automation::chat::IncomingMessage;

/// Time for which the service delays its response if there are no updates.
const POLL: Duration = Duration::from_secs(50);
/// Time limit of a response, beyond the delay of the service.
const MARGIN: Duration = Duration::from_secs(15);
/// Limit on the updates of one response.
const BATCH: u32 = 20;
/// Pause after an empty response that came at once, so that a service that ignores the delay is not polled in a loop.
const PAUSE: Duration = Duration::from_secs(1);

#[derive(Debug, Deserialize)]
struct Me {
    id: i64,
    username: String,
}

#[derive(Debug, Deserialize)]
struct Update {
    update_id: i64,
    /// Parsed separately, so that a message of an unknown form is skipped and does not make the response unreadable.
    #[serde(default)]
    message: Value,
}

#[derive(Debug, Deserialize)]
struct TelegramMessage {
    message_id: i64,
    from: Option<TelegramUser>,
    chat: TelegramChat,
    text: Option<String>,
    message_thread_id: Option<i64>,
    #[serde(default)]
    is_topic_message: bool,
    reply_to_message: Option<RepliedTo>,
    /// Origin of a forwarded message, whose text comes from another sender.
    forward_origin: Option<Value>,
    forward_date: Option<i64>,
    /// Bot through which the message was made.
    via_bot: Option<Value>,
    /// Chat in whose name the message was sent.
    sender_chat: Option<Value>,
}

#[derive(Debug, Deserialize)]
struct TelegramUser {
    id: i64,
    #[serde(default)]
    is_bot: bool,
}

#[derive(Debug, Deserialize)]
struct TelegramChat {
    id: i64,
    #[serde(rename = "type")]
    kind: String,
}

#[derive(Debug, Deserialize)]
struct RepliedTo {
    message_id: i64,
    from: Option<TelegramUser>,
}

/// Handles messages until `stop`. Fails if the service cannot be reached or its response cannot be read.
pub(super) async fn run(bridge: &Bridge, stop: &CancellationToken) -> Result<(), Undelivered> {
    let mut conversation = bridge.conversation();
    let me: Me = read(bridge.api().telegram("getMe", &json!({}), MARGIN).await?)?;
    bridge.connected(Some(&format!("@{}", me.username)));
    let account = format!("{} {}", bridge.name, me.id);
    let chats = bridge.service.chats();
    loop {
        let body = json!({
            "offset": chats.position(&account),
            "limit": BATCH,
            "timeout": POLL.as_secs(),
            "allowed_updates": ["message"],
        });
        let asked = Instant::now();
        let api = bridge.api();
        // A dropped request loses no update: the service sends unconfirmed updates again.
        let updates = tokio::select! {
            () = stop.cancelled() => return Ok(()),
            answer = api.telegram("getUpdates", &body, POLL + MARGIN) => read::<Vec<Update>>(answer?)?,
        };
        bridge.connected(None);
        if updates.is_empty() && asked.elapsed() < PAUSE {
            tokio::select! {
                () = stop.cancelled() => return Ok(()),
                () = tokio::time::sleep(PAUSE) => {}
            }
        }
        for update in updates {
            if let Some(incoming) = incoming(&me, update.update_id, update.message) {
                bridge.handle(&mut conversation, &incoming).await;
            }
            chats.moved(&account, update.update_id.saturating_add(1));
        }
    }
}

fn read<T: serde::de::DeserializeOwned>(value: Value) -> Result<T, Undelivered> {
    serde_json::from_value(value).map_err(|e| Undelivered::later(format!("the answer cannot be read: {e}")))
}

/// Returns a message that a person wrote to the bot. Returns none for messages of bots, for forwarded messages, and for
/// messages in the name of a chat or through another bot.
fn incoming(me: &Me, update: i64, message: Value) -> Option<IncomingMessage> {
    let message: TelegramMessage = serde_json::from_value(message).ok()?;
    let from = message.from.filter(|from| !from.is_bot)?;
    let is_of_others = message.forward_origin.is_some()
        || message.forward_date.is_some()
        || message.via_bot.is_some()
        || message.sender_chat.is_some();
    if is_of_others {
        return None;
    }
    let text = addressed(me, message.text?)?;
    let to_me = |replied: &RepliedTo| replied.from.as_ref().is_some_and(|from| from.id == me.id);
    let replied = message.reply_to_message.filter(to_me).map(|replied| replied.message_id.to_string());
    let thread = message.message_thread_id.filter(|_| message.is_topic_message);
    Some(IncomingMessage {
        id: format!("{}.{}.{update}.{}", me.id, message.chat.id, message.message_id),
        sender: from.id.to_string(),
        chat: message.chat.id.to_string(),
        thread: thread.map(|thread| thread.to_string()).unwrap_or_default(),
        text,
        replied,
        is_direct: message.chat.kind == "private",
    })
}

/// Returns the text without the bot's name in a command such as `/list@name`. Returns none if the command is for
/// another bot.
fn addressed(me: &Me, text: String) -> Option<String> {
    let word = text.split_whitespace().next().unwrap_or_default();
    let Some((command, bot)) = word.strip_prefix('/').and_then(|word| word.split_once('@')) else {
        return Some(text);
    };
    let rest = text.trim_start().get(word.len()..).unwrap_or_default();
    bot.eq_ignore_ascii_case(&me.username).then(|| format!("/{command}{rest}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn me() -> Me {
        Me { id: 9, username: "fleet_bot".to_owned() }
    }

    fn message(more: &Value) -> Option<IncomingMessage> {
        let mut message = json!({
            "message_id": 5, "from": { "id": 1, "is_bot": false }, "chat": { "id": -7, "type": "supergroup" },
            "text": "/kanban@Fleet_bot list"
        });
        message.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        incoming(&me(), 3, message)
    }

    #[test]
    fn a_command_is_for_the_bot_that_it_names() {
        let incoming = message(&json!({})).unwrap();
        assert_eq!(
            (incoming.text.as_str(), incoming.chat.as_str(), incoming.sender.as_str()),
            ("/kanban list", "-7", "1")
        );
        assert!(message(&json!({ "text": "/kanban@other_bot list" })).is_none());
        assert_eq!(message(&json!({ "text": "/kanban list" })).unwrap().text, "/kanban list");
    }

    #[test]
    fn what_others_have_said_is_nothing_that_the_sender_says() {
        for of_others in [
            json!({ "forward_origin": { "type": "user" } }),
            json!({ "forward_date": 1 }),
            json!({ "via_bot": { "id": 4 } }),
            json!({ "sender_chat": { "id": -7 } }),
            json!({ "from": { "id": 1, "is_bot": true } }),
            json!({ "from": null }),
            json!({ "text": null }),
            json!({ "chat": "x" }),
        ] {
            assert!(message(&of_others).is_none(), "{of_others}");
        }
    }

    #[test]
    fn a_reply_counts_where_it_is_to_this_bot_and_a_thread_where_it_is_a_topic() {
        let replied =
            |from: i64| message(&json!({ "reply_to_message": { "message_id": 4, "from": { "id": from } } }));
        assert_eq!(replied(9).unwrap().replied.as_deref(), Some("4"));
        assert_eq!(replied(1).unwrap().replied, None);
        assert_eq!(message(&json!({ "message_thread_id": 8 })).unwrap().thread, "");
        assert_eq!(
            message(&json!({ "message_thread_id": 8, "is_topic_message": true })).unwrap().thread,
            "8"
        );
    }
}
