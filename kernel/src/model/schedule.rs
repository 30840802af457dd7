//! Schedules: times of their ticks, and the tasks or the command of a tick.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::model::clock::{Timestamp, optional_seconds};
use crate::model::id::{ScheduleName, TaskId};
use crate::model::status::Status;
use crate::model::task::NewTask;
use crate::model::words::words;

words! {
    /// Treatment of ticks whose time has passed while nothing could decide them.
    #[derive(Default)]
    "rule for missed ticks"
    Missed {
        /// All missed ticks are left out.
        Skip => "skip",
        /// Only the latest missed tick is carried out.
        #[default]
        Once => "once",
        /// Each missed tick is carried out late; of more than 1000, only the latest 1000.
        All => "all",
    }
}

words! {
    /// Treatment of a tick while a task of an earlier tick is open.
    #[derive(Default)]
    "rule for overlaps"
    Overlap {
        /// The tick creates no tasks.
        #[default]
        Skip => "skip",
        /// The tick waits until the earlier tasks are over.
        Queue => "queue",
        /// The earlier tasks are archived, and their runs ended.
        Replace => "replace",
    }
}

words! {
    /// Outcome of a tick.
    "outcome of a tick"
    TickOutcome {
        /// The tasks were created.
        Made => "made",
        /// The command is to be carried out.
        Due => "due",
        /// The tick waits for the tasks of an earlier tick.
        Queued => "queued",
        /// The tick created no tasks, because a task of an earlier tick was open.
        Skipped => "skipped",
        /// The time passed while nothing could decide the tick.
        Missed => "missed",
        /// The board refused the tasks.
        Failed => "failed",
    }
}

/// Times of a schedule's ticks. At least one of `cron`, `every` and `at` is set.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Timing {
    /// Pattern of five fields: minute, hour, day of the month, month, day of the week.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cron: Option<String>,
    /// Period in whole seconds, counted from `start`, else from 1970-01-01 00:00 UTC.
    #[serde(rename = "every_seconds", with = "optional_seconds", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<u64>")]
    pub every: Option<Duration>,
    /// Calendar times: `07:00`, `mon 07:00`, `2026-12-24 18:00`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub at: Vec<String>,
    /// IANA name of the time zone of `cron` and `at`; absent means the zone of the host.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub time_zone: Option<String>,
    /// Earliest time of a tick.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub start: Option<Timestamp>,
    /// Latest time of a tick.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub end: Option<Timestamp>,
}

/// Task of a template, which each tick creates anew.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct TemplateTask {
    /// Name within the template.
    pub name: String,
    /// Names of the tasks of the template that have to be done before.
    pub after: Vec<String>,
    /// The task. The placeholders `{date}`, `{time}`, `{tick}` and `{schedule}` in its title are replaced at each tick.
    pub task: NewTask,
}

/// Settings of a schedule, as its file gives them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ScheduleSpec {
    /// Times of the ticks.
    pub timing: Timing,
    /// Largest delay of a tick's tasks. The delay of a tick is the same whenever it is computed.
    #[serde(rename = "jitter_seconds", with = "optional_seconds")]
    pub jitter: Option<Duration>,
    /// Treatment of missed ticks.
    pub missed: Missed,
    /// Treatment of a tick while a task of an earlier tick is open.
    pub overlap: Overlap,
    /// True if ticks pass without effect.
    pub paused: bool,
    /// Tasks of a tick: 1 to 100, or none when the schedule has a command.
    pub tasks: Vec<TemplateTask>,
    /// Words of the command that a tick carries out instead of creating tasks. The command may be carried out twice for
    /// a tick, and must then not repeat its effects.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub command: Option<Vec<String>>,
    /// Unix user who saved the schedule, and who counts as the creator of its tasks; none if unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub creator_uid: Option<u32>,
}

/// Schedule with its progress: the ticks that are decided and the next tick.
#[derive(Clone, Debug, PartialEq)]
pub struct Schedule {
    /// Name of the schedule's file, without `.toml`.
    pub name: ScheduleName,
    /// Definition of the schedule.
    pub spec: ScheduleSpec,
    /// Time up to which every tick is decided.
    pub decided: Timestamp,
    /// Time up to which ticks were decided while the clock was ahead; none once the clock has passed it.
    pub ahead: Option<Timestamp>,
    /// Next tick; none when there is none, or when the schedule is paused.
    pub next: Option<Timestamp>,
    /// Time of the first definition.
    pub defined_at: Timestamp,
}

/// Schedule whose ticks create no tasks, because the tasks of an earlier tick wait for a person.
#[derive(Clone, Debug, PartialEq)]
pub struct StuckSchedule {
    /// Schedule, by its file's name.
    pub name: ScheduleName,
    /// Latest tick, which was skipped or waits.
    pub tick: ScheduleTick,
    /// Task of an earlier tick that waits for a person.
    pub task: TaskId,
    pub status: Status,
}

/// Command that a tick has to carry out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DueCommand {
    pub schedule: ScheduleName,
    pub tick: Timestamp,
    /// Words of the command, with the placeholders replaced.
    pub words: Vec<String>,
    /// Unix user who saved the schedule, and for whom the command acts; none if unknown.
    pub creator_uid: Option<u32>,
}

/// Record of a decided tick.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ScheduleTick {
    pub tick: Timestamp,
    pub outcome: TickOutcome,
    /// Number of missed ticks before this tick that created no tasks.
    pub missed: u64,
    /// True if more ticks were missed than were counted.
    pub more: bool,
    pub tasks: Vec<TaskId>,
    /// Reason why the tick created no tasks.
    pub note: Option<String>,
    /// Time of the decision.
    pub decided_at: Timestamp,
}
