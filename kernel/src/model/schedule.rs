//! Schedules: when they tick, and what a tick makes.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::model::clock::{Timestamp, optional_seconds};
use crate::model::id::{ScheduleName, TaskId};
use crate::model::task::NewTask;
use crate::model::words::words;

words! {
    /// What becomes of ticks whose time has passed while nothing could decide them.
    #[derive(Default)]
    "rule for missed ticks"
    Missed {
        /// They are left out.
        Skip => "skip",
        /// The latest of them stands for all.
        #[default]
        Once => "once",
        /// Each is made up for, up to the 1000 latest.
        All => "all",
    }
}

words! {
    /// What becomes of a tick while a task of an earlier one is open.
    #[derive(Default)]
    "rule for overlaps"
    Overlap {
        /// It makes nothing.
        #[default]
        Skip => "skip",
        /// It waits until the earlier tasks are over.
        Queue => "queue",
        /// The earlier tasks are archived, and their runs ended.
        Replace => "replace",
    }
}

words! {
    /// What became of a tick.
    "outcome of a tick"
    TickOutcome {
        /// Its tasks were made.
        Made => "made",
        /// Its command is to be carried out.
        Due => "due",
        /// It waits for the tasks of an earlier one.
        Queued => "queued",
        /// It made nothing, for a task of an earlier one was open.
        Skipped => "skipped",
        /// Its time passed while nothing could decide it.
        Missed => "missed",
        /// Its tasks were refused.
        Failed => "failed",
    }
}

/// When a schedule ticks. One of `cron`, `every` and `at` at least.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Timing {
    /// A pattern of five fields: minute, hour, day of the month, month, day of the week.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cron: Option<String>,
    /// A period in whole seconds, counted from `start`, else from 1970-01-01 00:00 UTC.
    #[serde(rename = "every_seconds", with = "optional_seconds", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<u64>")]
    pub every: Option<Duration>,
    /// Times of the calendar: `07:00`, `mon 07:00`, `2026-12-24 18:00`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub at: Vec<String>,
    /// The IANA name of the zone of `cron` and `at`; that of the host where none is named.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub time_zone: Option<String>,
    /// No tick is before it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub start: Option<Timestamp>,
    /// No tick is after it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub end: Option<Timestamp>,
}

/// One task of what a tick makes.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct TemplateTask {
    /// Its name within the template.
    pub name: String,
    /// The names of the tasks of the template that have to be done before.
    pub after: Vec<String>,
    /// The task. `{date}`, `{time}`, `{tick}` and `{schedule}` in its title stand for those of the tick.
    pub task: NewTask,
}

/// A schedule as it is defined.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ScheduleSpec {
    /// When it ticks.
    pub timing: Timing,
    /// Up to how much later than their tick its tasks may start: as much for a tick whenever that is asked.
    #[serde(rename = "jitter_seconds", with = "optional_seconds")]
    pub jitter: Option<Duration>,
    /// What becomes of missed ticks.
    pub missed: Missed,
    /// What becomes of a tick while a task of an earlier one is open.
    pub overlap: Overlap,
    /// Whether its ticks pass by.
    pub paused: bool,
    /// What a tick makes: 1 to 100 tasks, or none where it has a command.
    pub tasks: Vec<TemplateTask>,
    /// What is carried out at a tick instead, word by word: it does nothing that it has done before.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub command: Option<Vec<String>>,
}

/// A schedule as it stands on a board.
#[derive(Clone, Debug, PartialEq)]
pub struct Schedule {
    /// The name of its file, without `.toml`.
    pub name: ScheduleName,
    /// As it is defined.
    pub spec: ScheduleSpec,
    /// Every tick up to this time is decided.
    pub decided: Timestamp,
    /// Its next tick; none where none is to come, or where it is paused.
    pub next: Option<Timestamp>,
    /// When it was first defined.
    pub defined_at: Timestamp,
}

/// A command that a tick has to carry out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DueCommand {
    /// The schedule that the tick is of.
    pub schedule: ScheduleName,
    /// When the tick was due.
    pub tick: Timestamp,
    /// Its words, with those of the tick.
    pub words: Vec<String>,
}

/// What became of a tick.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ScheduleTick {
    /// When the tick was due.
    pub tick: Timestamp,
    /// The outcome.
    pub outcome: TickOutcome,
    /// How many ticks before it were missed and made nothing.
    pub missed: u64,
    /// Whether more were missed than were counted.
    pub more: bool,
    /// Its tasks.
    pub tasks: Vec<TaskId>,
    /// Why it made nothing.
    pub note: Option<String>,
    /// When it was decided.
    pub decided_at: Timestamp,
}
