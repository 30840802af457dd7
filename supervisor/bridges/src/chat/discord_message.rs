//! A Discord message: extracts its author and text, and carries it out once.

use serde_json::Value;

use super::bridge::Bridge;
use super::conversation::Conversation;
use delivery::notify::message_number;
use setup::automation::chat::{Chatroom, IncomingMessage, Remembered, Repeat};

/// Carries out a message that was not received before.
pub(super) async fn take(
    bridge: &Bridge,
    conversation: &mut Conversation,
    bot_id: &str,
    data: &Value,
    is_direct: bool,
) {
    let incoming = incoming(bot_id, data, is_direct);
    let is_sender = |incoming: &IncomingMessage| bridge.chat.sender(&incoming.sender).is_some();
    let is_known = if incoming.as_ref().is_some_and(is_sender) { Remembered::Yes } else { Remembered::No };
    let (channel, room) =
        (data["channel_id"].as_str().unwrap_or_default(), Chatroom { last: message_number(data), is_direct });
    if bridge.service.chats().received_in(&bridge.name, channel, room, is_known) == Repeat::Again {
        return;
    }
    if let Some(incoming) = incoming {
        bridge.handle(conversation, &incoming).await;
    }
}

/// Returns a person's own words in a message. A thread is a channel of its own.
fn incoming(bot_id: &str, data: &Value, is_direct: bool) -> Option<IncomingMessage> {
    let author = &data["author"];
    // 0 is a message, 19 a reply. Forwarded words are another's, and a webhook is no person.
    let is_plain = matches!(data["type"].as_u64(), None | Some(0 | 19));
    let is_of_others = author["bot"] == true
        || data["webhook_id"].is_string()
        || data["message_reference"]["type"].as_u64().is_some_and(|kind| kind != 0);
    if !is_plain || is_of_others {
        return None;
    }
    let words = data["content"].as_str()?;
    let mention = format!("<@{bot_id}>");
    let words = words.trim_start().strip_prefix(&mention).map_or(words, str::trim_start);
    let to_me = data["referenced_message"]["author"]["id"] == bot_id;
    let replied = data["message_reference"]["message_id"].as_str().filter(|_| to_me);
    Some(IncomingMessage {
        id: data["id"].as_str()?.to_owned(),
        sender: author["id"].as_str()?.to_owned(),
        chat: data["channel_id"].as_str()?.to_owned(),
        thread: String::new(),
        text: words.to_owned(),
        replied: replied.map(str::to_owned),
        is_direct,
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn message(more: &Value) -> Option<IncomingMessage> {
        let mut data = json!({ "type": 0, "id": "50", "channel_id": "7", "guild_id": "8", "author": { "id": "1" }, "content": "/kanban list" });
        data.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        incoming("9", &data, data["guild_id"].is_null())
    }

    #[test]
    fn a_message_of_a_person_is_heard_and_none_of_a_program() {
        let incoming = message(&json!({ "content": "<@9> /help" })).unwrap();
        assert_eq!((incoming.text.as_str(), incoming.is_direct), ("/help", false));
        assert!(message(&json!({ "guild_id": null })).unwrap().is_direct);
        for of_others in [
            json!({ "author": { "id": "9", "bot": true } }),
            json!({ "webhook_id": "3" }),
            json!({ "message_reference": { "type": 1, "message_id": "4" } }),
            json!({ "type": 7 }),
            json!({ "content": null }),
        ] {
            assert!(message(&of_others).is_none(), "{of_others}");
        }
    }

    #[test]
    fn a_reply_counts_where_it_is_to_the_bot() {
        let reply = |author: &str| {
            message(
                &json!({ "type": 19, "message_reference": { "message_id": "4" }, "referenced_message": { "author": { "id": author } } }),
            )
        };
        assert_eq!(reply("9").unwrap().replied.as_deref(), Some("4"));
        assert_eq!(reply("2").unwrap().replied, None);
    }
}
