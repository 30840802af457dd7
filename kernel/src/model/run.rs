//! Runs: attempts at a task.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::model::clock::Timestamp;
use crate::model::id::{Profile, RunId, TaskId, Tenant};
use crate::model::measured::Measured;
use crate::model::outcome::{Egress, Outcome, StopReason};
use crate::model::spent::Spent;
use crate::model::time_limit::LimitSource;
use crate::model::verdict::Verdict;
use crate::model::words::words;

/// True for a mark that a claim makes: a random UUID. Any other text can be a part of the environment of foreign processes.
#[must_use]
pub fn is_nonce(text: &str) -> bool {
    uuid::Uuid::try_parse(text)
        .is_ok_and(|id| id.get_version_num() == 4 && id.hyphenated().to_string() == text)
}

words! {
    /// Status of a run: open, ending, or the word for its end.
    "run status"
    RunStatus {
        /// The run is open.
        Running => "running",
        /// The end is decided; the process may still live.
        Ending => "ending",
        /// The run completed the task.
        Done => "done",
        /// The run blocked the task.
        Blocked => "blocked",
        /// The run asked for a review.
        Review => "review",
        /// The run ended as [`Outcome::Cancelled`].
        Cancelled => "cancelled",
        /// The run ended as [`Outcome::Reclaimed`].
        Reclaimed => "reclaimed",
        /// The run ended as [`Outcome::Preempted`].
        Preempted => "preempted",
        /// The run ended as [`Outcome::Crashed`].
        Crashed => "crashed",
        /// The run ended as [`Outcome::TimedOut`].
        TimedOut => "timed_out",
        /// The run ended as [`Outcome::Stalled`].
        Stalled => "stalled",
        /// The run ended as [`Outcome::OutOfMemory`].
        OutOfMemory => "out_of_memory",
        /// The run ended as [`Outcome::Unreported`].
        Unreported => "unreported",
        /// The run ended as [`Outcome::RateLimited`].
        RateLimited => "rate_limited",
        /// The run ended as [`Outcome::Lost`].
        Lost => "lost",
        /// The run ended as [`Outcome::SpawnFailed`].
        SpawnFailed => "spawn_failed",
    }
}

impl From<Outcome> for RunStatus {
    fn from(outcome: Outcome) -> Self {
        match outcome {
            // The words are those of Hermes Kanban, where a finished review counts as done.
            Outcome::Completed
            | Outcome::Approved
            | Outcome::ChangesRequested
            | Outcome::CheckPassed
            | Outcome::CheckFailed => RunStatus::Done,
            Outcome::Blocked => RunStatus::Blocked,
            Outcome::ReviewRequested => RunStatus::Review,
            Outcome::Cancelled => RunStatus::Cancelled,
            Outcome::Reclaimed => RunStatus::Reclaimed,
            Outcome::Preempted => RunStatus::Preempted,
            Outcome::Crashed => RunStatus::Crashed,
            Outcome::TimedOut => RunStatus::TimedOut,
            Outcome::Stalled => RunStatus::Stalled,
            Outcome::OutOfMemory => RunStatus::OutOfMemory,
            Outcome::Unreported => RunStatus::Unreported,
            Outcome::RateLimited => RunStatus::RateLimited,
            Outcome::Lost => RunStatus::Lost,
            Outcome::SpawnFailed => RunStatus::SpawnFailed,
        }
    }
}

words! {
    /// Owner of a run's claim.
    "holder"
    Holder {
        /// The supervisor. Its claim ends with the proof that the process is gone.
        Supervisor => "supervisor",
        /// A worker outside of the supervisor. Its claim expires unless the worker renews it.
        External => "hand",
    }
}

words! {
    /// Purpose of a run.
    #[derive(Default)]
    "purpose"
    Purpose {
        #[default]
        Work => "work",
        /// A review of the work of another worker or a person.
        Review => "review",
        /// The command that proves the work done.
        Check => "check",
    }
}

/// Run: an attempt at a task.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Run {
    pub id: RunId,
    pub task_id: TaskId,
    pub profile: Option<Profile>,
    #[serde(default)]
    pub purpose: Purpose,
    /// Workflow step of the task when the run started.
    pub step_key: Option<String>,
    pub status: RunStatus,
    pub outcome: Option<Outcome>,
    /// Summary that the run handed over.
    pub summary: Option<String>,
    /// Error that ended the run.
    pub error: Option<String>,
    /// Metadata that the run handed over.
    pub metadata: Option<Value>,
    /// Process id of the worker; kept after the end.
    pub worker_pid: Option<i32>,
    /// Time of the claim.
    pub started_at: Timestamp,
    /// Time at which the command started.
    pub spawned_at: Option<Timestamp>,
    /// Time of the end, by proof.
    pub ended_at: Option<Timestamp>,
    /// Name of the claim: `<host>:<pid>:<uuid>`.
    pub claim_lock: Option<String>,
    /// Time at which an external claim expires.
    pub claim_expires: Option<Timestamp>,
    /// Time of the latest heartbeat of the worker.
    pub last_heartbeat_at: Option<Timestamp>,
    /// Time limit, in seconds.
    pub max_runtime_seconds: Option<u64>,
    /// Setting that the time limit comes from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_runtime_from: Option<LimitSource>,
    pub exit_code: Option<i32>,
    /// Signal that ended the worker.
    pub signal: Option<i32>,
    #[serde(flatten)]
    pub measured: Measured,
    pub log_path: Option<String>,
    pub workspace_path: Option<String>,
    /// Sandbox that was really enforced.
    pub sandbox: Option<Value>,
    /// Resources that the run used.
    pub usage: Option<Value>,
    /// Result of the run in git, as the supervisor found it: commits, changed lines and paths.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub evidence: Option<Value>,
    /// Use of a model, as the agent reports it. Only histories have it.
    #[serde(default)]
    pub spent: Option<Spent>,
    /// Traffic through the run's proxy. Only histories have it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub egress: Option<Egress>,
    /// Verdict about the run.
    pub verdict: Option<Verdict>,
    /// Time since which the run is ending.
    pub ending_since: Option<Timestamp>,
    /// Reason why the supervisor has to end the run.
    pub stop_reason: Option<StopReason>,
    /// Owner of the claim.
    #[serde(rename = "hand")]
    pub holder: Holder,
    /// Random mark that ties the row to the run directory. The mark is no secret.
    pub nonce: Option<String>,
    #[serde(default)]
    pub policy: Option<String>,
    pub tenant: Option<Tenant>,
    pub branch_name: Option<String>,
    /// User id of the worker.
    pub worker_uid: Option<u32>,
    /// Id of the boot under which the run was claimed.
    pub boot_id: Option<String>,
    /// Last part of stderr.
    pub stderr_tail: Option<String>,
    /// Account whose limits the run counts against.
    #[serde(default)]
    pub account: Option<String>,
    /// Number of starts in a row that came to nothing for a reason outside of the task. This run stands for all of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tries: Option<u32>,
}
