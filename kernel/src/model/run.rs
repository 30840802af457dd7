//! One attempt at a task.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::model::clock::Timestamp;
use crate::model::id::{Profile, RunId, TaskId, Tenant};
use crate::model::outcome::{Egress, Outcome, StopReason};
use crate::model::spent::Spent;
use crate::model::time_limit::LimitSource;
use crate::model::verdict::Verdict;
use crate::model::words::words;

words! {
    /// Where a run stands: open, ending, or the word for how it ended.
    "run status"
    RunStatus {
        /// It is open.
        Running => "running",
        /// Its end was decided; its process may still live.
        Ending => "ending",
        /// It completed the task.
        Done => "done",
        /// It blocked the task.
        Blocked => "blocked",
        /// It asked for a review.
        Review => "review",
        /// It ended as [`Outcome::Cancelled`].
        Cancelled => "cancelled",
        /// It ended as [`Outcome::Reclaimed`].
        Reclaimed => "reclaimed",
        /// It ended as [`Outcome::Preempted`].
        Preempted => "preempted",
        /// It ended as [`Outcome::Crashed`].
        Crashed => "crashed",
        /// It ended as [`Outcome::TimedOut`].
        TimedOut => "timed_out",
        /// It ended as [`Outcome::Stalled`].
        Stalled => "stalled",
        /// It ended as [`Outcome::OutOfMemory`].
        OutOfMemory => "out_of_memory",
        /// It ended as [`Outcome::Unreported`].
        Unreported => "unreported",
        /// It ended as [`Outcome::RateLimited`].
        RateLimited => "rate_limited",
        /// It ended as [`Outcome::Lost`].
        Lost => "lost",
        /// It ended as [`Outcome::SpawnFailed`].
        SpawnFailed => "spawn_failed",
    }
}

impl From<Outcome> for RunStatus {
    fn from(outcome: Outcome) -> Self {
        match outcome {
            // The words of a run's status are those of the established board: a review that came to an end is done.
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
    /// Who has the claim of a run.
    "holder"
    Holder {
        /// The supervisor: the claim ends with the proof that the process is gone.
        Supervisor => "supervisor",
        /// Somebody outside: the claim expires unless it is renewed.
        External => "hand",
    }
}

words! {
    /// What a run is for.
    #[derive(Default)]
    "purpose"
    Purpose {
        /// The work itself.
        #[default]
        Work => "work",
        /// A look at the work of somebody else.
        Review => "review",
        /// The command that proves the work done.
        Check => "check",
    }
}

/// One attempt at a task.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Run {
    /// Its id.
    pub id: RunId,
    /// The task.
    pub task_id: TaskId,
    /// Who works on it.
    pub profile: Option<Profile>,
    /// What it is for.
    #[serde(default)]
    pub purpose: Purpose,
    /// The task's workflow step when it started.
    pub step_key: Option<String>,
    /// Where it stands.
    pub status: RunStatus,
    /// How it ended.
    pub outcome: Option<Outcome>,
    /// What it handed over.
    pub summary: Option<String>,
    /// What went wrong.
    pub error: Option<String>,
    /// What it handed over for machines.
    pub metadata: Option<Value>,
    /// The worker's process id; kept after the end.
    pub worker_pid: Option<i32>,
    /// When it was claimed.
    pub started_at: Timestamp,
    /// When its command started.
    pub spawned_at: Option<Timestamp>,
    /// When it ended, by proof.
    pub ended_at: Option<Timestamp>,
    /// The claim: `<host>:<pid>:<uuid>`.
    pub claim_lock: Option<String>,
    /// When an external claim expires.
    pub claim_expires: Option<Timestamp>,
    /// The last sign of life that the worker gave itself.
    pub last_heartbeat_at: Option<Timestamp>,
    /// Its limit, in seconds.
    pub max_runtime_seconds: Option<u64>,
    /// Who has set that limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_runtime_from: Option<LimitSource>,
    /// Its exit code.
    pub exit_code: Option<i32>,
    /// The signal that ended it.
    pub signal: Option<i32>,
    /// Whether that signal dumped its core, where that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub core_dumped: Option<bool>,
    /// Where its output is kept.
    pub log_path: Option<String>,
    /// The directory it works in.
    pub workspace_path: Option<String>,
    /// What was really enforced on it.
    pub sandbox: Option<Value>,
    /// What it used.
    pub usage: Option<Value>,
    /// What it did in git, as its supervisor has found it: commits, changed lines and paths.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub evidence: Option<Value>,
    /// What its agent says that it has used of a model. Only histories have it.
    #[serde(default)]
    pub spent: Option<Spent>,
    /// What went through its proxy. Only histories have it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub egress: Option<Egress>,
    /// What was decided about it.
    pub verdict: Option<Verdict>,
    /// Since when it is ending.
    pub ending_since: Option<Timestamp>,
    /// Why the supervisor is to end it.
    pub stop_reason: Option<StopReason>,
    /// Who has its claim.
    #[serde(rename = "hand")]
    pub holder: Holder,
    /// The secret-free mark that ties it to its run directory.
    pub nonce: Option<String>,
    /// The policy that it runs under.
    #[serde(default)]
    pub policy: Option<String>,
    /// The tenant of its task.
    pub tenant: Option<Tenant>,
    /// The branch it works on.
    pub branch_name: Option<String>,
    /// The user its worker runs as.
    pub worker_uid: Option<u32>,
    /// The boot under which it was claimed.
    pub boot_id: Option<String>,
    /// The end of what it wrote to stderr.
    pub stderr_tail: Option<String>,
    /// The account whose limits it counts against.
    #[serde(default)]
    pub account: Option<String>,
    /// How many starts in a row came to nothing for a reason outside of the task: this run stands for all of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tries: Option<u32>,
}
