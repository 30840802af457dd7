//! A server that plays Telegram: it hands out updates until they are confirmed, and keeps what the bot says.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};

use crate::harness::Fleet;
use crate::notify::played::{Played, PlayedAnswer, ReceivedPost};

/// Beginnings of messages about tasks, which arrive between replies.
const NEWS: [&str; 5] = ["done: ", "question: ", "crashed", "ended without", "gave up: "];

/// Record of the chats.
#[derive(Default)]
struct Chats {
    updates: Vec<Value>,
    said: Vec<Value>,
    /// The offsets that were asked for.
    offsets: Vec<i64>,
}

pub(crate) struct Telegram {
    played: Played,
    chats: Arc<Mutex<Chats>>,
}

fn ok(result: &Value) -> PlayedAnswer {
    let text: &'static str = json!({ "ok": true, "result": result }).to_string().leak();
    ("200 OK", "", text)
}

fn answer(chats: &Mutex<Chats>, asked: &ReceivedPost) -> PlayedAnswer {
    let Some(method) = asked.path.strip_prefix("/bot9:TOKEN/") else {
        return (
            "401 Unauthorized",
            "",
            "{\"ok\":false,\"error_code\":401,\"description\":\"Unauthorized\"}",
        );
    };
    match method {
        "getMe" => ok(&json!({ "id": 9, "is_bot": true, "first_name": "Fleet", "username": "fleet_bot" })),
        "sendMessage" => {
            let mut chats = chats.lock().unwrap();
            chats.said.push(asked.json());
            ok(&json!({ "message_id": 1000 + chats.said.len() }))
        }
        "getUpdates" => {
            let from = asked.json()["offset"].as_i64().unwrap();
            {
                let mut chats = chats.lock().unwrap();
                chats.offsets.push(from);
                chats.updates.retain(|update| update["update_id"].as_i64().unwrap() >= from);
            }
            // The real one waits as long as it is asked to.
            for _ in 0..40 {
                let is_new = |update: &&Value| update["update_id"].as_i64().unwrap() >= from;
                let new: Vec<Value> = chats.lock().unwrap().updates.iter().filter(is_new).cloned().collect();
                if !new.is_empty() {
                    return ok(&Value::from(new));
                }
                std::thread::sleep(Duration::from_millis(50));
            }
            ok(&json!([]))
        }
        other => panic!("{other}"),
    }
}

impl Telegram {
    pub(crate) fn start(port: u16) -> Self {
        let chats: Arc<Mutex<Chats>> = Arc::default();
        let seen = Arc::clone(&chats);
        let played = Played::at(port, move |asked, _| answer(&seen, asked));
        Telegram { played, chats }
    }

    pub(crate) fn url(&self) -> String {
        self.played.url()
    }

    /// A message in a chat. Its number is also that of its update.
    pub(crate) fn message(&self, number: i64, sender: i64, text: &str, more: &Value) {
        let mut message = json!({
            "message_id": number, "from": { "id": sender, "is_bot": false }, "text": text,
            "chat": { "id": sender, "type": "private" }
        });
        message.as_object_mut().unwrap().extend(more.as_object().cloned().unwrap_or_default());
        let update = json!({ "update_id": number, "message": message });
        self.chats.lock().unwrap().updates.push(update);
    }

    /// Returns the bot's messages, the oldest first.
    pub(crate) fn messages(&self) -> Vec<Value> {
        self.chats.lock().unwrap().said.clone()
    }

    pub(crate) fn offsets(&self) -> Vec<i64> {
        self.chats.lock().unwrap().offsets.clone()
    }

    /// Says something to the bot alone, and returns its reply.
    pub(crate) fn says(&self, fleet: &Fleet, sender: i64, text: &str) -> String {
        self.says_with(fleet, sender, text, &json!({}))
    }

    /// The same with more about the message.
    pub(crate) fn says_with(&self, fleet: &Fleet, sender: i64, text: &str, more: &Value) -> String {
        let before = self.messages().len();
        self.message(i64::try_from(before).unwrap() + 1_000_000, sender, text, more);
        let chat = sender.to_string();
        let is_reply = |said: &&Value| {
            let is_news = NEWS.iter().any(|word| text_of(said).starts_with(word));
            said["chat_id"] == *chat && !is_news
        };
        fleet.eventually("the bot has replied", || {
            self.messages()[before..].iter().find(is_reply).map(text_of)
        })
    }

    /// The first message of the bot that has a text.
    pub(crate) fn first_message(&self, fleet: &Fleet, text: &str) -> (i64, Value) {
        fleet.eventually("the bot has said it", || {
            let said = self.messages().into_iter().zip(1001..);
            said.map(|(said, id)| (id, said)).find(|(_, said)| text_of(said).contains(text))
        })
    }
}

pub(crate) fn text_of(said: &Value) -> String {
    said["text"].as_str().unwrap_or_default().to_owned()
}
