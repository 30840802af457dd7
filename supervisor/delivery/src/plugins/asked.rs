//! Calls of plugins' verbs and tools: their caller, input and reply.

use std::sync::{Arc, PoisonError};

use kernel::{Actor, BoardName, Tenant};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::calls::{Calls, Line, OfWorkers};
use super::requests::{Occasion, Refused, carry_out};
use api::PluginScope;
use base::exit::Code;
use base::failure::Failure;
use service::Service;
use setup::automation::plugins::{Plugin, VERSION};

/// Limit on the concurrent calls of one tenant's workers.
const OF_TENANT: usize = 2;

/// Size limit of a reply to a worker, in bytes. The reply is stored for a repeat of the request.
const OF_WORKER: usize = 64 << 10;

/// Reply of a plugin to its caller.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Answer {
    /// For people and models.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// For programs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<Value>,
}

/// Request to a plugin.
#[derive(Clone, Copy, Debug)]
pub enum Asking<'a> {
    /// Call of a verb, with its arguments.
    Verb(&'a str, &'a [String]),
    /// Call of a tool, with its arguments.
    Tool(&'a str, &'a Map<String, Value>),
}

/// Context of a call.
#[derive(Debug)]
pub struct About<'a> {
    pub plugin: &'a Plugin,
    pub board: &'a BoardName,
    /// Caller.
    pub actor: &'a Actor,
    /// Id of the request.
    pub id: Option<&'a str>,
}

/// A worker's call in progress, counted until it is dropped.
struct Counted<'a> {
    all: &'a OfWorkers,
    tenant: Option<Tenant>,
}

impl<'a> Counted<'a> {
    fn of(all: &'a OfWorkers, actor: &Actor) -> Result<Option<Self>, Failure> {
        if actor.run.is_none() {
            return Ok(None);
        }
        let mut counts = all.lock().unwrap_or_else(PoisonError::into_inner);
        let count = counts.entry(actor.tenant.clone()).or_default();
        if *count >= OF_TENANT {
            return Err(Failure::new(
                Code::Throttled,
                format!("{OF_TENANT} calls of plugins are under way for this tenant"),
            )
            .hint("call the tool again when one of them has ended"));
        }
        *count += 1;
        Ok(Some(Counted { all, tenant: actor.tenant.clone() }))
    }
}

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        let mut counts = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = counts.get_mut(&self.tenant) {
            *count -= 1;
            if *count == 0 {
                counts.remove(&self.tenant);
            }
        }
    }
}

/// Returns the input of a call.
pub(super) fn call(plugin: &Plugin, board: &BoardName, actor: &Actor, asking: Asking<'_>) -> Value {
    let mut call = json!({
        "version": VERSION,
        "plugin": plugin.name,
        "board": board,
        "caller": format!("{}:{}", actor.kind, actor.name),
        "tenant": actor.tenant,
        "task_id": actor.run.as_ref().map(|own| &own.task),
        "run_id": actor.run.as_ref().map(|own| own.run),
    });
    let more = match asking {
        Asking::Verb(verb, arguments) => json!({ "call": "verb", "verb": verb, "arguments": arguments }),
        Asking::Tool(tool, arguments) => json!({ "call": "tool", "tool": tool, "arguments": arguments }),
    };
    if let (Some(call), Value::Object(more)) = (call.as_object_mut(), more) {
        call.extend(more);
    }
    call
}

impl Calls {
    /// Calls a verb or a tool of a plugin, and carries out the requests of its reply. Requests of a worker's call stay
    /// in its tenant.
    pub async fn ask(
        &self,
        service: &Arc<Service>,
        About { plugin, board, actor, id }: About<'_>,
        asking: Asking<'_>,
    ) -> Result<Answer, Failure> {
        let _counted = Counted::of(self.of_workers(), actor)?;
        let asked = call(plugin, board, actor, asking);
        let name = |failure: Failure| Failure {
            message: format!("the plugin {}: {}", plugin.name, failure.message),
            ..failure
        };
        let reply = self.call(service, plugin, &asked, Line::Asked).await.map_err(name)?;
        if actor.run.is_some() && reply.size() > OF_WORKER {
            return Err(name(Failure::failed(format!("its answer has more than {OF_WORKER} bytes"))));
        }
        // A worker without a tenant reaches the tasks without one; an operator reaches all.
        let concern = match (&actor.tenant, &actor.run) {
            (None, None) => PluginScope::All,
            (tenant, _) => PluginScope::Of(tenant.clone()),
        };
        let occasion = Occasion { plugin, board, concern: &concern, id, refused: Refused::Fails };
        carry_out(self, occasion, &reply.requests).await.map_err(name)?;
        Ok(Answer { text: reply.text, data: reply.data })
    }
}
