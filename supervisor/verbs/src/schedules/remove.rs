//! `remove-schedule`: removes a schedule. Tasks that it created stay.

use kernel::ScheduleName;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::unknown;
use api::command::Command;
use api::{Call, Verb, blocking, verb};
use base::failure::Failure;
use base::terminal::{Screen, printable};
use setup::automation::schedules::{file_of, remove};
use setup::config::definitions::Found;

/// Remove a schedule: its file, and the ticks that its board has recorded
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RemoveSchedule {
    /// The schedule.
    pub name: ScheduleName,
}

/// A schedule that was removed.
#[derive(Debug, Serialize, Deserialize)]
pub struct Removed {
    pub name: ScheduleName,
    pub path: std::path::PathBuf,
}

impl Verb for RemoveSchedule {
    verb! {
        "remove-schedule": Operator, Write,
        on(None),
        tool(Operator, "Tasks that it created are kept.")
        => Removed
    }

    async fn run(self, call: Call) -> Result<Removed, Failure> {
        let service = call.service.clone();
        blocking("the schedule was not removed", move || {
            let name = self.name;
            let board = match service.schedules().find(name.as_str()) {
                Found::Usable(planned) => Some(planned.board.clone()),
                Found::Disabled(_) | Found::Absent => None,
            };
            if board.is_none() && file_of(service.root(), &name).is_none() {
                return Err(unknown(&service, &name));
            }
            // The board is opened before the files are read again: only open boards are told of the removal.
            let board = board.filter(|board| service.root().board(board).exists());
            let board = board.map(|board| service.board(&board)).transpose()?;
            let path = remove(service.root(), &name)?;
            service.read_schedules();
            if let Some(board) = board {
                // The board runs its jobs in order, so it has removed the schedule when this empty job ends.
                board.writer()?.call(|_| Ok(()))?;
            }
            Ok(Removed { name, path })
        })
        .await?
    }
}

impl Command for RemoveSchedule {
    fn show(reply: &Removed, screen: &mut Screen) {
        screen.line(format!("Removed {}  {}", reply.name, printable(&reply.path.display().to_string())));
    }
}
