//! `tools`: lists the verbs and plugins' tools that the caller may call as tools over MCP.

use kernel::{ActorKind, Purpose, WorkerRole};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use api::{Call, Scope, Verb, verb};
use base::failure::Failure;
use setup::automation::plugins::{Plugin, PluginTool};

/// List the verbs that the caller is offered as tools over MCP
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Tools {}

/// Tools that the caller may call.
#[derive(Debug, Serialize, Deserialize)]
pub struct Offered {
    /// Names of the verbs, in the order of the table.
    pub verbs: Vec<String>,
    /// True if the caller may read files and run scripts through tools. An orchestrator may not, because it only delegates.
    #[serde(default)]
    pub work: bool,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub plugins: Vec<OfPlugin>,
}

/// Tool of a plugin, as it is listed.
#[derive(Debug, Serialize, Deserialize)]
pub struct OfPlugin {
    pub name: String,
    pub about: String,
    /// JSON Schema of its arguments.
    pub input: Map<String, Value>,
}

impl Verb for Tools {
    verb! { "tools": Worker, Read, on(None) => Offered }

    async fn run(self, call: Call) -> Result<Offered, Failure> {
        let purpose = match call.actor.run.as_ref().map(|own| own.run) {
            Some(run) => call.read(move |view| view.run(run)).await?.map(|run| run.purpose),
            None => None,
        };
        let (is_worker, role) = (call.actor.kind == ActorKind::Worker, call.actor.role);
        let offered = |scope: Scope| match scope {
            Scope::Worker => true,
            Scope::Reviewer => !is_worker || purpose == Some(Purpose::Review) || role == WorkerRole::Reviewer,
            Scope::Orchestrator => !is_worker || role == WorkerRole::Orchestrator,
            Scope::Operator => !is_worker,
        };
        let entries = crate::entries().into_iter();
        let verbs = entries.filter(|entry| entry.tool.is_some_and(|tool| offered(tool.scope)));
        let verbs = verbs.map(|entry| entry.name.to_owned()).collect();
        let plugins = call.service.plugins();
        let of_plugins = plugins.tools().filter(|(_, tool)| tool.workers || !is_worker);
        let of_plugin = |(plugin, tool): (&Plugin, &PluginTool)| OfPlugin {
            name: plugin.tool_name(tool),
            about: tool.about.clone(),
            input: tool.schema(),
        };
        let work = role != WorkerRole::Orchestrator;
        Ok(Offered { verbs, work, plugins: of_plugins.map(of_plugin).collect() })
    }
}
