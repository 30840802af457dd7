//! `lane` at the command line: lists the lanes, checks what one lacks here, and tests its real program.

use kernel::Profile;

use super::restore::refuse_worker;
use super::{CommandLine, call};
use crate::trial;
use base::failure::Failure;
use verbs::{CheckLane, ListLanes, show_lane};

/// List, show, check and test lanes
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "\
`check` looks for what a lane needs on this host, and says what is missing. `test`
runs a small task with the lane's real program in a root of its own that is gone
afterwards, and says how its ending was read.

Exit code of `check` and `test`: 0 if nothing is missing, else 1.

Examples:
  supervisor lane list
  supervisor lane show claude
  supervisor lane check codex
  supervisor lane test codex --timeout 2m")]
pub(super) struct Lane {
    #[command(subcommand)]
    subcommand: Subcommand,
}

#[derive(Clone, Debug, clap::Subcommand)]
enum Subcommand {
    /// List the lanes
    #[command(
        visible_alias = "ls",
        after_help = "\
Examples:
  supervisor lane list
  supervisor lane list --json"
    )]
    List,
    /// Show what the file of a lane says
    #[command(after_help = "\
Examples:
  supervisor lane show claude")]
    Show {
        /// The lane
        name: Profile,
    },
    /// Check whether this host has what a lane needs
    #[command(after_help = "\
Examples:
  supervisor lane check codex")]
    Check {
        /// The lane
        name: Profile,
    },
    /// Run a small task with the program of a lane
    #[command(after_help = "\
Examples:
  supervisor lane test codex --timeout 2m")]
    Test {
        /// The lane
        name: Profile,
        /// End it after this long
        #[arg(long, value_name = "DURATION", default_value = "5m")]
        timeout: base::time::duration::WrittenDuration,
    },
}

pub(super) async fn run(line: &CommandLine, command: Lane) -> Result<u8, Failure> {
    let (client, output) = (&line.client()?, line.output);
    refuse_worker(client)?;
    match command.subcommand {
        Subcommand::List => call(client, ListLanes::default(), output).await,
        Subcommand::Show { name } => {
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
        Subcommand::Check { name } => {
            let path = base::environment::text("PATH");
            call(client, CheckLane { name, path }, output).await
        }
        Subcommand::Test { name, timeout } => {
            let report = trial::of_lane(client, &name, timeout.duration()).await?;
            output.reply::<CheckLane>(&report)
        }
    }
}
