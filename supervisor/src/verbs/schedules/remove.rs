//! `remove-schedule`: a schedule that is no more. Its tasks stay.

use kernel::ScheduleName;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::unknown;
use crate::api::{Audience, Call, Effect, OnBoard, Verb, blocking};
use crate::automation::schedules::{path_of, remove};
use crate::config::definitions::Found;
use crate::failure::Failure;

/// Removes a schedule: its file, and the ticks that its board has recorded.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RemoveSchedule {
    /// The schedule.
    pub(crate) name: ScheduleName,
}

/// A schedule that was removed.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Removed {
    pub(crate) name: ScheduleName,
    pub(crate) path: std::path::PathBuf,
}

impl Verb for RemoveSchedule {
    const NAME: &'static str = "remove-schedule";
    const AUDIENCE: Audience = Audience::Operator;
    const EFFECT: Effect = Effect::Write;
    const ON: OnBoard = OnBoard::None;
    type Reply = Removed;

    async fn run(self, call: Call) -> Result<Removed, Failure> {
        let service = call.service.clone();
        blocking("the schedule was not removed", move || {
            let name = self.name;
            let path = path_of(service.root(), &name);
            let board = match service.schedules().find(name.as_str()) {
                Found::Usable(planned) => Some(planned.board.clone()),
                Found::Disabled(_) | Found::Absent => None,
            };
            if board.is_none() && path.symlink_metadata().is_err() {
                return Err(unknown(&service, &name));
            }
            // It is open before the files are read again, so that it is told.
            let board = board.filter(|board| service.root().board(board).exists());
            let board = board.map(|board| service.board(&board)).transpose()?;
            remove(service.root(), &name)?;
            service.read_schedules();
            if let Some(board) = board {
                // The board does one job after the other, so it has forgotten the schedule by then.
                board.writer()?.call(|_| Ok(()))?;
            }
            Ok(Removed { name, path })
        })
        .await?
    }
}
