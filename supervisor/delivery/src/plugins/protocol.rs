//! Input and reply of a plugin's call, which are one JSON object each.

use kernel::{BoardName, Event, PluginName};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use setup::automation::plugins::VERSION;

/// Size limit of a reply, in bytes.
pub(super) const REPLY: usize = 1 << 20;
/// Limit on the requests in a reply.
const REQUESTS: usize = 20;

/// Reply of a plugin. Each kind of call uses its own part.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct PluginOutput {
    /// Reason why the call failed, if it did.
    pub(super) error: Option<String>,
    /// Text for people and models.
    pub(super) text: Option<String>,
    /// Data for programs that call it.
    pub(super) data: Option<Value>,
    /// Requests that the daemon carries out on the board.
    pub(super) requests: Vec<RequestedVerb>,
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RequestedVerb {
    pub(super) verb: String,
    pub(super) body: Value,
}

impl PluginOutput {
    /// Returns the size of text and data, in bytes.
    pub(super) fn size(&self) -> usize {
        let data = self.data.as_ref().map_or(0, |data| data.to_string().len());
        data + self.text.as_ref().map_or(0, String::len)
    }

    /// Parses a reply. Empty output is an empty reply.
    pub(super) fn parse(text: &[u8]) -> Result<Self, String> {
        if text.trim_ascii().is_empty() {
            return Ok(PluginOutput::default());
        }
        let fail = |e: serde_json::Error| plain(&format!("its reply is not what was asked for: {e}"));
        // The reply is parsed as an object first, because serde would accept an array as the fields in their order.
        let object: Map<String, Value> = serde_json::from_slice(text).map_err(fail)?;
        let reply: PluginOutput = serde_json::from_value(Value::Object(object)).map_err(fail)?;
        if reply.requests.len() > REQUESTS {
            return Err(format!("its reply has more than {REQUESTS} requests"));
        }
        Ok(reply)
    }
}

/// Returns a plugin's text for an error message: without control characters, and with at most 300 characters.
pub(super) fn plain(text: &str) -> String {
    text.chars().filter(|c| !c.is_control()).take(300).collect()
}

/// Returns the input of a call for an event.
pub(super) fn event(plugin: &PluginName, board: &BoardName, event: &Event) -> Value {
    json!({ "version": VERSION, "plugin": plugin, "call": "event", "board": board, "event": event })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reply_is_one_object_of_known_fields() {
        assert_eq!(PluginOutput::parse(b" \n").unwrap(), PluginOutput::default());
        assert_eq!(PluginOutput::parse(b"{}").unwrap(), PluginOutput::default());
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
            let why = PluginOutput::parse(text.as_bytes()).unwrap_err();
            assert!(why.contains(expected), "{text:.40}: {why}");
        }
    }
}
