//! What goes to a plugin and what comes back: one JSON object each.

use kernel::{BoardName, Event, PluginName};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::automation::plugins::VERSION;

/// How many bytes a reply may have.
pub(super) const REPLY: usize = 1 << 20;
/// How many requests a reply may have.
const REQUESTS: usize = 20;

/// What a plugin answers. Each call has its own use for it.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Reply {
    /// Why the call failed, where it did.
    pub(super) error: Option<String>,
    /// For people and models.
    pub(super) text: Option<String>,
    /// For programs.
    pub(super) data: Option<Value>,
    /// What is to be done on the board.
    pub(super) requests: Vec<Request>,
}

/// One thing that a plugin asks for.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Request {
    /// The verb of the API.
    pub(super) verb: String,
    pub(super) body: Value,
}

impl Reply {
    /// How many bytes its answer has.
    pub(super) fn size(&self) -> usize {
        let data = self.data.as_ref().map_or(0, |data| data.to_string().len());
        data + self.text.as_ref().map_or(0, String::len)
    }

    /// Reads what a plugin wrote. Nothing at all is an empty reply.
    pub(super) fn parse(text: &[u8]) -> Result<Self, String> {
        if text.trim_ascii().is_empty() {
            return Ok(Reply::default());
        }
        let fail = |e: serde_json::Error| plain(&format!("its reply is not what was asked for: {e}"));
        // An array would be read as the fields in their order.
        let object: Map<String, Value> = serde_json::from_slice(text).map_err(fail)?;
        let reply: Reply = serde_json::from_value(Value::Object(object)).map_err(fail)?;
        if reply.requests.len() > REQUESTS {
            return Err(format!("its reply has more than {REQUESTS} requests"));
        }
        Ok(reply)
    }
}

/// A text of a plugin as an error can hold it.
pub(super) fn plain(text: &str) -> String {
    text.chars().filter(|c| !c.is_control()).take(300).collect()
}

/// The call for an event.
pub(super) fn event(plugin: &PluginName, board: &BoardName, event: &Event) -> Value {
    json!({ "version": VERSION, "plugin": plugin, "call": "event", "board": board, "event": event })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reply_is_one_object_of_known_fields() {
        assert_eq!(Reply::parse(b" \n").unwrap(), Reply::default());
        assert_eq!(Reply::parse(b"{}").unwrap(), Reply::default());
        let many = format!("{{\"requests\":[{}]}}", vec!["{\"verb\":\"comment\",\"body\":{}}"; 21].join(","));
        let deep = format!(
            "{{\"requests\":[{{\"verb\":\"c\",\"body\":{}{}}}]}}",
            "[".repeat(9000),
            "]".repeat(9000)
        );
        for (text, expected) in [
            ("no json", "not what was asked for"),
            ("{} {}", "trailing characters"),
            ("[]", "not what was asked for"),
            ("{\"ok\":true}", "unknown field `ok`"),
            ("{\"requests\":[{\"verb\":\"comment\"}]}", "missing field `body`"),
            ("{\"error\":\"\u{0}", "not what was asked for"),
            (&many, "more than 20 requests"),
            (&deep, "recursion limit"),
        ] {
            let why = Reply::parse(text.as_bytes()).unwrap_err();
            assert!(why.contains(expected), "{text:.40}: {why}");
        }
    }
}
