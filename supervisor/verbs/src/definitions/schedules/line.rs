//! Entry of a schedule in the list of `schedules`: its file, and its state on the board.

use std::path::PathBuf;

use kernel::{BoardName, Clock as _, ScheduleTick, Status, SystemClock, TaskId, Timestamp};
use serde::{Deserialize, Serialize};

use service::Service;
use setup::automation::schedules::{Planned, ScheduleText, file_of, path_of};
use setup::config::definitions::Defect;

/// Limits on the shown past and future ticks of a schedule.
const TICKS: u32 = 10;
const AHEAD: usize = 5;

/// Task that the latest tick created, with its state now.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct TickTask {
    pub id: TaskId,
    /// Status of the task; none if the task was deleted.
    pub status: Option<Status>,
}

#[derive(Debug, Serialize, Deserialize)]
pub struct ScheduleLine {
    pub name: String,
    pub path: PathBuf,
    /// Reason why its file or its board cannot be read; none if they can.
    pub defect: Option<String>,
    pub board: Option<BoardName>,
    pub paused: bool,
    /// Uid of the user who saved the schedule, and who counts as the creator of its tasks; none if unknown.
    #[serde(default)]
    pub creator_uid: Option<u32>,
    /// Contents of its file; none if the file is invalid.
    pub schedule: Option<ScheduleText>,
    /// Time of its next tick; none if there is no further tick.
    pub next: Option<Timestamp>,
    /// Result of its latest tick.
    pub last: Option<ScheduleTick>,
    pub tasks: Vec<TickTask>,
    /// Number of ticks that wait for the tasks of earlier ticks.
    pub queued: u64,
    /// The latest 10 ticks, latest first; empty unless the request names the schedule.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ticks: Vec<ScheduleTick>,
    /// The next 5 ticks; empty unless the request names the schedule.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ahead: Vec<Timestamp>,
}

impl ScheduleLine {
    /// Returns the entry of a schedule whose file cannot be used.
    pub(super) fn defective(name: &str, defect: &Defect) -> Self {
        ScheduleLine {
            defect: Some(defect.to_string()),
            ..ScheduleLine::bare(name, defect.path.to_path_buf())
        }
    }

    fn bare(name: &str, path: PathBuf) -> Self {
        ScheduleLine {
            name: name.to_owned(),
            path,
            defect: None,
            board: None,
            paused: false,
            creator_uid: None,
            schedule: None,
            next: None,
            last: None,
            tasks: Vec::new(),
            queued: 0,
            ticks: Vec::new(),
            ahead: Vec::new(),
        }
    }

    /// Returns the entry of a schedule with its state on its board; with all ticks if `whole`. Blocking.
    pub(super) fn from_planned(service: &Service, name: &str, planned: &Planned, whole: bool) -> Self {
        let root = service.root();
        let path = name.parse().map(|name| file_of(root, &name).unwrap_or_else(|| path_of(root, &name)));
        let path = path.unwrap_or_default();
        let mut line = ScheduleLine {
            board: Some(planned.board.clone()),
            paused: planned.spec.paused,
            creator_uid: planned.spec.creator_uid,
            schedule: Some(planned.text.clone()),
            ..ScheduleLine::bare(name, path)
        };
        if let Err(failure) = line.read(service, planned, whole) {
            line.defect = Some(failure);
        }
        line
    }

    fn read(&mut self, service: &Service, planned: &Planned, whole: bool) -> Result<(), String> {
        let name: kernel::ScheduleName = self.name.parse().map_err(|e: kernel::ParseError| e.to_string())?;
        let ahead =
            kernel::ticks_ahead(&name, &planned.spec, SystemClock.now(), AHEAD).map_err(|e| e.to_string())?;
        if !planned.spec.paused {
            self.next = ahead.first().copied();
        }
        if !service.root().board(&planned.board).exists() {
            return Err(format!("there is no board `{0}`: supervisor --board {0} init", planned.board));
        }
        let board = service.board(&planned.board).map_err(|e| e.to_string())?;
        let read = board.readers().with(|view| {
            if let Some(known) = view.find_schedule(&name)?
                && !planned.spec.paused
            {
                self.next = known.next;
            }
            self.queued = view.queued_ticks(&name)?;
            let ticks = view.ticks(&name, if whole { TICKS } else { 1 })?;
            self.last = ticks.first().cloned();
            for id in self.last.iter().flat_map(|tick| tick.tasks.clone()) {
                self.tasks.push(TickTask { status: view.task(&id)?.map(|task| task.status), id });
            }
            if whole {
                self.ticks = ticks;
            }
            Ok(())
        });
        if whole {
            self.ahead = ahead;
        }
        read.map_err(|e| e.to_string())
    }
}
