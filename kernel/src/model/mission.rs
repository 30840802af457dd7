//! Missions: a task that a person made with all tasks that are made below it, how far one may go, and where one stands.

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
    /// What of a mission is limited, by its key in `[missions]` of `supervisor.toml`.
    "mission limit"
    MissionLimit {
        /// Its tasks, with the first one.
        Tasks => "tasks",
        /// The time that its runs have taken together.
        Runtime => "runtime",
        /// What its agents say that they have cost.
        Cost => "cost_usd",
    }
}

words! {
    /// How a mission stands.
    "mission state"
    MissionState {
        /// Its tasks start as soon as they can.
        Active => "active",
        /// Something of it waits for a person, and nothing of it runs or can start.
        Waiting => "waiting",
        /// Nothing of it starts.
        Paused => "paused",
        /// All its tasks are done.
        Done => "done",
        /// All its tasks are over, and not all of them are done.
        Cancelled => "cancelled",
    }
}

/// How far a mission may go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MissionLimits {
    /// How many tasks deep workers may make tasks below the first one.
    pub depth: u32,
    /// How many tasks it may have, with the first one.
    pub tasks: u64,
    /// How long its runs may take together.
    pub runtime: Duration,
    /// What it may cost, in millionths of a US dollar.
    pub cost_micros: u64,
}

impl Default for MissionLimits {
    fn default() -> Self {
        Self { depth: 3, tasks: 20, runtime: Duration::from_hours(100), cost_micros: 100_000_000 }
    }
}

/// The limits that a person sets for one mission, in the place of those of the configuration.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct MissionCaps {
    /// How many tasks deep workers may make tasks below the first one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_depth: Option<u32>,
    /// How many tasks it may have, with the first one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_tasks: Option<u64>,
    /// How long its runs may take together.
    #[serde(
        rename = "max_runtime_seconds",
        skip_serializing_if = "Option::is_none",
        with = "optional_seconds"
    )]
    #[schemars(with = "Option<u64>")]
    pub max_runtime: Option<Duration>,
    /// What it may cost, in millionths of a US dollar.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_cost_micros: Option<u64>,
}

impl MissionCaps {
    /// Returns the limits that hold where the configuration has `default`.
    pub(crate) fn over(&self, default: &MissionLimits) -> MissionLimits {
        MissionLimits {
            depth: self.max_depth.unwrap_or(default.depth),
            tasks: self.max_tasks.unwrap_or(default.tasks),
            runtime: self.max_runtime.unwrap_or(default.runtime),
            cost_micros: self.max_cost_micros.unwrap_or(default.cost_micros),
        }
    }

    /// Refuses a limit of nothing: as much again would be nothing, too.
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

/// What a mission has used, its own limits, and how often it was granted as much again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Used {
    pub(crate) tasks: u64,
    pub(crate) runtime: Duration,
    pub(crate) cost_micros: u64,
    pub(crate) more_tasks: u64,
    pub(crate) more_runtime: u64,
    pub(crate) more_cost: u64,
    /// The tasks of a proposal that it had no room for.
    pub(crate) wanted_tasks: u64,
    /// How deep a worker wanted to make a task that its mission goes not deep enough for.
    pub(crate) wanted_depth: u32,
    pub(crate) caps: MissionCaps,
}

/// How much of a limit is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Share {
    /// What is used, in the unit of the limit.
    pub used: u64,
    /// What is allowed, with what was granted.
    pub limit: u64,
}

/// What a mission has used of its limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct MissionUse {
    /// Tasks that were ever made of it.
    pub tasks: Share,
    /// Seconds of run time, those of open runs included.
    pub runtime_seconds: Share,
    /// Cost in millionths of a US dollar, as agents report it.
    pub cost_micros: Share,
    /// How many tasks deep workers may make tasks below the first one.
    pub max_depth: u32,
}

/// A mission at a glance.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Mission {
    /// Its first task, by which commands name it.
    pub id: TaskId,
    /// The title of its first task.
    pub title: String,
    /// Whose it is.
    pub tenant: Option<Tenant>,
    /// Who asked for it.
    pub created_by: Option<String>,
    /// When its first task was made.
    pub created_at: Timestamp,
    /// How it stands.
    pub state: MissionState,
    /// Its tasks, without those that were archived before they were done.
    pub tasks: u64,
    /// Those of them that are done.
    pub done: u64,
    /// All its tasks by status; absent means none.
    pub by_status: BTreeMap<Status, u64>,
    /// What it has used of its limits.
    #[serde(rename = "use")]
    pub usage: MissionUse,
    /// Why it is paused; none where it is not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub paused: Option<String>,
    /// The question to its creator; none where it is at no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub question: Option<Question>,
}

/// A mission at a limit, with what it asks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AskingMission {
    /// Its first task, by which `answer` names it.
    pub id: TaskId,
    /// The title of its first task.
    pub title: String,
    /// Whose it is.
    pub tenant: Option<Tenant>,
    /// Who works on its first task.
    pub assignee: Option<Profile>,
    /// The priority of its first task.
    pub priority: i64,
    /// What it asks.
    pub question: Question,
    /// Since when it asks.
    pub since: Timestamp,
}

/// One task of a mission.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MissionTask {
    /// The task.
    pub id: TaskId,
    /// Its title.
    pub title: String,
    /// Where it stands.
    pub status: Status,
    /// Who is to do it.
    pub assignee: Option<Profile>,
    /// The task of the mission under which it stands: the one whose worker made it, else the first one; none for that.
    pub under: Option<TaskId>,
    /// The tasks that have to be done before it.
    pub after: Vec<TaskId>,
    /// What it waits for a person to say; none where it waits for nobody.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub needs: Option<Question>,
    /// The command that gives it that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    /// The summary of its last run that had one; none where none had.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summary: Option<String>,
    /// Its notes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub notes: Option<String>,
    /// Its files.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub artifacts: Vec<MissionFile>,
}

/// A file that was handed over in a mission.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MissionFile {
    /// The attachment.
    pub id: AttachmentId,
    /// Its name.
    pub filename: String,
    /// Its length in bytes.
    pub size: u64,
}

/// A mission with its tasks.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MissionDetails {
    /// The mission.
    #[serde(flatten)]
    pub mission: Mission,
    /// Its tasks, oldest first, the first one first: at most [`crate::limits::REPLY_ROWS`].
    pub tree: Vec<MissionTask>,
    /// Whether it has more.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub more: bool,
    /// The profiles that its plan asks for. Their tasks wait for them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub profiles: Vec<ProposedProfile>,
}
