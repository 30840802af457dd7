//! Sink for the desktop. It runs `notify-send`, which uses the session's D-Bus, since a D-Bus client would be too large for
//! one kind of message.

use std::path::Path;
use std::process::Stdio;

use tokio::process::Command;

use super::Delivery;
use super::slack::escaped;
use crate::notify::batch::is_urgent;
use crate::notify::step_log::{StepLog, Undelivered};
use crate::notify::text;
use base::environment;

/// Program for a channel that names none.
const PROGRAM: &str = "/usr/bin/notify-send";
/// Variable with the address of the session bus; without it, the bus is in the user's runtime directory.
const BUS: &str = "DBUS_SESSION_BUS_ADDRESS";

pub(super) async fn send(delivery: &Delivery<'_>, step_log: &mut StepLog) -> Result<(), Undelivered> {
    let run = delivery.channel.settings.run.clone().unwrap_or_else(|| vec![PROGRAM.to_owned()]);
    let Some((program, arguments)) = run.split_first() else { return Ok(()) };
    let bus = bus();
    let bus = bus.ok_or_else(|| {
        Undelivered::later("this user has no session with a D-Bus: DBUS_SESSION_BUS_ADDRESS is not set")
    });
    let bus = step_log.record("session", bus, "a session bus is there")?;
    let urgency = if is_urgent(delivery.batch) { "critical" } else { "normal" };
    let mut command = Command::new(program);
    command
        .args(arguments)
        .arg("--app-name=supervisor")
        .arg(format!("--urgency={urgency}"))
        .arg("--")
        .arg(text::subject(delivery.batch))
        // The body is markup (Desktop Notifications Specification, "Markup").
        .arg(text::body(delivery.batch, text::LONGEST, escaped))
        .env_clear()
        .env(BUS, bus)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .kill_on_drop(true);
    let limit = delivery.channel.settings.timeout.duration();
    let ended = tokio::time::timeout(limit, async { command.spawn()?.wait().await }).await;
    let outcome = match ended {
        Err(_) => {
            Err(Undelivered::later(format!("{program} took longer than {} s and was ended", limit.as_secs())))
        }
        Ok(Err(e)) => Err(Undelivered::later(format!(
            "failed to run {program}: {e}; a package such as libnotify-bin has it"
        ))),
        Ok(Ok(status)) if status.success() => Ok(()),
        Ok(Ok(status)) => Err(Undelivered::later(format!("{program} ended with {status}"))),
    };
    step_log.record("show", outcome, "the message was taken")
}

fn bus() -> Option<String> {
    environment::text(BUS).or_else(|| {
        let path = format!("/run/user/{}/bus", nix::unistd::geteuid());
        Path::new(&path).exists().then(|| format!("unix:path={path}"))
    })
}
