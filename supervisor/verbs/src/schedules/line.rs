//! A schedule in the list: its file, and its state on the board.

use std::path::PathBuf;

use kernel::{BoardName, Clock as _, ScheduleTick, Status, SystemClock, TaskId, Timestamp};
use serde::{Deserialize, Serialize};

use service::Service;
use setup::automation::schedules::{Planned, ScheduleText, file_of, path_of};
use setup::config::definitions::Defect;

/// Limit on the shown ticks of a schedule, past and to come.
const TICKS: u32 = 10;
const AHEAD: usize = 5;

/// A task of the latest tick.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct TickTask {
    pub id: TaskId,
    /// Its status; none of a removed one.
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
    /// The user who saved it, and who counts as the creator of its tasks; none if that is not known.
    #[serde(default)]
    pub creator_uid: Option<u32>,
    /// Contents of its file; none if the file is invalid.
    pub schedule: Option<ScheduleText>,
    /// Its next tick.
    pub next: Option<Timestamp>,
    /// Result of its latest tick.
    pub last: Option<ScheduleTick>,
    pub tasks: Vec<TickTask>,
    /// Number of ticks that wait for the tasks of earlier ones.
    pub queued: u64,
    /// The latest ticks. Only for a schedule that the request names.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ticks: Vec<ScheduleTick>,
    /// The next ticks. Only for a schedule that the request names.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ahead: Vec<Timestamp>,
}

impl ScheduleLine {
    /// A schedule with an unusable file.
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

    /// Reads the state of a schedule from its board. Blocking.
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
