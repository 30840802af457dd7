//! `run-schedule`: creates the tasks of a schedule at once, as at one of its ticks.

use kernel::{ScheduleName, ScheduleTick};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::usable;
use api::command::Command;
use api::{Call, Verb, blocking, verb};
use base::failure::Failure;
use base::terminal::Screen;

/// Create the tasks of a schedule now; its regular ticks are not affected
#[derive(Clone, Debug, clap::Args, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[command(
    about = "Create the tasks of a schedule now",
    after_help = "\
Examples:
  supervisor schedules run brief"
)]
pub struct RunSchedule {
    /// The schedule.
    pub name: ScheduleName,
}

impl Verb for RunSchedule {
    verb! {
        "run-schedule": Operator, Write,
        tool(Operator, "Creates the tasks even if tasks of earlier ticks are open, and returns them.")
        => ScheduleTick
    }

    async fn run(self, call: Call) -> Result<ScheduleTick, Failure> {
        let (service, name) = (call.service.clone(), self.name.clone());
        let planned = blocking("the schedule was not read", move || usable(&service, &name)).await??;
        let board = call.board()?.name();
        if planned.board != *board {
            return Err(Failure::usage(format!(
                "the tasks of `{}` are of the board `{}`, not `{board}`",
                self.name, planned.board
            ))
            .hint(format!("supervisor --board {} schedules run {}", planned.board, self.name)));
        }
        // The board of a daemon has the definition already, perhaps a newer version.
        let has_it = call.service.daemon().is_some();
        call.write(move |board, actor| {
            if !has_it {
                board.define_schedule(&self.name, &planned.spec)?;
            }
            board.run_schedule(&self.name, actor)
        })
        .await
    }
}

impl Command for RunSchedule {
    fn show(reply: &ScheduleTick, screen: &mut Screen) {
        let tasks: Vec<&str> = reply.tasks.iter().map(kernel::TaskId::as_str).collect();
        let made = if tasks.is_empty() { "its command has been started".to_owned() } else { tasks.join(" ") };
        screen.line(format!("Ran the schedule  {made}"));
    }
}
