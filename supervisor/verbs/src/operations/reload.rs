//! `reload`: tells the daemon to reload the configuration.

use std::sync::Arc;

use kernel::Finding;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use api::{Call, Verb, blocking, verb};
use base::failure::Failure;
use daemon::{Event, OwnerLink};
use service::Service;

/// Tell the daemon to reload the configuration, as SIGHUP does
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Reload {}

/// The outcome.
#[derive(Debug, Serialize, Deserialize)]
pub struct Reloaded {
    /// True if a daemon reloaded it. Without a daemon, each command reads the configuration itself.
    pub by_daemon: bool,
    /// Unusable files of the configuration, and names in it that refer to nothing.
    pub problems: Vec<Finding>,
}

/// Waits until each board has applied the new configuration. A board runs its jobs in order, so an empty job ends after
/// the jobs of the reload.
fn taken(service: &Service) {
    for board in service.served() {
        let waited = board.writer().and_then(|writer| writer.call(|_| Ok(())).map_err(Failure::from));
        if let Err(error) = waited {
            tracing::warn!(board = %board.name(), %error, "reload_not_taken");
        }
    }
}

impl Verb for Reload {
    verb! { "reload": Operator, Read, on(None) => Reloaded }

    async fn run(self, call: Call) -> Result<Reloaded, Failure> {
        let daemon = OwnerLink::from_service(&call.service);
        if let Some(daemon) = daemon {
            daemon.send(Event::Reload).await;
            // The daemon handles events in order: its answer means that the reload is done.
            drop(daemon.ask(Event::Look).await?);
            let service = Arc::clone(&call.service);
            blocking("the boards were not waited for", move || taken(&service)).await?;
        }
        Ok(Reloaded { by_daemon: daemon.is_some(), problems: call.service.configuration_findings() })
    }
}
