//! Slack bridge, in socket mode. An event is acknowledged after it was carried out; a repeated one has the same id.

use std::time::Duration;

use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::bridge::Bridge;
use delivery::notify::{Socket, Undelivered};
use setup::automation::chat::IncomingMessage;

/// Longest silence of a connection; the service sends pings more often.
const SILENCE: Duration = Duration::from_mins(5);

/// Handles messages until `stop`.
pub(super) async fn run(bridge: &Bridge, stop: &CancellationToken) -> Result<(), Undelivered> {
    let mut conversation = bridge.conversation();
    let talk = bridge.api();
    let me = talk.slack("auth.test", &json!({})).await?;
    let (bot_id, name) = (text(&me["user_id"]), text(&me["user"]));
    loop {
        let mut socket = talk.slack_socket(&bridge.secret()?).await?;
        loop {
            // A dropped event is incomplete, and is sent again because it was not acknowledged.
            let envelope = tokio::select! {
                () = stop.cancelled() => return Ok(()),
                next = tokio::time::timeout(SILENCE, socket.next()) => next.map_err(|_| silent())??,
            };
            match envelope["type"].as_str() {
                Some("hello") => bridge.connected(Some(&format!("@{name}"))),
                // The service asks for a new connection, as it does every few hours.
                Some("disconnect") => break,
                _ => {
                    if let Some(incoming) = incoming(&bot_id, &envelope) {
                        bridge.handle(&mut conversation, &incoming).await;
                    }
                    acknowledge(&mut socket, &envelope).await?;
                }
            }
        }
    }
}

fn silent() -> Undelivered {
    Undelivered::later(format!("nothing has come for {} s", SILENCE.as_secs()))
}

async fn acknowledge(socket: &mut Socket, envelope: &Value) -> Result<(), Undelivered> {
    let Some(id) = envelope["envelope_id"].as_str() else { return Ok(()) };
    socket.send(&json!({ "envelope_id": id })).await
}

/// Returns a person's own words in an event.
fn incoming(bot_id: &str, envelope: &Value) -> Option<IncomingMessage> {
    let payload = &envelope["payload"];
    match envelope["type"].as_str()? {
        "slash_commands" => Some(IncomingMessage {
            id: payload["trigger_id"].as_str()?.to_owned(),
            sender: payload["user_id"].as_str()?.to_owned(),
            chat: payload["channel_id"].as_str()?.to_owned(),
            thread: String::new(),
            text: unescaped(&format!("{} {}", payload["command"].as_str()?, text(&payload["text"]))),
            replied: None,
            is_direct: text(&payload["channel_name"]) == "directmessage",
        }),
        "events_api" => message_event(bot_id, payload),
        _ => None,
    }
}

fn message_event(bot_id: &str, payload: &Value) -> Option<IncomingMessage> {
    let event = &payload["event"];
    // A subtype is an edit, a join or a message of a program.
    let is_of_others = event["bot_id"].is_string() || event["subtype"].is_string() || event["user"] == bot_id;
    if event["type"] != "message" || is_of_others {
        return None;
    }
    let thread = event["thread_ts"].as_str().filter(|thread| event["ts"] != **thread);
    let of_me = thread.is_some() && event["parent_user_id"] == bot_id;
    let words = unescaped(event["text"].as_str()?);
    // A command may follow a mention of the bot.
    let mention = format!("<@{bot_id}>");
    let words = words.trim_start().strip_prefix(&mention).map_or(words.as_str(), str::trim_start).to_owned();
    Some(IncomingMessage {
        id: payload["event_id"].as_str()?.to_owned(),
        sender: event["user"].as_str()?.to_owned(),
        chat: event["channel"].as_str()?.to_owned(),
        thread: thread.unwrap_or_default().to_owned(),
        text: words,
        replied: thread.filter(|_| of_me).map(str::to_owned),
        is_direct: event["channel_type"] == "im",
    })
}

/// Decodes Slack's escapes (docs.slack.dev, "Formatting message text").
fn unescaped(text: &str) -> String {
    text.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(more: &Value) -> Option<IncomingMessage> {
        let mut event = json!({ "type": "message", "user": "U1", "channel": "C1", "ts": "5.1", "text": "/kanban list", "channel_type": "channel" });
        event.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        incoming("UB", &json!({ "type": "events_api", "payload": { "event_id": "Ev1", "event": event } }))
    }

    #[test]
    fn a_message_of_a_person_is_heard_and_none_of_a_program() {
        let incoming = event(&json!({ "text": "<@UB> /kanban create a&amp;b" })).unwrap();
        assert_eq!(
            (incoming.text.as_str(), incoming.id.as_str(), incoming.is_direct),
            ("/kanban create a&b", "Ev1", false)
        );
        assert!(event(&json!({ "channel_type": "im" })).unwrap().is_direct);
        for of_others in [
            json!({ "bot_id": "B1" }),
            json!({ "subtype": "message_changed" }),
            json!({ "user": "UB" }),
            json!({ "type": "reaction_added" }),
            json!({ "text": null }),
        ] {
            assert!(event(&of_others).is_none(), "{of_others}");
        }
    }

    #[test]
    fn a_reply_is_one_in_the_thread_of_a_message_of_the_bot() {
        let reply = event(&json!({ "thread_ts": "4.1", "parent_user_id": "UB" })).unwrap();
        assert_eq!((reply.replied.as_deref(), reply.thread.as_str()), (Some("4.1"), "4.1"));
        assert_eq!(event(&json!({ "thread_ts": "4.1", "parent_user_id": "U2" })).unwrap().replied, None);
        assert_eq!(event(&json!({ "thread_ts": "5.1" })).unwrap().thread, "");
    }

    #[test]
    fn a_slash_command_is_a_line() {
        let payload = json!({ "command": "/kanban", "text": "list --why", "user_id": "U1", "channel_id": "D1", "trigger_id": "1.2", "channel_name": "directmessage" });
        let incoming = incoming("UB", &json!({ "type": "slash_commands", "payload": payload })).unwrap();
        assert_eq!((incoming.text.as_str(), incoming.is_direct), ("/kanban list --why", true));
    }
}
