//! A logical unit of work.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::model::clock::Timestamp;
use crate::model::id::{Profile, RunId, TaskId, Tenant};
use crate::model::outcome::{Approval, ApprovalClass, BlockKind};
use crate::model::status::{Intake, Status};
use crate::model::verdict::Question;
use crate::model::waiting::Waiting;

/// What a new task is made of.
#[derive(Clone, Debug)]
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
    /// Where it works; opaque to the board.
    pub workspace: String,
    /// The branch it works on.
    pub branch: Option<String>,
    /// How it enters.
    pub triage: Intake,
    /// The same key always names the same task.
    pub idempotency_key: Option<String>,
    /// The limit of each run.
    pub max_runtime: Option<Duration>,
    /// How many counted failures in a row block it.
    pub max_retries: Option<u32>,
    /// The skills its worker should have.
    pub skills: Vec<String>,
    /// When it may start.
    pub not_before: Option<Timestamp>,
    /// Who asked for it; the actor when absent.
    pub created_by: Option<String>,
    /// The policy of its runs; the profile's when absent.
    pub policy: Option<String>,
    /// Whether its worker goes on turn by turn until the goal is reached.
    pub goal_mode: bool,
    /// The limit of such turns.
    pub goal_max_turns: Option<u32>,
    /// The mission it belongs to.
    pub mission: Option<String>,
    /// How many tasks above it made tasks; set by the board for a worker's tasks.
    pub depth: u32,
    /// Free notes.
    pub notes: Option<String>,
    /// Files that it is expected to make.
    pub artifacts: Vec<String>,
    /// Whether somebody has to approve it, once its parents are done.
    pub require_approval: bool,
    /// The class of approval it needs.
    pub approval_class: Option<ApprovalClass>,
    /// Who may approve it: `worker:<profile>`, or the name of a person; any person where nobody is named.
    pub approver: Option<String>,
    /// Its budget, in millionths of a US dollar.
    pub budget_usd_micros: Option<i64>,
    /// A client's workflow.
    pub workflow_template_id: Option<String>,
    /// A client's step in it.
    pub current_step_key: Option<String>,
    /// A client's session.
    pub session_id: Option<String>,
    /// A client's project.
    pub project_id: Option<String>,
    /// The model to use instead of the profile's.
    pub model_override: Option<String>,
}

impl Default for NewTask {
    fn default() -> Self {
        Self {
            title: String::new(),
            body: None,
            assignee: None,
            parents: Vec::new(),
            tenant: None,
            priority: 0,
            workspace: "scratch".to_owned(),
            branch: None,
            triage: Intake::Normal,
            idempotency_key: None,
            max_runtime: None,
            max_retries: None,
            skills: Vec::new(),
            not_before: None,
            created_by: None,
            policy: None,
            goal_mode: false,
            goal_max_turns: None,
            mission: None,
            depth: 0,
            notes: None,
            artifacts: Vec::new(),
            require_approval: false,
            approval_class: None,
            approver: None,
            budget_usd_micros: None,
            workflow_template_id: None,
            current_step_key: None,
            session_id: None,
            project_id: None,
            model_override: None,
        }
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
    /// The kind of its workspace.
    pub workspace_kind: String,
    /// The directory: from the start where the workspace names it, else once a run or a claim has made it.
    pub workspace_path: Option<String>,
    /// The branch it works on.
    pub branch_name: Option<String>,
    /// A client's project.
    pub project_id: Option<String>,
    /// Who asked for it.
    pub created_by: Option<String>,
    /// When it was made.
    pub created_at: Timestamp,
    /// When its latest run started.
    pub started_at: Option<Timestamp>,
    /// When it was done.
    pub completed_at: Option<Timestamp>,
    /// What came of it.
    pub result: Option<String>,
    /// The skills its worker should have.
    pub skills: Vec<String>,
    /// How many counted failures in a row block it.
    pub max_retries: Option<u32>,
    /// A client's session.
    pub session_id: Option<String>,
    /// A client's workflow.
    pub workflow_template_id: Option<String>,
    /// A client's step in it.
    pub current_step_key: Option<String>,
    /// The workspace as it was asked for.
    pub workspace: String,
    /// What it waits for, when blocked.
    pub block_kind: Option<BlockKind>,
    /// Why, when blocked.
    pub block_reason: Option<String>,
    /// The question to a person, when blocked.
    pub question: Option<Question>,
    /// Counted failures in a row.
    pub consecutive_failures: u32,
    /// The latest of them.
    pub last_failure_error: Option<String>,
    /// The limit of each run, in seconds.
    pub max_runtime_seconds: Option<u64>,
    /// The open run, if there is one.
    pub current_run_id: Option<RunId>,
    /// The open run's claim.
    pub claim_lock: Option<String>,
    /// When the open run's claim expires, if it was taken by hand.
    pub claim_expires: Option<Timestamp>,
    /// The open run's process.
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
    /// The mission it belongs to.
    pub mission: Option<String>,
    /// How many tasks above it made tasks.
    pub depth: u32,
    /// Free notes.
    pub notes: Option<String>,
    /// Files that it made or is expected to make.
    pub artifacts: Vec<String>,
    /// The class of approval it needs.
    pub approval_class: Option<ApprovalClass>,
    /// Who may approve it.
    pub approver: Option<String>,
    /// Whether its approval is missing or given, where it needs one.
    #[serde(default)]
    pub approval: Option<Approval>,
    /// Its budget, in millionths of a US dollar.
    pub budget_usd_micros: Option<i64>,
    /// The model to use instead of the profile's.
    pub model_override: Option<String>,
    /// Whether its worker goes on turn by turn until the goal is reached.
    pub goal_mode: bool,
    /// The limit of such turns.
    pub goal_max_turns: Option<u32>,
    /// Why it is not running, where that was asked for and it is neither running nor over.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<Waiting>,
}

impl Task {
    /// Returns whether it counts as done for its children.
    pub fn is_done(&self) -> bool {
        self.completed_at.is_some()
    }
}
