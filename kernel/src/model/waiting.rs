//! Reasons why a task waits, as a code and in words.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::model::clock::Timestamp;
use crate::model::id::TaskId;
use crate::model::status::Status;
use crate::model::words::words;

words! {
    /// Code for the reason why a task waits. The board determines the first ones, the daemon the others.
    "waiting code"
    WaitingCode {
        /// A person or a profile has to specify the task.
        Triage => "triage",
        /// Parents are not done.
        Parents => "parents",
        /// The task's time has not come.
        Time => "time",
        /// The task failed, and is tried again later.
        Retry => "retry",
        /// The task has no assignee.
        Unassigned => "unassigned",
        /// Nothing can spawn the assignee.
        Nonspawnable => "nonspawnable",
        /// The work waits for a reviewer.
        Review => "review",
        /// The check has to run.
        Check => "check",
        Approval => "approval",
        Question => "question",
        /// The task failed too often in a row.
        GaveUp => "gave_up",
        /// A person cancelled the task: it goes on when a person retries it.
        Cancelled => "cancelled",
        /// A person has to act.
        Blocked => "blocked",
        Ending => "ending",
        /// No daemon runs that would start the task.
        NoDaemon => "no_daemon",
        /// A hold is on the task, or on its profile, tenant or account.
        Hold => "hold",
        /// The account or profile has met a limit of its service.
        RateLimit => "rate_limit",
        /// The run is being started.
        Starting => "starting",
        /// The worktree of the run is being made, which takes a while.
        Preparing => "preparing",
        /// Earlier tasks are considered first.
        Turn => "turn",
        /// All slots are in use: in total, of the tenant, of the profile or of the lane.
        Slot => "slot",
        /// Every place of a pool that the task needs is taken.
        Pool => "pool",
        /// The host has less free memory, or more load, than the configuration asks for.
        Headroom => "headroom",
        /// The configuration disables starts.
        Disabled => "disabled",
        /// Another task works in the task's directory.
        Workspace => "workspace",
        /// A part that every run of this kind needs is broken.
        Environment => "environment",
        /// The host lacks a resource for now, or the board cannot be written.
        Host => "host",
        Stopping => "stopping",
        /// The pass has started as many tasks as it may.
        Pass => "pass",
        /// No proof exists that the processes of the last run are gone.
        Survivors => "survivors",
        /// SIGKILL does not end the processes of the run.
        Unkillable => "unkillable",
        /// The run is over, and its end cannot be proven or recorded.
        Stuck => "stuck",
    }
}

/// Reason why a task waits.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Waiting {
    /// Reason as a code.
    pub code: WaitingCode,
    /// Reason in words: the rest of a sentence about the task, on one line.
    pub text: String,
    /// End of the wait, if it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<Timestamp>,
    /// First parents that are not done, for a task that waits for parents.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub parents: Vec<OpenParent>,
    /// Number of further parents that are not done.
    #[serde(default, skip_serializing_if = "is_none")]
    pub more_parents: usize,
    /// Broken part, for a task that waits until the part works again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub broken: Option<Breakage>,
}

/// Parent that is not done.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct OpenParent {
    pub id: TaskId,
    pub status: Status,
    /// First part of the title.
    pub title: String,
}

/// Broken part that tasks need.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Breakage {
    /// Short name of the part: `program of lane claude`.
    pub what: String,
    /// Error of the last try.
    pub why: String,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands over a reference")]
fn is_none(count: &usize) -> bool {
    *count == 0
}

impl Waiting {
    /// Creates a reason without a known end.
    pub fn new(code: WaitingCode, text: impl Into<String>) -> Self {
        let text: String = text.into();
        // Texts of people and workers become one line.
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        Self { code, text, until: None, parents: Vec::new(), more_parents: 0, broken: None }
    }

    /// Creates the reason of a task that waits until a broken part works again.
    pub fn broken(text: impl Into<String>, what: impl Into<String>, why: impl Into<String>) -> Self {
        let broken = Breakage { what: what.into(), why: why.into() };
        Self { broken: Some(broken), ..Self::new(WaitingCode::Environment, text) }
    }

    /// Creates the reason of a task whose assignee cannot be run here.
    pub fn nonspawnable(why: &str) -> Self {
        Self::new(WaitingCode::Nonspawnable, format!("waits for an outside worker to claim it: {why}"))
    }

    /// Sets the end of the wait.
    #[must_use]
    pub fn until(self, at: Timestamp) -> Self {
        Self { until: Some(at), ..self }
    }
}
