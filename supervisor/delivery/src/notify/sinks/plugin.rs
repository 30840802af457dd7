//! Sink of a plugin: its program gets the message in a call.

use super::Delivery;
use crate::notify::form;
use crate::notify::step_log::{StepLog, Undelivered};
use setup::automation::plugins::Plugin;
use setup::config::definitions::Lookup;

pub(super) async fn send(delivery: &Delivery<'_>, step_log: &mut StepLog) -> Result<(), Undelivered> {
    let (plugin, sink) = delivery.channel.settings.sink().unwrap_or_default();
    let plugin_found =
        step_log.record("plugin", find(delivery, plugin, sink), format!("{plugin} has the sink {sink}"))?;
    let brought = call_sink(delivery, &plugin_found, sink).await;
    step_log.record("call", brought, "it has taken the message")
}

fn find(delivery: &Delivery<'_>, plugin: &str, sink: &str) -> Result<Plugin, Undelivered> {
    match delivery.channel.service.plugins().find(plugin) {
        Lookup::Usable(found) if found.manifest.sinks.iter().any(|one| one.name == sink) => Ok(found.clone()),
        Lookup::Usable(_) => Err(Undelivered::later(format!("the plugin {plugin} has no sink `{sink}`"))),
        Lookup::Disabled(defect) => {
            Err(Undelivered::later(format!("the plugin {plugin} is disabled: {defect}")))
        }
        Lookup::Absent => Err(Undelivered::later(format!("there is no plugin `{plugin}`"))),
    }
}

async fn call_sink(delivery: &Delivery<'_>, plugin: &Plugin, sink: &str) -> Result<(), Undelivered> {
    let message = form::from_batch(delivery.batch);
    let brought = delivery.calls.deliver_message(delivery.service, plugin, sink, &message);
    let limit = delivery.channel.settings.timeout.duration();
    let late = |_| Undelivered::later(format!("the plugin had not taken it after {} s", limit.as_secs()));
    let brought = tokio::time::timeout(limit, brought).await.map_err(late)?;
    brought.map_err(|failure| Undelivered::later(failure.message))
}
