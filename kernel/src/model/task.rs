//! Tasks: units of work, as callers create them and as the board stores them.
//!
//! Fields that a new task and a stored task share are in groups, which the store names once (`columns!`). JSON has no
//! groups. Requests refuse unknown fields, which serde does not combine with flattened groups, so the request of
//! `create` is flat.

use std::collections::BTreeSet;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::model::clock::{Timestamp, optional_seconds};
use crate::model::commits::Commits;
use crate::model::id::{ApprovalClass, Pool, Profile, RunId, ScheduleName, TaskId, Tenant};
use crate::model::limits;
use crate::model::outcome::{ApprovalState, BlockKind};
use crate::model::run::Purpose;
use crate::model::state::InitialState;
use crate::model::status::Status;
use crate::model::task_fields::{self, Member as _, PlainField};
use crate::model::verdict::Question;
use crate::model::waiting::Waiting;
use crate::model::workspace::Workspace;

crate::task_fields! { task_fields::groups {} }

/// Default number of failed checks in a row that block a task.
const DEFAULT_MAX_CHECKS: u32 = 3;

/// Check of a task: the command that proves the work done.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Check {
    /// Command for `sh -c` in the workspace; none when the worker's verdict is enough.
    #[serde(rename = "check", default, skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    /// Number of failed checks in a row that block the task; 3 when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_checks: Option<u32>,
}

impl Check {
    /// Returns the number of failed checks in a row that block the task. For a worker with a goal, each failed check is a
    /// turn.
    pub fn limit(&self, goal: &Goal) -> u32 {
        match goal.turns() {
            Some(turns) => self.max_checks.map_or(turns, |checks| checks.min(turns)),
            None => self.max_checks.unwrap_or(DEFAULT_MAX_CHECKS).min(limits::TURNS),
        }
    }
}

/// Approval that a task needs once its parents are done.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Approval {
    /// State of the approval; none for a task that needs no approval.
    #[serde(rename = "approval")]
    pub state: Option<ApprovalState>,
    #[serde(rename = "approval_class")]
    pub class: Option<ApprovalClass>,
    /// Caller who may approve: `worker:<profile>`, or the name of a person; absent means any person.
    pub approver: Option<String>,
}

/// Goal of a task: its worker continues turn by turn until the goal is reached.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Goal {
    /// True if the task has a goal.
    #[serde(rename = "goal_mode")]
    pub mode: bool,
    /// Limit on the number of turns.
    #[serde(rename = "goal_max_turns")]
    pub max_turns: Option<u32>,
}

/// Default limit on the turns toward a goal.
const DEFAULT_TURNS: u32 = 20;

impl Goal {
    /// Returns the number of turns that a worker may take before a person is asked; none for a task without a goal.
    pub fn turns(&self) -> Option<u32> {
        self.mode.then(|| self.max_turns.unwrap_or(DEFAULT_TURNS).min(limits::TURNS))
    }
}

/// Position of a task below others.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Lineage {
    /// Mission of the task: the id of the task that a person made, for all tasks that workers make below it. None for
    /// that first task itself.
    pub mission: Option<String>,
    /// Number of tasks above it that made tasks; the board sets it for a worker's tasks.
    pub depth: u32,
    /// Depth in a chain of consults, for the task of a question whose asker waits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub consult: Option<u32>,
}

/// Origin of a task, and the destination of its news.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Origin {
    /// Schedule that made the task; none for any other task.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schedule: Option<ScheduleName>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tick: Option<Timestamp>,
    /// Channel to subscribe to the task when it is made: `CHANNEL`, `CHANNEL:CHAT` or `CHANNEL:CHAT:THREAD`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub channel: Option<String>,
    /// Task from whose session the first run begins.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub forked_from: Option<TaskId>,
    /// Run of that task whose session is taken.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub forked_run: Option<RunId>,
    /// Id by which the lane finds that session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub forked_session: Option<String>,
}

/// Request for a task, before the rules have accepted it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct NewTask {
    /// Title: one line of 1 to 500 characters without control characters.
    pub title: String,
    /// Text of the task, up to 1 MiB.
    pub body: Option<String>,
    /// Profile of the worker.
    pub assignee: Option<Profile>,
    /// Tasks that have to be done before.
    pub parents: Vec<TaskId>,
    /// Tenant; absent means the tenant of the parents or of the worker that makes the task.
    pub tenant: Option<Tenant>,
    /// Priority; greater goes first.
    pub priority: i64,
    /// Workspace; absent means `scratch`.
    pub workspace: Workspace,
    pub branch: Option<String>,
    /// State in which the task is created.
    pub initial_state: InitialState,
    /// Idempotency key: the same key always names the same task.
    pub idempotency_key: Option<String>,
    /// Skills that the worker should have.
    pub skills: Vec<String>,
    /// Pools in which each run takes a place.
    pub pools: BTreeSet<Pool>,
    /// Earliest time of a start.
    pub not_before: Option<Timestamp>,
    /// Caller who asked for the task; absent means the actor.
    pub created_by: Option<String>,
    /// Policy of the runs; absent means the profile's.
    pub policy: Option<String>,
    pub notes: Option<String>,
    /// Files that the task is expected to make.
    pub artifacts: Vec<String>,
    pub limits: Limits,
    /// Check that proves the work done.
    pub check: Check,
    pub commits: Commits,
    /// Approval that the task needs.
    pub approval: Approval,
    pub goal: Goal,
    /// Position below other tasks.
    pub lineage: Lineage,
    pub client: Client,
    pub origin: Origin,
}

impl NewTask {
    /// Returns the plain fields that have a value.
    pub(crate) fn plain(&self) -> impl Iterator<Item = PlainField<'_>> {
        self.limits.fields().chain(self.client.fields())
    }

    /// Returns the optional words with their names in the API, without the plain fields: the board stores them as given,
    /// up to a length.
    pub(crate) fn words(&self) -> impl Iterator<Item = (&'static str, &str)> {
        [
            ("branch", &self.branch),
            ("idempotency_key", &self.idempotency_key),
            ("created_by", &self.created_by),
            ("policy", &self.policy),
            ("check", &self.check.command),
            ("mission", &self.lineage.mission),
            ("approver", &self.approval.approver),
            ("channel", &self.origin.channel),
            ("forked_session", &self.origin.forked_session),
        ]
        .into_iter()
        .filter_map(|(name, word)| Some((name, word.as_deref()?)))
    }
}

/// Task as the board stores it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Task {
    pub id: TaskId,
    /// Title, on one line.
    pub title: String,
    /// Text of the task.
    pub body: Option<String>,
    /// Profile of the worker.
    pub assignee: Option<Profile>,
    /// Profile that reviews the work, if the task names one.
    #[serde(default)]
    pub reviewer: Option<Profile>,
    /// Author of the work under review: `worker:<profile>` or `person:<name>`.
    #[serde(default)]
    pub work_by: Option<String>,
    pub status: Status,
    /// Priority; greater goes first.
    pub priority: i64,
    pub tenant: Option<Tenant>,
    /// Kind of the workspace: `scratch`, `dir` or `worktree`.
    pub workspace_kind: String,
    /// Directory of the workspace, set from the start if the workspace names it, else once a run or a claim has
    /// made it.
    pub workspace_path: Option<String>,
    pub branch_name: Option<String>,
    /// Commits and uncommitted changes of the latest handed-over work in a worktree, in words, with the command that
    /// merges it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub branch_note: Option<String>,
    /// Caller who asked for the task.
    pub created_by: Option<String>,
    /// Creation time.
    pub created_at: Timestamp,
    /// Start of the latest run; none before the first run.
    pub started_at: Option<Timestamp>,
    /// Time at which the task was done.
    pub completed_at: Option<Timestamp>,
    pub result: Option<String>,
    /// Skills that the worker should have.
    pub skills: Vec<String>,
    /// Pools in which each run takes a place, beside the pools of its profile and its lane.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub pools: BTreeSet<Pool>,
    /// Workspace as the caller asked for it.
    pub workspace: Workspace,
    /// Kind of thing that a blocked task waits for.
    pub block_kind: Option<BlockKind>,
    /// Reason why the task is blocked.
    pub block_reason: Option<String>,
    /// True if a person cancelled the task, which is blocked then.
    #[serde(default, skip_serializing_if = "is_false")]
    pub cancelled: bool,
    /// Question to a person, when blocked.
    pub question: Option<Question>,
    /// Number of counted failures in a row; the limit on them blocks the task.
    pub consecutive_failures: u32,
    pub last_failure_error: Option<String>,
    /// The open run; none when no run is open.
    pub current_run_id: Option<RunId>,
    /// Claim of the open run.
    pub claim_lock: Option<String>,
    /// Time at which an external claim of the open run expires.
    pub claim_expires: Option<Timestamp>,
    /// Process id of the open run's worker; none when no run is open, or when no process is known.
    pub worker_pid: Option<i32>,
    /// Latest heartbeat of the open run.
    pub last_heartbeat_at: Option<Timestamp>,
    /// Earliest time of a start.
    pub not_before: Option<Timestamp>,
    pub idempotency_key: Option<String>,
    /// Time of the last change.
    pub updated_at: Timestamp,
    pub policy: Option<String>,
    /// User id of the creator.
    pub creator_uid: Option<u32>,
    /// User id that was allocated to the workers.
    pub worker_uid: Option<u32>,
    /// Task whose worker made this task.
    pub creator_task: Option<TaskId>,
    pub notes: Option<String>,
    /// Files that the task made or is expected to make.
    pub artifacts: Vec<String>,
    #[serde(flatten)]
    pub limits: Limits,
    /// Check that proves the work done.
    #[serde(flatten)]
    pub check: Check,
    #[serde(flatten)]
    pub commits: Commits,
    /// Number of failed checks in a row.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub failed_checks: u32,
    /// Run whose work waits for its check, or is being checked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unchecked_run: Option<RunId>,
    /// Approval that the task needs.
    #[serde(flatten)]
    pub approval: Approval,
    #[serde(flatten)]
    pub goal: Goal,
    /// Number of turns that ended without reaching the goal, since a person last let the task go on.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub goal_turns: u32,
    /// Position below other tasks.
    #[serde(flatten)]
    pub lineage: Lineage,
    #[serde(flatten)]
    pub client: Client,
    #[serde(flatten)]
    pub origin: Origin,
    /// Reason why the task is not running, when the caller asked for it; none for a task that is running or over.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<Waiting>,
    /// Time since which the task has its status, when the caller asked for the reason; none when the log has no longer
    /// the last change of status.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status_since: Option<Timestamp>,
    /// Number of runs, when the caller asked for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attempts: Option<u64>,
    /// End of the latest run, when the caller asked for runs; none while that run is open.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_run_ended_at: Option<Timestamp>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature is serde's")]
fn is_false(flag: &bool) -> bool {
    !*flag
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature is serde's")]
fn is_zero(count: &u32) -> bool {
    *count == 0
}

impl Task {
    /// Returns true if the task goes on only when a person acts.
    pub fn waits_for_a_person(&self) -> bool {
        match self.status {
            Status::Blocked | Status::Triage => true,
            // A check, and a review by a profile, start automatically.
            Status::Review => self.reviewer.is_none() && self.unchecked_run.is_none(),
            Status::Todo
            | Status::Scheduled
            | Status::Ready
            | Status::Running
            | Status::Done
            | Status::Archived => false,
        }
    }

    /// Returns the question that the task waits with; none when it waits for another reason.
    pub fn open_question(&self) -> Option<&Question> {
        let waits = self.status == Status::Blocked && self.block_kind == Some(BlockKind::NeedsInput);
        self.question.as_ref().filter(|_| waits)
    }

    /// Returns true if a person cancelled the task: it asks nothing, and goes on when a person retries it.
    pub fn is_cancelled(&self) -> bool {
        self.status == Status::Blocked && self.cancelled
    }

    /// Returns the id of the mission that the task belongs to, which is the task's own id outside of a mission.
    pub fn mission(&self) -> &str {
        self.lineage.mission.as_deref().unwrap_or(self.id.as_str())
    }

    /// Returns the profile that the task names for this purpose. A check has none: the supervisor runs it.
    pub(crate) fn performer(&self, purpose: Purpose) -> Option<&Profile> {
        match purpose {
            Purpose::Work => self.assignee.as_ref(),
            Purpose::Review => self.reviewer.as_ref(),
            Purpose::Check => None,
        }
    }

    /// Returns true if the task counts as done for its children.
    pub fn is_done(&self) -> bool {
        self.completed_at.is_some()
    }
}
