//! Tasks of the bridges: one for each chat, restarted on failure and after a reload of the files.

use std::sync::Arc;
use std::time::Duration;

use rand::RngExt as _;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

use super::bridge::Bridge;
use super::{discord, slack, telegram, webhook};
use delivery::notify::Undelivered;
use service::Service;
use setup::config::notify::Kind;

/// Longest pause before another try of a service.
const LONGEST_PAUSE: Duration = Duration::from_mins(1);

/// Serves the configured chats until the daemon ends.
pub(super) async fn serve(service: Arc<Service>, stop: CancellationToken) {
    let mut changes = service.chats().changes();
    loop {
        let round = stop.child_token();
        let mut bridges = begin(&service, &round);
        // Cancel-safe: an unseen change stays visible. The sender lives as long as the service.
        let is_over = tokio::select! {
            () = stop.cancelled() => true,
            outcome = changes.changed() => outcome.is_err(),
        };
        round.cancel();
        while bridges.join_next().await.is_some() {}
        if is_over {
            return;
        }
    }
}

fn begin(service: &Arc<Service>, round: &CancellationToken) -> JoinSet<()> {
    let mut bridges = JoinSet::new();
    let (config, chats) = (service.config(), service.chats().chats(service.root()));
    // Chats that could not be served before may have been removed.
    service.chats().disconnected().iter().for_each(|(name, _)| service.chats().closed(name));
    for (name, chat) in chats.usable() {
        let channel = match config.notify.find(&chat.channel) {
            Ok(channel) => channel,
            Err(why) => {
                tracing::warn!(chat = name, why, "chat_not_served");
                service.chats().failed(name, &why);
                continue;
            }
        };
        let bridge = Bridge {
            service: Arc::clone(service),
            name: name.to_owned(),
            chat: chat.clone(),
            channel: channel.clone(),
        };
        bridges.spawn(keep(Arc::new(bridge), round.clone()));
    }
    bridges
}

/// Runs a bridge again and again, with growing pauses.
async fn keep(bridge: Arc<Bridge>, stop: CancellationToken) {
    let mut failures = 0;
    while !stop.is_cancelled() {
        let (bridge_of_task, ending) = (Arc::clone(&bridge), stop.clone());
        // A separate task, so that a panic ends only this try.
        let running =
            AbortOnDropHandle::new(tokio::spawn(async move { run(&bridge_of_task, &ending).await }));
        let error = match running.await {
            Ok(Ok(())) => break,
            Ok(Err(error)) => error,
            Err(_) => Undelivered::later("the bridge panicked"),
        };
        if bridge.service.chats().connection(&bridge.name).connected {
            failures = 0;
        }
        if failures == 0 {
            tracing::warn!(chat = %bridge.name, %error, "chat_fails");
        }
        bridge.service.chats().failed(&bridge.name, &error.to_string());
        let asked = match error {
            Undelivered::Later { after, .. } => after.unwrap_or_default(),
            Undelivered::Refused(_) => Duration::ZERO,
        };
        let pause = bridge.channel.pause(failures).min(LONGEST_PAUSE);
        failures = failures.saturating_add(1);
        let pause = pause.mul_f64(rand::rng().random_range(0.75..1.25)).max(asked);
        tokio::select! {
            () = stop.cancelled() => {}
            () = tokio::time::sleep(pause) => {}
        }
    }
    bridge.service.chats().closed(&bridge.name);
}

async fn run(bridge: &Bridge, stop: &CancellationToken) -> Result<(), Undelivered> {
    match bridge.channel.kind {
        Kind::Telegram => telegram::run(bridge, stop).await,
        Kind::Slack => slack::run(bridge, stop).await,
        Kind::Discord => discord::run(bridge, stop).await,
        Kind::Webhook => webhook::run(bridge, stop).await,
        Kind::Command | Kind::Desktop | Kind::Ntfy | Kind::Email | Kind::Signal | Kind::Plugin => {
            Err(Undelivered::later(format!("the channel `{}` cannot receive messages", bridge.chat.channel)))
        }
    }
}
