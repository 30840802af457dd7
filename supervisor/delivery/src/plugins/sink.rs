//! Sinks of plugins: a call delivers a message to people.

use std::sync::Arc;

use kernel::PluginName;
use serde_json::{Value, json};

use super::calls::{CallQueue, Calls};
use base::failure::Failure;
use service::Service;
use setup::automation::plugins::{Plugin, VERSION};

/// Returns the input of a call for a message.
pub(super) fn call(plugin: &PluginName, sink: &str, message: &Value) -> Value {
    json!({ "version": VERSION, "plugin": plugin, "call": "sink", "sink": sink, "message": message })
}

/// Returns a made-up message, for a check.
pub(super) fn made_up() -> Value {
    json!({ "version": 1, "id": "test", "board": "default", "channel": "check", "chat_id": "", "thread_id": "",
        "text": "test message of supervisor", "messages": [] })
}

impl Calls {
    /// Gives a message to a plugin's sink. Requests in the reply are refused, because the message may be repeated.
    pub async fn deliver_message(
        &self,
        service: &Arc<Service>,
        plugin: &Plugin,
        sink: &str,
        message: &Value,
    ) -> Result<(), Failure> {
        let reply = self.call(service, plugin, &call(&plugin.name, sink, message), CallQueue::Asked).await?;
        if reply.requests.is_empty() {
            return Ok(());
        }
        Err(Failure::failed("the reply of a sink asks for nothing, and this one does"))
    }
}
