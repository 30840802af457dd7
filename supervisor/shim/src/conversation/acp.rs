//! `acp`: JSON-RPC lines of the Agent Client Protocol, as `gemini --experimental-acp` and `opencode acp` speak it.
//!
//! The conversation begins with `initialize`, and then `session/new` or `session/load`. Each message is a
//! `session/prompt`, whose answer ends the turn. A prompt within a turn would cancel that turn, so a message waits for
//! the end of the turn, and begins the next one. The policy of the run confines the program, so its requests for
//! permissions are granted; all its other requests are refused.

use std::collections::VecDeque;

use serde_json::{Value, json};

use super::json_rpc::{Incoming, refusal};
use super::{LineEffects, Speech};
use crate::lenient;
use crate::rundir::AgentMessage;

/// Number of the request that begins or continues a session, after `initialize`.
const SESSION: u64 = 1;

/// Message that waits for its turn; without a number, it is the prompt.
#[derive(Debug)]
struct Turn {
    number: Option<u32>,
    text: String,
}

/// State of the conversation.
#[derive(Debug)]
pub(super) struct Acp {
    /// Session to resume; none begins a new session.
    resumed: Option<String>,
    cwd: String,
    session: Option<String>,
    /// Waiting messages. During a turn, all messages are kept here, and not among the input that waits for space in the
    /// pipe. Their number is bounded by the number of messages that the board accepts for a run (`MESSAGES` in
    /// `kernel/src/model/limits.rs`).
    waiting: VecDeque<Turn>,
    /// Turn in progress: the number of its request, and the number of its message until that is confirmed.
    turn: Option<(u64, Option<u32>)>,
    next: u64,
}

impl Acp {
    /// Creates a conversation whose session works in the directory `cwd`.
    pub(super) fn new(resumed: Option<String>, cwd: String) -> Self {
        Acp { resumed, cwd, session: None, waiting: VecDeque::new(), turn: None, next: SESSION + 1 }
    }

    /// Begins the next turn, unless a turn is in progress or no message waits. Returns the number of its message and
    /// the line to write.
    fn go_on(&mut self) -> Option<(Option<u32>, Vec<u8>)> {
        let session = self.session.as_ref().filter(|_| self.turn.is_none())?;
        let Turn { number, text } = self.waiting.pop_front()?;
        let request = self.next;
        self.next += 1;
        self.turn = Some((request, number));
        let params = json!({ "sessionId": session, "prompt": [{ "type": "text", "text": text }] });
        Some((number, line(&json!({ "id": request, "method": "session/prompt", "params": params }))))
    }

    fn begin_session(&self) -> Vec<u8> {
        let mut params = json!({ "cwd": self.cwd, "mcpServers": [] });
        let method = match &self.resumed {
            Some(session) => {
                params["sessionId"] = json!(session);
                "session/load"
            }
            None => "session/new",
        };
        line(&json!({ "id": SESSION, "method": method, "params": params }))
    }

    fn answered(&mut self, request: u64, answer: &Incoming, effects: &mut LineEffects) {
        let failure = answer.error.as_ref().map(|failure| failure.message.clone());
        if request == 0 {
            match failure {
                None => effects.say.push((None, self.begin_session())),
                why => effects.failed = why,
            }
        } else if request == SESSION {
            let named = answer.result["sessionId"].as_str().map(str::to_owned);
            match (named.or_else(|| self.resumed.clone()), failure) {
                (Some(session), None) => {
                    self.session = Some(session);
                    effects.say.extend(self.go_on());
                }
                (None, None) => effects.failed = Some("it began no session".to_owned()),
                (_, why) => effects.failed = why,
            }
        } else if let Some((_, unconfirmed)) = self.turn.take_if(|(turn, _)| *turn == request) {
            match (failure, unconfirmed) {
                (None, number) => effects.confirmed.extend(number),
                (Some(_), Some(number)) => effects.refused.push(number),
                // The turn failed after the program had read the message. The output of the program reports the
                // failure.
                (Some(_), None) => {}
            }
            effects.say.extend(self.go_on());
        }
    }
}

/// Returns the answer to a request of the program.
fn answer(id: &Value, method: &str, params: &Value) -> Vec<u8> {
    let allows = |option: &&Value| option["kind"].as_str().is_some_and(|kind| kind.starts_with("allow"));
    let option = params["options"].as_array().and_then(|options| options.iter().find(allows));
    let chosen = option.filter(|_| method == "session/request_permission");
    let answer = if let Some(option) = chosen {
        let outcome = json!({ "outcome": "selected", "optionId": option["optionId"] });
        json!({ "id": id, "result": { "outcome": outcome } })
    } else {
        refusal(id, method)
    };
    line(&answer)
}

fn line(value: &Value) -> Vec<u8> {
    let mut value = value.clone();
    value["jsonrpc"] = json!("2.0");
    format!("{value}\n").into_bytes()
}

impl Speech for Acp {
    fn begin(&mut self, prompt: &str) -> Vec<u8> {
        self.waiting.push_back(Turn { number: None, text: prompt.to_owned() });
        let can = json!({ "fs": { "readTextFile": false, "writeTextFile": false }, "terminal": false });
        let params = json!({ "protocolVersion": 1, "clientCapabilities": can });
        line(&json!({ "id": 0, "method": "initialize", "params": params }))
    }

    fn say(&mut self, agent_message: &AgentMessage) -> Option<Vec<u8>> {
        self.waiting.push_back(Turn { number: Some(agent_message.number), text: agent_message.text.clone() });
        self.go_on().map(|(_, message_bytes)| message_bytes)
    }

    fn hear(&mut self, line: &[u8]) -> LineEffects {
        let mut effects = LineEffects::default();
        let Some(incoming) = lenient::read::<Incoming>(line) else { return effects };
        match (&incoming.id, incoming.method.as_deref()) {
            (Some(id), Some(method)) => effects.say.push((None, answer(id, method, &incoming.params))),
            (Some(id), None) => {
                if let Some(request) = id.as_u64() {
                    self.answered(request, &incoming, &mut effects);
                }
            }
            (None, Some("session/update")) => {
                // Any notification of the program during a turn shows that it has read the message of the turn.
                effects.confirmed.extend(self.turn.as_mut().and_then(|(_, unconfirmed)| unconfirmed.take()));
            }
            (None, _) => {}
        }
        effects
    }

    fn is_idle(&self) -> bool {
        self.session.is_some() && self.turn.is_none() && self.waiting.is_empty()
    }

    fn is_confirmed(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn agent_message(number: u32) -> AgentMessage {
        AgentMessage { number, id: format!("id-{number}"), text: format!("text {number}") }
    }

    fn texts_sent(bytes: &[u8]) -> (String, Value) {
        let value: Value = serde_json::from_slice(bytes).unwrap();
        assert_eq!(value["jsonrpc"], "2.0");
        (value["method"].as_str().unwrap_or("-").to_owned(), value)
    }

    fn opened(resumed: Option<&str>, session: &[u8]) -> (Acp, LineEffects) {
        let mut speech = Acp::new(resumed.map(str::to_owned), "/w".to_owned());
        assert_eq!(texts_sent(&speech.begin("the prompt")).0, "initialize");
        speech.hear(br#"{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":1}}"#);
        let effects = speech.hear(session);
        (speech, effects)
    }

    #[test]
    fn a_message_waits_for_the_end_of_the_turn_and_begins_the_next_one() {
        let (mut speech, effects) = opened(None, br#"{"id":1,"result":{"sessionId":"s"}}"#);
        let (method, first) = texts_sent(&effects.say[0].1);
        assert_eq!(
            (method.as_str(), &first["params"]["prompt"][0]["text"]),
            ("session/prompt", &json!("the prompt"))
        );
        assert_eq!(speech.say(&agent_message(1)), None, "it would cancel the turn");
        assert!(!speech.is_idle());
        let effects = speech.hear(br#"{"id":2,"result":{"stopReason":"end_turn"}}"#);
        assert_eq!(effects.say[0].0, Some(1));
        assert_eq!(texts_sent(&effects.say[0].1).1["params"]["prompt"][0]["text"], "text 1");
        let update =
            br#"{"method":"session/update","params":{"update":{"sessionUpdate":"agent_message_chunk"}}}"#;
        assert_eq!((speech.hear(update).confirmed, speech.hear(update).confirmed), (vec![1], vec![]));
        assert!(!speech.is_idle());
        speech.hear(br#"{"id":3,"result":{"stopReason":"end_turn"}}"#);
        assert!(speech.is_idle());
    }

    #[test]
    fn a_session_is_gone_on_in_and_one_that_is_gone_is_said() {
        let (speech, effects) = opened(Some("s-0"), br#"{"id":1,"result":null}"#);
        assert_eq!(texts_sent(&effects.say[0].1).1["params"]["sessionId"], "s-0");
        assert!(speech.session.is_some());
        let (_, effects) =
            opened(Some("s-0"), br#"{"id":1,"error":{"code":-1,"message":"no such session"}}"#);
        assert_eq!(effects.failed.as_deref(), Some("no such session"));
    }

    #[test]
    fn permissions_are_given_and_all_else_that_is_asked_is_refused() {
        let (mut speech, _) = opened(None, br#"{"id":1,"result":{"sessionId":"s"}}"#);
        let asked = br#"{"id":"a","method":"session/request_permission","params":{"options":[{"optionId":"no","kind":"reject_once"},{"optionId":"yes","kind":"allow_once"}]}}"#;
        let (_, value) = texts_sent(&speech.hear(asked).say[0].1);
        assert_eq!((&value["id"], &value["result"]["outcome"]["optionId"]), (&json!("a"), &json!("yes")));
        let (_, value) =
            texts_sent(&speech.hear(br#"{"id":9,"method":"fs/read_text_file","params":{}}"#).say[0].1);
        assert_eq!(value["error"]["code"], -32601);
    }
}
