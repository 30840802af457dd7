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

/// Remove a schedule: its file, and the ticks that its board has recorded
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RemoveSchedule {
    /// The schedule.
    pub name: ScheduleName,
}

#[derive(Debug, Serialize, Deserialize)]
pub struct RemovedSchedule {
    pub name: ScheduleName,
    pub path: std::path::PathBuf,
}

impl Verb for RemoveSchedule {
    verb! {
        "remove-schedule": Operator, Write,
        on(None),
        tool(Operator, "Tasks that it created are kept.")
        => RemovedSchedule
    }

    async fn run(self, call: Call) -> Result<RemovedSchedule, Failure> {
        let service = call.service.clone();
        blocking("the schedule was not removed", move || {
            let name = self.name;
            let board = service.schedules().get(&name).map(|planned| planned.board.clone());
            if board.is_none() && file_of(service.root(), &name).is_none() {
                return Err(unknown(&service, &name));
            }
            // The board is opened first, because reading the files again changes the schedules of open boards only.
            let board = board.filter(|board| service.root().board(board).exists());
            let board = board.map(|board| service.board(&board)).transpose()?;
            let path = remove(service.root(), &name)?;
            service.read_schedules();
            if let Some(board) = board {
                // The writer of a board runs its jobs in order, so the schedule has been removed when this empty job ends.
                board.writer()?.call(|_| Ok(()))?;
            }
            Ok(RemovedSchedule { name, path })
        })
        .await?
    }
}

impl Command for RemoveSchedule {
    fn show(reply: &RemovedSchedule, screen: &mut Screen) {
        screen.line(format!("Removed {}  {}", reply.name, printable(&reply.path.display().to_string())));
    }
}
