//! Calls of plugins' verbs and tools: their caller, input and reply.

use std::sync::{Arc, PoisonError};

use kernel::{Actor, BoardName, Tenant};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::calls::{CallQueue, Calls, OfWorkers};
use super::requests::{OnRefusal, RequestContext, carry_out};
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
pub struct PluginReply {
    /// For people and models.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// For programs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<Value>,
}

/// Command or tool of a plugin that a caller uses.
#[derive(Clone, Copy, Debug)]
pub enum CallRequest<'a> {
    /// Call of a verb, with its arguments.
    Verb(&'a str, &'a [String]),
    /// Call of a tool, with its arguments.
    Tool(&'a str, &'a Map<String, Value>),
}

/// Plugin, board and caller of a call.
#[derive(Debug)]
pub struct CallContext<'a> {
    pub plugin: &'a Plugin,
    pub board: &'a BoardName,
    /// Caller.
    pub actor: &'a Actor,
    pub id: Option<&'a str>,
}

/// A worker's call in progress, counted until it is dropped.
struct CountedCall<'a> {
    all: &'a OfWorkers,
    tenant: Option<Tenant>,
}

impl<'a> CountedCall<'a> {
    fn begin(all: &'a OfWorkers, actor: &Actor) -> Result<Option<Self>, Failure> {
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
        Ok(Some(CountedCall { all, tenant: actor.tenant.clone() }))
    }
}

impl Drop for CountedCall<'_> {
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
pub(super) fn call(plugin: &Plugin, board: &BoardName, actor: &Actor, request: CallRequest<'_>) -> Value {
    let mut call = json!({
        "version": VERSION,
        "plugin": plugin.name,
        "board": board,
        "caller": format!("{}:{}", actor.kind, actor.name),
        "tenant": actor.tenant,
        "task_id": actor.run.as_ref().map(|own| &own.task),
        "run_id": actor.run.as_ref().map(|own| own.run),
    });
    let more = match request {
        CallRequest::Verb(verb, arguments) => json!({ "call": "verb", "verb": verb, "arguments": arguments }),
        CallRequest::Tool(tool, arguments) => json!({ "call": "tool", "tool": tool, "arguments": arguments }),
    };
    if let (Some(call), Value::Object(more)) = (call.as_object_mut(), more) {
        call.extend(more);
    }
    call
}

impl Calls {
    /// Calls a verb or a tool of a plugin, and carries out the requests of its reply. Requests of a worker's call stay
    /// in its tenant.
    pub async fn request(
        &self,
        service: &Arc<Service>,
        CallContext { plugin, board, actor, id }: CallContext<'_>,
        request: CallRequest<'_>,
    ) -> Result<PluginReply, Failure> {
        let _counted = CountedCall::begin(self.of_workers(), actor)?;
        let input = call(plugin, board, actor, request);
        let name = |failure: Failure| Failure {
            message: format!("the plugin {}: {}", plugin.name, failure.message),
            ..failure
        };
        let reply = self.call(service, plugin, &input, CallQueue::Asked).await.map_err(name)?;
        if actor.run.is_some() && reply.size() > OF_WORKER {
            return Err(name(Failure::failed(format!("its answer has more than {OF_WORKER} bytes"))));
        }
        // A worker without a tenant reaches the tasks without one; an operator reaches all.
        let scope = match (&actor.tenant, &actor.run) {
            (None, None) => PluginScope::All,
            (tenant, _) => PluginScope::Of(tenant.clone()),
        };
        let context = RequestContext { plugin, board, scope: &scope, id, on_refusal: OnRefusal::Fails };
        carry_out(self, context, &reply.requests).await.map_err(name)?;
        Ok(PluginReply { text: reply.text, data: reply.data })
    }
}
