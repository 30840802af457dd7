//! `app-server`: JSON-RPC lines of `codex app-server`.
//!
//! `initialize`, then `thread/start` or `thread/resume`. Each message is a `turn/start` with a name of its own. A
//! message during a turn belongs to that turn. The item `userMessage` with that name confirms it, and `turn/completed`
//! ends a turn. The program ends when its input is closed. Its requests are refused, because no user can answer them.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::json_rpc::{Incoming, refusal};
use super::{LineEffects, Speech};
use crate::lenient;
use crate::rundir::AgentMessage;

/// Number of the request that begins or continues a thread, after `initialize`.
const THREAD: u64 = 1;

/// State of the conversation.
#[derive(Debug)]
pub(super) struct AppServer {
    /// Name of the prompt.
    first: String,
    /// The thread of the conversation.
    resumed: Option<String>,
    cwd: String,
    thread: Option<String>,
    /// Messages sent before a thread exists: number, name and text. The board limits the messages of a run, and so
    /// their number.
    waiting: Vec<(Option<u32>, String, String)>,
    /// Messages that are not confirmed, by their names.
    unconfirmed: BTreeMap<String, u32>,
    /// Requests whose answers are awaited, each with the name of its message.
    requests: BTreeMap<u64, String>,
    next: u64,
    is_idle: bool,
}

impl AppServer {
    /// Makes a conversation in a directory; `first` is the name of its first message.
    pub(super) fn new(first: String, resumed: Option<String>, cwd: String) -> Self {
        AppServer {
            first,
            resumed,
            cwd,
            thread: None,
            waiting: Vec::new(),
            unconfirmed: BTreeMap::new(),
            requests: BTreeMap::new(),
            next: THREAD + 1,
            is_idle: false,
        }
    }

    /// Returns the request that sends a message; none as long as there is no thread.
    fn turn(&mut self, id: &str, text: &str) -> Option<Vec<u8>> {
        let thread = self.thread.as_ref()?;
        let request = self.next;
        self.next += 1;
        self.requests.insert(request, id.to_owned());
        let input = json!([{ "type": "text", "text": text, "text_elements": [] }]);
        let params = json!({ "threadId": thread, "clientUserMessageId": id, "input": input });
        Some(line(&json!({ "id": request, "method": "turn/start", "params": params })))
    }

    /// Returns the request for the thread, after the program has answered the first request.
    fn begin_thread(&self) -> Vec<u8> {
        let (method, params) = match &self.resumed {
            Some(thread) => ("thread/resume", json!({ "threadId": thread, "cwd": self.cwd })),
            None => ("thread/start", json!({ "cwd": self.cwd })),
        };
        let mut sent = line(&json!({ "method": "initialized" }));
        sent.extend(line(&json!({ "id": THREAD, "method": method, "params": params })));
        sent
    }

    fn answered(&mut self, request: u64, answer: &Incoming, effects: &mut LineEffects) {
        if request == 0 {
            effects.say.push((None, self.begin_thread()));
        } else if request == THREAD {
            match (answer.result.pointer("/thread/id").and_then(Value::as_str), &answer.error) {
                (Some(thread), _) => {
                    self.thread = Some(thread.to_owned());
                    for (number, id, text) in std::mem::take(&mut self.waiting) {
                        effects.say.extend(self.turn(&id, &text).map(|sent| (number, sent)));
                    }
                }
                (None, failure) => {
                    let why = failure.as_ref().map_or("it began no thread", |failure| &failure.message);
                    effects.failed = Some(why.to_owned());
                }
            }
        } else if let Some(id) = self.requests.remove(&request)
            && let Some(failure) = &answer.error
        {
            match self.unconfirmed.remove(&id) {
                Some(number) => effects.refused.push(number),
                None => effects.failed = Some(failure.message.clone()),
            }
        }
    }

    fn notified(&mut self, method: &str, params: &Value, effects: &mut LineEffects) {
        match method {
            "turn/started" => self.is_idle = false,
            "turn/completed" => self.is_idle = true,
            "item/started" | "item/completed" => {
                let client = params.pointer("/item/clientId").and_then(Value::as_str);
                let is_ours = params.pointer("/item/type").is_some_and(|kind| kind == "userMessage");
                if let Some(id) = client.filter(|_| is_ours) {
                    self.is_idle = false;
                    effects.confirmed.extend(self.unconfirmed.remove(id));
                }
            }
            _ => {}
        }
    }
}

fn line(value: &Value) -> Vec<u8> {
    format!("{value}\n").into_bytes()
}

impl Speech for AppServer {
    fn begin(&mut self, prompt: &str) -> Vec<u8> {
        self.waiting.push((None, self.first.clone(), prompt.to_owned()));
        let client = json!({ "name": "supervisor", "title": null, "version": env!("CARGO_PKG_VERSION") });
        let params = json!({ "clientInfo": client, "capabilities": null });
        line(&json!({ "id": 0, "method": "initialize", "params": params }))
    }

    fn say(&mut self, agent_message: &AgentMessage) -> Option<Vec<u8>> {
        self.unconfirmed.insert(agent_message.id.clone(), agent_message.number);
        let sent = self.turn(&agent_message.id, &agent_message.text);
        if sent.is_none() {
            self.waiting.push((
                Some(agent_message.number),
                agent_message.id.clone(),
                agent_message.text.clone(),
            ));
        }
        sent
    }

    fn hear(&mut self, line: &[u8]) -> LineEffects {
        let mut effects = LineEffects::default();
        let Some(incoming) = lenient::read::<Incoming>(line) else { return effects };
        match (&incoming.id, &incoming.method) {
            (Some(id), Some(method)) => effects.say.push((None, self::line(&refusal(id, method)))),
            (Some(id), None) => {
                if let Some(request) = id.as_u64() {
                    self.answered(request, &incoming, &mut effects);
                }
            }
            (None, Some(method)) => self.notified(method, &incoming.params, &mut effects),
            (None, None) => {}
        }
        effects
    }

    fn is_idle(&self) -> bool {
        self.is_idle
    }

    fn is_confirmed(&self) -> bool {
        self.unconfirmed.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn speech(resumed: Option<&str>) -> AppServer {
        AppServer::new("p".to_owned(), resumed.map(str::to_owned), "/w".to_owned())
    }

    fn agent_message(number: u32) -> AgentMessage {
        AgentMessage { number, id: format!("id-{number}"), text: format!("text {number}") }
    }

    /// The methods and texts that are said, one each.
    fn texts_sent(effects: &LineEffects) -> Vec<String> {
        let lines = effects.say.iter().flat_map(|(_, bytes)| bytes.split_inclusive(|byte| *byte == b'\n'));
        lines
            .map(|line| {
                let value: Value = serde_json::from_slice(line).unwrap();
                let text = value.pointer("/params/input/0/text").or(value.pointer("/params/threadId"));
                format!("{} {}", value["method"].as_str().unwrap_or("-"), text.unwrap_or(&Value::Null))
            })
            .collect()
    }

    const THREAD_STARTED: &[u8] = br#"{"id":1,"result":{"thread":{"id":"t-1"}}}"#;

    #[test]
    fn what_is_said_before_there_is_a_thread_is_said_in_it_in_its_order() {
        let mut speech = speech(None);
        speech.begin("the prompt");
        assert_eq!(speech.say(&agent_message(1)), None);
        assert_eq!(
            texts_sent(&speech.hear(br#"{"id":0,"result":{}}"#)),
            ["initialized null", "thread/start null"]
        );
        let effects = speech.hear(THREAD_STARTED);
        assert_eq!(texts_sent(&effects), ["turn/start \"the prompt\"", "turn/start \"text 1\""]);
        assert_eq!(effects.say.iter().map(|(number, _)| *number).collect::<Vec<_>>(), [None, Some(1)]);
        assert!(speech.say(&agent_message(2)).is_some());
    }

    #[test]
    fn a_message_is_taken_up_when_its_item_says_so_and_a_turn_ends_when_it_is_said() {
        let mut speech = speech(None);
        speech.begin("p");
        speech.hear(THREAD_STARTED);
        speech.say(&agent_message(1));
        speech.hear(br#"{"id":3,"result":{"turn":{"id":"u"}}}"#);
        assert!(!speech.is_confirmed(), "an answer is no proof");
        let item = br#"{"method":"item/started","params":{"item":{"type":"userMessage","clientId":"id-1"}}}"#;
        assert_eq!(speech.hear(item).confirmed, [1]);
        assert!(speech.is_confirmed() && !speech.is_idle());
        speech.hear(br#"{"method":"turn/completed","params":{"turn":{"status":"completed"}}}"#);
        assert!(speech.is_idle());
    }

    #[test]
    fn what_the_program_refuses_and_what_it_asks_is_said() {
        let mut gone = speech(Some("t-0"));
        gone.begin("p");
        assert_eq!(
            texts_sent(&gone.hear(br#"{"id":0,"result":{}}"#)),
            ["initialized null", "thread/resume \"t-0\""]
        );
        let effects =
            gone.hear(br#"{"id":1,"error":{"code":-1,"message":"no rollout found for thread id t-0"}}"#);
        assert_eq!(effects.failed.as_deref(), Some("no rollout found for thread id t-0"));
        let mut speech = speech(None);
        speech.begin("p");
        speech.hear(THREAD_STARTED);
        speech.say(&agent_message(1));
        assert_eq!(speech.hear(br#"{"id":3,"error":{"message":"no"}}"#).refused, [1]);
        let asked = speech.hear(br#"{"id":7,"method":"item/tool/requestUserInput","params":{}}"#);
        assert!(String::from_utf8_lossy(&asked.say[0].1).contains("nobody answers"));
    }
}
