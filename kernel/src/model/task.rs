//! A logical unit of work.

use std::collections::BTreeSet;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::model::clock::{Timestamp, optional_seconds};
use crate::model::id::{ApprovalClass, Pool, Profile, RunId, ScheduleName, TaskId, Tenant};
use crate::model::limits;
use crate::model::outcome::{ApprovalState, BlockKind};
use crate::model::run::Purpose;
use crate::model::state::InitialState;
use crate::model::status::Status;
use crate::model::verdict::Question;
use crate::model::waiting::Waiting;

/// How much a task may take.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Limits {
    /// The limit of each run.
    #[serde(rename = "max_runtime_seconds", default, with = "optional_seconds")]
    #[schemars(with = "Option<u64>")]
    pub max_runtime: Option<Duration>,
    /// How many counted failures in a row block it.
    pub max_retries: Option<u32>,
    /// Its budget, in millionths of a US dollar.
    pub budget_usd_micros: Option<i64>,
}

/// How many failed checks in a row block a task that says nothing of it.
const DEFAULT_MAX_CHECKS: u32 = 3;

/// The command that proves the work on a task done.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Check {
    /// The command, for `sh -c` in the workspace; none where what the worker says is enough.
    #[serde(rename = "check", default, skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    /// How many failed checks in a row block the task; 3 where nothing is said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_checks: Option<u32>,
}

impl Check {
    /// Returns how many failed checks in a row block the task. Each is a turn where its worker has a goal.
    pub fn limit(&self, goal: &Goal) -> u32 {
        match goal.turns() {
            Some(turns) => self.max_checks.map_or(turns, |checks| checks.min(turns)),
            None => self.max_checks.unwrap_or(DEFAULT_MAX_CHECKS).min(limits::TURNS),
        }
    }
}

/// The approval that a task needs once its parents are done.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Approval {
    /// Whether it is missing or given; none where the task needs no approval.
    #[serde(rename = "approval")]
    pub state: Option<ApprovalState>,
    /// What it is about.
    #[serde(rename = "approval_class")]
    pub class: Option<ApprovalClass>,
    /// Who may give it: `worker:<profile>`, or the name of a person; any person where nobody is named.
    pub approver: Option<String>,
}

/// Whether a worker continues turn by turn until its goal is reached.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Goal {
    /// Whether it does.
    #[serde(rename = "goal_mode")]
    pub mode: bool,
    /// The limit of such turns.
    #[serde(rename = "goal_max_turns")]
    pub max_turns: Option<u32>,
}

/// How many turns a worker takes toward its goal where its task does not say it.
const DEFAULT_TURNS: u32 = 20;

impl Goal {
    /// Returns how many turns a worker may take before somebody is asked; none where it has no goal.
    pub fn turns(&self) -> Option<u32> {
        self.mode.then(|| self.max_turns.unwrap_or(DEFAULT_TURNS).min(limits::TURNS))
    }
}

/// What a task descends from.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Lineage {
    /// The mission it belongs to: the id of the task that a person made, for all that workers make below it; none of that one
    /// itself.
    pub mission: Option<String>,
    /// How many tasks above it made tasks; set by the board for a worker's tasks.
    pub depth: u32,
    /// How many questions deep it is, where it is the task of a question whose answer somebody waits for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub consult: Option<u32>,
}

/// Where a task comes from, and where news of it go.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Origin {
    /// The schedule; none of a task that no schedule made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schedule: Option<ScheduleName>,
    /// The time of the tick.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tick: Option<Timestamp>,
    /// The channel that is subscribed to the task when it is made: `CHANNEL`, `CHANNEL:CHAT` or `CHANNEL:CHAT:THREAD`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub channel: Option<String>,
    /// The task from whose session its first run begins.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub forked_from: Option<TaskId>,
    /// The run of that task,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub forked_run: Option<RunId>,
    /// and the name of its session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub forked_session: Option<String>,
}

/// What a client keeps with a task. The board stores it and decides nothing by it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Client {
    /// Its project.
    pub project_id: Option<String>,
    /// Its session.
    pub session_id: Option<String>,
    /// Its workflow.
    pub workflow_template_id: Option<String>,
    /// Its step in the workflow.
    pub current_step_key: Option<String>,
    /// The model to use instead of the profile's.
    pub model_override: Option<String>,
}

/// What a new task is made of.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct NewTask {
    /// One line, 1 to 500 characters without control characters.
    pub title: String,
    /// Up to 1 MiB of text.
    pub body: Option<String>,
    /// Who is to work on it.
    pub assignee: Option<Profile>,
    /// The tasks that have to be done before.
    pub parents: Vec<TaskId>,
    /// Its namespace; none means that of its parents or of the worker that makes it.
    pub tenant: Option<Tenant>,
    /// Greater goes first.
    pub priority: i64,
    /// Where it works: `scratch` where none is named. The board knows the kind before the first `:` and the directory of `dir:`, and takes
    /// the rest as it is.
    pub workspace: Option<String>,
    /// The branch it works on.
    pub branch: Option<String>,
    /// The state in which it is created.
    pub initial_state: InitialState,
    /// The same key always names the same task.
    pub idempotency_key: Option<String>,
    /// The skills its worker should have.
    pub skills: Vec<String>,
    /// The pools of which each of its runs takes a place.
    pub pools: BTreeSet<Pool>,
    /// When it may start.
    pub not_before: Option<Timestamp>,
    /// Who asked for it; the actor when absent.
    pub created_by: Option<String>,
    /// The policy of its runs; the profile's when absent.
    pub policy: Option<String>,
    /// Free notes.
    pub notes: Option<String>,
    /// Files that it is expected to make.
    pub artifacts: Vec<String>,
    /// How much it may take.
    pub limits: Limits,
    /// What proves it done.
    pub check: Check,
    /// The approval it needs.
    pub approval: Approval,
    /// Whether its worker has a goal.
    pub goal: Goal,
    /// What it descends from.
    pub lineage: Lineage,
    /// What its client keeps with it.
    pub client: Client,
    /// The tick that makes it.
    pub origin: Origin,
}

/// The workspace of a task that names none: a directory of its own.
pub(crate) const SCRATCH: &str = "scratch";

impl NewTask {
    /// Returns where it works.
    pub(crate) fn workspace(&self) -> &str {
        self.workspace.as_deref().unwrap_or(SCRATCH)
    }

    /// Returns its optional words with their names on the wire: those that the board takes as they are, up to a length.
    pub(crate) fn words(&self) -> impl Iterator<Item = (&'static str, &str)> {
        let Client { project_id, session_id, workflow_template_id, current_step_key, model_override } =
            &self.client;
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
            ("workflow_template_id", workflow_template_id),
            ("current_step_key", current_step_key),
            ("session_id", session_id),
            ("project_id", project_id),
            ("model_override", model_override),
        ]
        .into_iter()
        .filter_map(|(name, word)| Some((name, word.as_deref()?)))
    }
}

/// A task as it stands.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Task {
    /// Its id.
    pub id: TaskId,
    /// One line.
    pub title: String,
    /// What is to be done.
    pub body: Option<String>,
    /// Who is to do it.
    pub assignee: Option<Profile>,
    /// The profile that is to review the work, where one was named.
    #[serde(default)]
    pub reviewer: Option<Profile>,
    /// Whose work is under review: `worker:<profile>` or `person:<name>`.
    #[serde(default)]
    pub work_by: Option<String>,
    /// Where it stands.
    pub status: Status,
    /// Greater goes first.
    pub priority: i64,
    /// Its namespace.
    pub tenant: Option<Tenant>,
    /// The kind of its workspace: `scratch`, `dir` or `worktree`.
    pub workspace_kind: String,
    /// The directory: from the start where the workspace names it, else once a run or a claim has made it.
    pub workspace_path: Option<String>,
    /// The branch it works on.
    pub branch_name: Option<String>,
    /// Who asked for it.
    pub created_by: Option<String>,
    /// When it was made.
    pub created_at: Timestamp,
    /// When its latest run started; none before the first one.
    pub started_at: Option<Timestamp>,
    /// When it was done.
    pub completed_at: Option<Timestamp>,
    /// What came of it.
    pub result: Option<String>,
    /// The skills its worker should have.
    pub skills: Vec<String>,
    /// The pools of which each of its runs takes a place, beside those of its profile and its lane.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub pools: BTreeSet<Pool>,
    /// The workspace as it was asked for.
    pub workspace: String,
    /// What it waits for, when blocked.
    pub block_kind: Option<BlockKind>,
    /// Why, when blocked.
    pub block_reason: Option<String>,
    /// Whether a person cancelled it, when blocked.
    #[serde(default, skip_serializing_if = "is_false")]
    pub cancelled: bool,
    /// The question to a person, when blocked.
    pub question: Option<Question>,
    /// Counted failures in a row; the limit of them blocks the task.
    pub consecutive_failures: u32,
    /// The latest of them.
    pub last_failure_error: Option<String>,
    /// The open run; none where no run is open.
    pub current_run_id: Option<RunId>,
    /// The open run's claim.
    pub claim_lock: Option<String>,
    /// When the open run's claim expires, if it is an external one.
    pub claim_expires: Option<Timestamp>,
    /// The process id of the open run's worker; none where no run is open, or where no process is known.
    pub worker_pid: Option<i32>,
    /// The open run's last sign of life.
    pub last_heartbeat_at: Option<Timestamp>,
    /// When it may start.
    pub not_before: Option<Timestamp>,
    /// Its idempotency key.
    pub idempotency_key: Option<String>,
    /// When it last changed.
    pub updated_at: Timestamp,
    /// The policy of its runs.
    pub policy: Option<String>,
    /// The user that created it.
    pub creator_uid: Option<u32>,
    /// The user that was allocated to its workers.
    pub worker_uid: Option<u32>,
    /// The task whose worker made it.
    pub creator_task: Option<TaskId>,
    /// Free notes.
    pub notes: Option<String>,
    /// Files that it made or is expected to make.
    pub artifacts: Vec<String>,
    /// How much it may take.
    #[serde(flatten)]
    pub limits: Limits,
    /// What proves it done.
    #[serde(flatten)]
    pub check: Check,
    /// Failed checks in a row.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub failed_checks: u32,
    /// The run whose work waits for its check, or is being checked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unchecked_run: Option<RunId>,
    /// The approval it needs.
    #[serde(flatten)]
    pub approval: Approval,
    /// Whether its worker has a goal.
    #[serde(flatten)]
    pub goal: Goal,
    /// Turns that have ended without reaching it, since somebody let it go on.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub goal_turns: u32,
    /// What it descends from.
    #[serde(flatten)]
    pub lineage: Lineage,
    /// What its client keeps with it.
    #[serde(flatten)]
    pub client: Client,
    /// The tick that made it.
    #[serde(flatten)]
    pub origin: Origin,
    /// Why it is not running, where that was asked for and it is neither running nor over.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<Waiting>,
    /// Since when it has its status, where it was asked for why it is not running; none where its last change of status is not in
    /// the log any more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status_since: Option<Timestamp>,
    /// How many runs it has had, where that was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attempts: Option<u64>,
    /// When its last run ended, where the runs were asked for; none while that is open.
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
    /// Returns whether it goes on only if a person does something.
    pub fn waits_for_a_person(&self) -> bool {
        match self.status {
            Status::Blocked | Status::Triage => true,
            // A check and a profile that reviews start by themselves.
            Status::Review => self.reviewer.is_none() && self.unchecked_run.is_none(),
            Status::Todo
            | Status::Scheduled
            | Status::Ready
            | Status::Running
            | Status::Done
            | Status::Archived => false,
        }
    }

    /// Returns the question that it waits with; none where it waits for something else.
    pub fn open_question(&self) -> Option<&Question> {
        let waits = self.status == Status::Blocked && self.block_kind == Some(BlockKind::NeedsInput);
        self.question.as_ref().filter(|_| waits)
    }

    /// Returns whether a person cancelled it: it asks nothing, and goes on when somebody retries it.
    pub fn is_cancelled(&self) -> bool {
        self.status == Status::Blocked && self.cancelled
    }

    /// Returns the mission that it belongs to, by the task that a person made.
    pub fn mission(&self) -> &str {
        self.lineage.mission.as_deref().unwrap_or(self.id.as_str())
    }

    /// Returns who it names for this; a check names nobody, the supervisor runs it.
    pub(crate) fn performer(&self, purpose: Purpose) -> Option<&Profile> {
        match purpose {
            Purpose::Work => self.assignee.as_ref(),
            Purpose::Review => self.reviewer.as_ref(),
            Purpose::Check => None,
        }
    }

    /// Returns whether it counts as done for its children.
    pub fn is_done(&self) -> bool {
        self.completed_at.is_some()
    }
}
