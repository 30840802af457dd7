//! `lane` at the command line: lists the lanes, checks what one lacks here, and tests its real program.

use kernel::Profile;

use super::call;
use crate::client::Client;
use crate::output::Output;
use crate::trial;
use base::failure::Failure;
use verbs::{CheckLane, ListLanes, show_lane};

/// Show what the file of a lane says
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  supervisor lane show claude")]
pub(super) struct Show {
    /// The lane
    name: Profile,
}

/// Run a small task with the program of a lane
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  supervisor lane test codex --timeout 2m")]
pub(super) struct Test {
    /// The lane
    name: Profile,
    /// End it after this long
    #[arg(long, value_name = "DURATION", default_value = "5m")]
    timeout: base::time::duration::WrittenDuration,
}

pub(super) async fn show(client: &Client, Show { name }: Show, output: Output) -> Result<u8, Failure> {
    let lanes = client.call(&ListLanes { name: Some(name) }).await?;
    let Some(found) = lanes.first() else { return Ok(0) };
    if output.json() {
        output.value(found)?;
    } else {
        let mut screen = output.screen();
        show_lane(found, &mut screen);
        output.text(&screen.into_text())?;
    }
    Ok(0)
}

pub(super) async fn check(client: &Client, check: CheckLane, output: Output) -> Result<u8, Failure> {
    let path = base::environment::text("PATH");
    call(client, CheckLane { path, ..check }, output).await
}

pub(super) async fn test(
    client: &Client,
    Test { name, timeout }: Test,
    output: Output,
) -> Result<u8, Failure> {
    let report = trial::of_lane(client, &name, timeout.duration()).await?;
    output.reply::<CheckLane>(&report)
}
