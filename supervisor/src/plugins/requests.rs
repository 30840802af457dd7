//! What a plugin asks for: carried out in the order of its reply, as far as its `plugin.toml` lets it.

use kernel::{BoardName, RequestId, Tenant};

use super::calls::Calls;
use super::protocol::Request;
use crate::api::Asked;
use crate::automation::plugins::Plugin;
use crate::exit::Code;
use crate::failure::Failure;

/// For what a plugin was called.
#[derive(Clone, Copy, Debug)]
pub(super) struct Occasion<'a> {
    pub(super) plugin: &'a Plugin,
    pub(super) board: &'a BoardName,
    /// The only tenant that its requests may be about.
    pub(super) tenant: Option<&'a Tenant>,
    /// What is the same of a repeat, so that nothing is done twice.
    pub(super) id: Option<&'a str>,
    pub(super) refused: Refused,
}

/// What becomes of a request that makes no sense, or not any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Refused {
    /// It is logged and left out: nobody waits for it, and it would be refused again.
    LeftOut,
    /// The call fails: who has made it is there to be told.
    Fails,
}

/// Refuses a reply that asks for what the plugin may not have.
pub(super) fn check(plugin: &Plugin, requests: &[Request]) -> Result<(), Failure> {
    let allowed = &plugin.manifest.requests;
    match requests.iter().find(|request| !allowed.contains(&request.verb)) {
        None => Ok(()),
        Some(Request { verb, .. }) => {
            let verb: String = verb.chars().filter(|c| !c.is_control()).take(40).collect();
            Err(Failure::new(
                Code::NotPermitted,
                format!("it asks for `{verb}`, which its plugin.toml does not name"),
            )
            .hint("`requests` in plugin.toml lists what it may ask for"))
        }
    }
}

/// Carries out what a plugin asks for. A request that could not be made now is an error, and a repeat does the rest.
pub(super) async fn carry_out(
    calls: &Calls,
    occasion: Occasion<'_>,
    requests: &[Request],
) -> Result<(), Failure> {
    let Occasion { plugin, board, tenant, id, refused } = occasion;
    check(plugin, requests)?;
    let Some(inside) = calls.inside().filter(|_| !requests.is_empty()) else { return Ok(()) };
    for (at, Request { verb, body }) in requests.iter().enumerate() {
        let id = id.and_then(|id| format!("plugin-{}-{id}-{at}", plugin.name).parse::<RequestId>().ok());
        let asked = Asked { plugin: &plugin.name, tenant, board, verb, body, id };
        let Err(failure) = inside.carry_out(asked).await else { continue };
        let is_left_out = refused == Refused::LeftOut;
        if !is_left_out || matches!(failure.code, Code::TryAgain | Code::Throttled | Code::Unreachable) {
            return Err(failure);
        }
        tracing::warn!(plugin = %plugin.name, %board, verb, error = %failure, "plugin_request_refused");
    }
    Ok(())
}
