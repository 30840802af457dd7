//! Carries out the requests of a plugin's reply in order, as far as its `plugin.toml` permits them.

use kernel::{BoardName, RequestId};

use super::calls::Calls;
use super::protocol::RequestedVerb;
use api::{PluginRequest, PluginScope};
use base::exit::Code;
use base::failure::Failure;
use setup::automation::plugins::Plugin;

/// Context of a reply's requests.
#[derive(Clone, Copy, Debug)]
pub(super) struct RequestContext<'a> {
    pub(super) plugin: &'a Plugin,
    pub(super) board: &'a BoardName,
    pub(super) scope: &'a PluginScope,
    /// Id that is the same for a repeated call, so that no request is carried out twice.
    pub(super) id: Option<&'a str>,
    pub(super) on_refusal: OnRefusal,
}

/// Handling of a request that is invalid, or no longer valid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OnRefusal {
    /// Logged and left out: no caller waits, and a repeat would be refused again.
    LeftOut,
    /// The call fails, and the caller learns of it.
    Fails,
}

/// Refuses a reply with a request that the plugin may not make.
pub(super) fn check(plugin: &Plugin, requests: &[RequestedVerb]) -> Result<(), Failure> {
    let allowed = &plugin.manifest.requests;
    match requests.iter().find(|request| !allowed.contains(&request.verb)) {
        None => Ok(()),
        Some(RequestedVerb { verb, .. }) => {
            let verb: String = verb.chars().filter(|c| !c.is_control()).take(40).collect();
            Err(Failure::new(
                Code::NotPermitted,
                format!("it asks for `{verb}`, which its plugin.toml does not name"),
            )
            .hint("`requests` in plugin.toml lists what it may ask for"))
        }
    }
}

/// Carries out the requests of a reply. A temporary failure is an error, and a repeat of the call does the rest.
pub(super) async fn carry_out(
    calls: &Calls,
    context: RequestContext<'_>,
    requests: &[RequestedVerb],
) -> Result<(), Failure> {
    let RequestContext { plugin, board, scope, id, on_refusal: refused } = context;
    check(plugin, requests)?;
    let Some(inside) = calls.router().filter(|_| !requests.is_empty()) else { return Ok(()) };
    for (at, RequestedVerb { verb, body }) in requests.iter().enumerate() {
        let id = id.and_then(|id| format!("plugin-{}-{id}-{at}", plugin.name).parse::<RequestId>().ok());
        let input = PluginRequest { plugin: &plugin.name, scope, board, verb, body, id };
        let Err(failure) = inside.carry_out(input).await else { continue };
        let is_left_out = refused == OnRefusal::LeftOut;
        if !is_left_out || matches!(failure.code, Code::TryAgain | Code::Throttled | Code::Unreachable) {
            return Err(failure);
        }
        tracing::warn!(plugin = %plugin.name, %board, verb, error = %failure, "plugin_request_refused");
    }
    Ok(())
}
