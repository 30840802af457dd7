//! Calls of the verbs and tools of plugins.

use std::time::Duration;

use kernel::{Actor, ActorKind, PluginName};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::unknown;
use api::command::Command;
use api::{Call, Verb, verb};
use base::exit::Code;
use base::failure::Failure;
use base::terminal::Screen;
use daemon::OwnerLink;
use delivery::plugins::{CallContext, CallRequest, PluginReply};
use setup::automation::plugins::Plugin;
use setup::config::definitions::Lookup;

/// Limits on the words of a call, and on the bytes of the words with the input.
const WORDS: usize = 1000;
const BYTES: usize = 1 << 20;

/// Call a verb of a plugin
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct CallPlugin {
    /// The plugin.
    pub plugin: String,
    /// The verb.
    pub verb: String,
    /// The words behind it.
    pub arguments: Vec<String>,
}

/// Call a tool of a plugin
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct CallPluginTool {
    /// The whole name of the tool: `plugin_PLUGIN_TOOL`.
    pub tool: String,
    /// Its arguments.
    pub arguments: Map<String, Value>,
}

impl Verb for CallPlugin {
    verb! { "call-plugin": Operator, Daemon, hang_up(Ends) => PluginReply }

    fn answered_within(&self) -> Duration {
        Duration::from_mins(10)
    }

    async fn run(self, call: Call) -> Result<PluginReply, Failure> {
        let plugin = find(&call, &self.plugin)?;
        let verbs = &plugin.manifest.verbs;
        if verbs.iter().all(|verb| verb.name != self.verb) {
            let known: Vec<&str> = verbs.iter().map(|verb| verb.name.as_str()).collect();
            let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
            return Err(Failure::new(
                Code::NotFound,
                format!("the plugin {} has no verb `{}`", plugin.name, self.verb),
            )
            .hint(format!("its verbs are: {known}")));
        }
        let size: usize = self.arguments.iter().map(String::len).sum();
        if self.arguments.len() > WORDS || size > BYTES {
            return Err(Failure::new(
                Code::TooLarge,
                format!("a call has {WORDS} words and {BYTES} bytes at most"),
            ));
        }
        ask(&call, &plugin, CallRequest::Verb(&self.verb, &self.arguments)).await
    }
}

impl Verb for CallPluginTool {
    verb! { "call-plugin-tool": Worker, Daemon, hang_up(Ends) => PluginReply }

    fn answered_within(&self) -> Duration {
        Duration::from_mins(10)
    }

    fn longest(&self) -> Duration {
        Duration::from_mins(10)
    }

    async fn run(self, call: Call) -> Result<PluginReply, Failure> {
        let plugins = call.service.plugins();
        let offered = plugins.tools().find(|(plugin, tool)| {
            plugin.tool_name(tool) == self.tool && (tool.workers || call.actor.kind != ActorKind::Worker)
        });
        let Some((plugin, tool)) = offered else {
            return Err(Failure::new(Code::NotFound, "no plugin offers this tool to the caller")
                .hint("`tools` lists them"));
        };
        let size = serde_json::to_string(&self.arguments).map_or(usize::MAX, |text| text.len());
        if size > BYTES {
            return Err(Failure::new(Code::TooLarge, format!("the arguments have more than {BYTES} bytes")));
        }
        ask(&call, plugin, CallRequest::Tool(&tool.name, &self.arguments)).await
    }
}

fn find(call: &Call, name: &str) -> Result<Plugin, Failure> {
    match call.service.plugins().find(name) {
        Lookup::Usable(plugin) => Ok(plugin.clone()),
        Lookup::Disabled(defect) => {
            Err(Failure::new(Code::Conflict, format!("the plugin {name} is disabled: {defect}"))
                .hint(defect.hint()))
        }
        Lookup::Absent => {
            let name: PluginName = name.parse().map_err(|e| Failure::usage(format!("{e}")))?;
            Err(unknown(&call.service, &name))
        }
    }
}

/// Makes the call. A repeated request gets the reply of the first one.
async fn ask(call: &Call, plugin: &Plugin, asking: CallRequest<'_>) -> Result<PluginReply, Failure> {
    if let Some(answer) = call.replied::<PluginReply>().await? {
        return Ok(answer);
    }
    let Some(daemon) = OwnerLink::from_service(&call.service) else {
        return Err(Failure::new(Code::Unreachable, "plugins are called by the daemon, and none is running")
            .hint("start one with: supervisor daemon"));
    };
    let actor: &Actor = &call.actor;
    let id = call.request_id().map(|id| id.as_str().to_owned());
    let about = CallContext { plugin, board: call.board_name(), actor, id: id.as_deref() };
    let answer = daemon.plugins().request(&call.service, about, asking).await?;
    call.write(move |_, _| Ok(answer)).await
}

fn show(reply: &PluginReply, screen: &mut Screen) {
    let data = || reply.data.as_ref().map(|data| serde_json::to_string_pretty(data).unwrap_or_default());
    // The text comes from a plugin, so it may have control characters that are unsafe for a terminal.
    if let Some(text) = reply.text.clone().or_else(data) {
        for line in text.trim_end().lines() {
            screen.line(base::terminal::printable(line));
        }
    }
}

impl Command for CallPlugin {
    fn show(reply: &PluginReply, screen: &mut Screen) {
        show(reply, screen);
    }
}

impl Command for CallPluginTool {
    fn show(reply: &PluginReply, screen: &mut Screen) {
        show(reply, screen);
    }
}
