//! Sink of a plugin: its program gets the message in a call.

use super::Sending;
use crate::notify::form;
use crate::notify::trail::{Trail, Undelivered};
use setup::automation::plugins::Plugin;
use setup::config::definitions::Lookup;

pub(super) async fn send(sending: &Sending<'_>, trail: &mut Trail) -> Result<(), Undelivered> {
    let (plugin, sink) = sending.wire.channel.sink().unwrap_or_default();
    let found = trail.note("plugin", find(sending, plugin, sink), format!("{plugin} has the sink {sink}"))?;
    let brought = bring(sending, &found, sink).await;
    trail.note("call", brought, "it has taken the message")
}

fn find(sending: &Sending<'_>, plugin: &str, sink: &str) -> Result<Plugin, Undelivered> {
    match sending.wire.service.plugins().find(plugin) {
        Lookup::Usable(found) if found.manifest.sinks.iter().any(|one| one.name == sink) => Ok(found.clone()),
        Lookup::Usable(_) => Err(Undelivered::later(format!("the plugin {plugin} has no sink `{sink}`"))),
        Lookup::Disabled(defect) => {
            Err(Undelivered::later(format!("the plugin {plugin} is disabled: {defect}")))
        }
        Lookup::Absent => Err(Undelivered::later(format!("there is no plugin `{plugin}`"))),
    }
}

async fn bring(sending: &Sending<'_>, plugin: &Plugin, sink: &str) -> Result<(), Undelivered> {
    let message = form::of(sending.parcel);
    let brought = sending.calls.bring(sending.boards, plugin, sink, &message);
    let limit = sending.wire.channel.timeout.duration();
    let late = |_| Undelivered::later(format!("the plugin had not taken it after {} s", limit.as_secs()));
    let brought = tokio::time::timeout(limit, brought).await.map_err(late)?;
    brought.map_err(|failure| Undelivered::later(failure.message))
}
