//! Missions: a task that a person made, with all tasks made below it. Limits, use and state of a mission.

use std::collections::BTreeMap;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::model::clock::{Timestamp, optional_seconds};
use crate::model::error::Error;
use crate::model::id::{AttachmentId, Profile, TaskId, Tenant};
use crate::model::proposal::ProposedProfile;
use crate::model::status::Status;
use crate::model::verdict::Question;
use crate::model::words::words;

words! {
    /// Limited resource of a mission, by its key in `[missions]` of `supervisor.toml`.
    "mission limit"
    MissionLimit {
        /// Number of tasks, the first task included.
        Tasks => "tasks",
        /// Run time, all runs together.
        Runtime => "runtime",
        /// Cost, as the agents report it.
        Cost => "cost_usd",
    }
}

words! {
    /// State of a mission.
    "mission state"
    MissionState {
        /// The tasks start as soon as they can.
        Active => "active",
        /// A task waits for a person, and no task runs or can start.
        Waiting => "waiting",
        /// No task starts.
        Paused => "paused",
        /// All tasks are done.
        Done => "done",
        /// All tasks are over, and some of them are not done.
        Cancelled => "cancelled",
    }
}

/// Limits on all tasks and runs of a mission together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MissionLimits {
    /// Largest number of levels of tasks that workers may make below the first task.
    pub depth: u32,
    /// Largest number of tasks, the first task included.
    pub tasks: u64,
    /// Longest run time, all runs together.
    pub runtime: Duration,
    /// Largest cost, in millionths of a US dollar.
    pub cost_micros: u64,
}

impl Default for MissionLimits {
    fn default() -> Self {
        Self { depth: 3, tasks: 20, runtime: Duration::from_hours(100), cost_micros: 100_000_000 }
    }
}

/// Limits that a person sets for one mission, in place of the limits of the configuration.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct MissionCaps {
    /// Largest number of levels of tasks that workers may make below the first task.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_depth: Option<u32>,
    /// Largest number of tasks, the first task included.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_tasks: Option<u64>,
    /// Longest run time, all runs together.
    #[serde(
        rename = "max_runtime_seconds",
        skip_serializing_if = "Option::is_none",
        with = "optional_seconds"
    )]
    #[schemars(with = "Option<u64>")]
    pub max_runtime: Option<Duration>,
    /// Largest cost, in millionths of a US dollar.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_cost_micros: Option<u64>,
}

impl MissionCaps {
    /// Returns the limits in force where the configuration has `default`.
    pub(crate) fn over(&self, default: &MissionLimits) -> MissionLimits {
        MissionLimits {
            depth: self.max_depth.unwrap_or(default.depth),
            tasks: self.max_tasks.unwrap_or(default.tasks),
            runtime: self.max_runtime.unwrap_or(default.runtime),
            cost_micros: self.max_cost_micros.unwrap_or(default.cost_micros),
        }
    }

    /// Refuses a limit of zero: a grant adds the limit once more, and would add nothing.
    pub(crate) fn validate(&self) -> Result<(), Error> {
        let zero = |field: &'static str, example: &str| {
            Err(Error::invalid(field, "it is zero", format!("give a limit above zero, such as {example}")))
        };
        if self.max_tasks == Some(0) {
            return zero("max_tasks", "5; 1 is the first task alone");
        }
        if self.max_runtime.is_some_and(|time| time.as_micros() == 0) {
            return zero("max_runtime", "2h");
        }
        if self.max_cost_micros == Some(0) {
            return zero("max_cost", "0.50");
        }
        Ok(())
    }
}

/// Use of a mission, its own limits, and the number of grants for each limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Used {
    pub(crate) tasks: u64,
    pub(crate) runtime: Duration,
    pub(crate) cost_micros: u64,
    pub(crate) more_tasks: u64,
    pub(crate) more_runtime: u64,
    pub(crate) more_cost: u64,
    /// Number of tasks in a proposal that exceeded the limit on tasks.
    pub(crate) wanted_tasks: u64,
    /// Depth at which a worker wanted to make a task, beyond the limit on depth.
    pub(crate) wanted_depth: u32,
    pub(crate) caps: MissionCaps,
}

/// Used and allowed amount of a limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LimitUse {
    /// Amount used, in the unit of the limit.
    pub used: u64,
    /// Amount allowed, grants included.
    pub limit: u64,
}

/// Use of a mission's limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct MissionUse {
    /// Tasks that were ever made in the mission.
    pub tasks: LimitUse,
    /// Seconds of run time, open runs included.
    pub runtime_seconds: LimitUse,
    /// Cost in millionths of a US dollar, as agents report it.
    pub cost_micros: LimitUse,
    /// Largest number of levels of tasks that workers may make below the first task.
    pub max_depth: u32,
}

/// State of a mission, with the use of its limits.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Mission {
    /// First task of the mission, by which commands name it.
    pub id: TaskId,
    /// Title of the first task.
    pub title: String,
    pub tenant: Option<Tenant>,
    /// Caller who asked for it.
    pub created_by: Option<String>,
    /// Creation time of the first task.
    pub created_at: Timestamp,
    pub state: MissionState,
    /// Number of tasks, without tasks that were archived before they were done.
    pub tasks: u64,
    /// Number of these tasks that are done.
    pub done: u64,
    /// Number of tasks in each status; an absent status has none.
    pub by_status: BTreeMap<Status, u64>,
    /// Use of the limits.
    #[serde(rename = "use")]
    pub usage: MissionUse,
    /// Reason for the pause; none when the mission is not paused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub paused: Option<String>,
    /// Question to the mission's creator; none when no limit is reached.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub question: Option<Question>,
}

/// Mission at a limit, with its question.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AskingMission {
    /// First task of the mission, by which `answer` names it.
    pub id: TaskId,
    /// Title of the first task.
    pub title: String,
    pub tenant: Option<Tenant>,
    /// Assignee of the first task.
    pub assignee: Option<Profile>,
    /// Priority of the first task.
    pub priority: i64,
    pub question: Question,
    /// Time since which the mission asks.
    pub since: Timestamp,
}

/// Task in the tree of a mission.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MissionTask {
    pub id: TaskId,
    pub title: String,
    pub status: Status,
    pub assignee: Option<Profile>,
    /// Task above it in the tree: the task whose worker made it, else the first task; none for the first task itself.
    pub under: Option<TaskId>,
    /// Tasks that have to be done before it.
    pub after: Vec<TaskId>,
    /// Question that the task waits with; none when it waits for no answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub needs: Option<Question>,
    /// Command that answers the question.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    /// Summary of the latest run that has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summary: Option<String>,
    /// Free notes of the task.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub notes: Option<String>,
    /// Files of the task.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub artifacts: Vec<MissionFile>,
}

/// File that a run handed over in a mission.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MissionFile {
    pub id: AttachmentId,
    /// Name of the file.
    pub filename: String,
    /// Length in bytes.
    pub size: u64,
}

/// Mission with its tasks.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MissionDetails {
    #[serde(flatten)]
    pub mission: Mission,
    /// Tasks of the mission, oldest first, beginning with the first task: at most [`crate::limits::REPLY_ROWS`].
    pub tree: Vec<MissionTask>,
    /// True if the mission has more tasks.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub more: bool,
    /// Profiles that the plan asks for. Tasks for these profiles wait until the profiles exist.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub profiles: Vec<ProposedProfile>,
}
