//! `stream-json`: JSON lines of Claude Code, both ways.
//!
//! A message is a line `user` with a UUID. With `--replay-user-messages` the program repeats the line when it takes the
//! message up, within a turn or at the beginning of the next one. `result` ends a turn. The program ends when its input
//! is closed.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::json;

use super::{LineEffects, Speech};
use crate::lenient;
use crate::rundir::AgentMessage;

/// State of the conversation.
#[derive(Debug)]
pub(super) struct StreamJson {
    /// Name of the prompt.
    first: String,
    /// Messages that the program has not repeated, by their names.
    unconfirmed: BTreeMap<String, u32>,
    is_idle: bool,
}

#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Event {
    User {
        uuid: Option<String>,
        #[serde(default, rename = "isReplay")]
        is_replay: bool,
    },
    Assistant {},
    Result {},
    #[serde(other)]
    Other,
}

impl StreamJson {
    /// Makes a conversation; `first` is the name of its first message.
    pub(super) fn new(first: String) -> Self {
        StreamJson { first, unconfirmed: BTreeMap::new(), is_idle: false }
    }
}

fn line(id: &str, text: &str) -> Vec<u8> {
    let content = json!([{ "type": "text", "text": text }]);
    let message = json!({
        "type": "user", "uuid": id, "session_id": "", "parent_tool_use_id": null,
        "message": { "role": "user", "content": content },
    });
    format!("{message}\n").into_bytes()
}

impl Speech for StreamJson {
    fn begin(&mut self, prompt: &str) -> Vec<u8> {
        line(&self.first, prompt)
    }

    fn say(&mut self, agent_message: &AgentMessage) -> Option<Vec<u8>> {
        self.unconfirmed.insert(agent_message.id.clone(), agent_message.number);
        Some(line(&agent_message.id, &agent_message.text))
    }

    fn hear(&mut self, line: &[u8]) -> LineEffects {
        let mut effects = LineEffects::default();
        match lenient::read(line) {
            Some(Event::User { uuid: Some(uuid), is_replay: true }) => {
                self.is_idle = false;
                effects.confirmed.extend(self.unconfirmed.remove(&uuid));
            }
            Some(Event::Assistant {}) => self.is_idle = false,
            Some(Event::Result {}) => self.is_idle = true,
            Some(Event::User { .. } | Event::Other) | None => {}
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

    fn agent_message(number: u32) -> AgentMessage {
        AgentMessage { number, id: format!("id-{number}"), text: "look\nat \"it\"".to_owned() }
    }

    #[test]
    fn a_message_is_one_line_and_is_confirmed_by_its_replay_alone() {
        let mut speech = StreamJson::new("p".to_owned());
        let bytes = speech.begin("the\nprompt");
        assert_eq!(bytes.split(|byte| *byte == b'\n').count(), 2);
        let value: serde_json::Value = serde_json::from_slice(&bytes).unwrap();
        assert_eq!(
            (&value["uuid"], &value["message"]["content"][0]["text"]),
            (&json!("p"), &json!("the\nprompt"))
        );
        speech.say(&agent_message(1));
        assert!(!speech.is_confirmed());
        for lie in
            [r#"{"type":"user","uuid":"id-1"}"#, r#"{"type":"user","uuid":"id-2","isReplay":true}"#, "id-1"]
        {
            assert_eq!(speech.hear(lie.as_bytes()).confirmed, [0; 0], "{lie}");
        }
        assert_eq!(
            speech.hear(br#"{"type":"user","uuid":"id-1","isReplay":true,"message":{}}"#).confirmed,
            [1]
        );
        assert!(speech.is_confirmed());
    }

    #[test]
    fn a_turn_ends_also_with_a_result_that_holds_a_bad_character_or_is_long() {
        let long = format!(
            "{{\"type\":\"result\",\"result\":\"{}\",\"n\":[{}1]}}\n",
            "x".repeat(2 << 20),
            "1,".repeat(2 << 20)
        );
        for result in [
            &b"{\"type\":\"result\",\"result\":\"half \\ud83d\"}\n"[..],
            b"{\"type\":\"result\",\"result\":\"\xff\",\"total_cost_usd\":NaN}\n",
            b"\x1b[?2004h{\"type\":\"result\"}\r\n",
            long.as_bytes(),
        ] {
            let mut speech = StreamJson::new("p".to_owned());
            let mut lines = super::super::Lines::cut();
            for piece in result.chunks(1 << 16) {
                lines.take(piece, |line| drop(speech.hear(line)));
            }
            assert!(speech.is_idle(), "{}", result[..40.min(result.len())].escape_ascii());
        }
    }

    #[test]
    fn a_turn_ends_with_its_result_and_the_next_begins_with_what_is_taken_up() {
        let mut speech = StreamJson::new("p".to_owned());
        assert!(!speech.is_idle());
        speech.hear(br#"{"type":"assistant","message":{}}"#);
        speech.hear(br#"{"type":"result","subtype":"success","result":"done"}"#);
        assert!(speech.is_idle());
        speech.say(&agent_message(1));
        assert!(speech.is_idle());
        speech.hear(br#"{"type":"user","uuid":"id-1","isReplay":true}"#);
        assert!(!speech.is_idle());
    }
}
