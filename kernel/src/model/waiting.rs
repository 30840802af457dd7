//! What a task waits for, as a word and in words.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::model::clock::Timestamp;
use crate::model::id::TaskId;
use crate::model::status::Status;
use crate::model::words::words;

words! {
    /// What a task waits for, as a word. The board knows the first ones, the daemon the others.
    "waiting code"
    WaitingCode {
        /// Somebody has to specify it.
        Triage => "triage",
        /// Parents are not done.
        Parents => "parents",
        /// Its time has not come.
        Time => "time",
        /// It failed, and is tried again later.
        Retry => "retry",
        /// It has no assignee.
        Unassigned => "unassigned",
        /// Nothing can spawn its assignee.
        Nonspawnable => "nonspawnable",
        /// A reviewer has to look.
        Review => "review",
        /// Its check has to run.
        Check => "check",
        /// Somebody has to approve it.
        Approval => "approval",
        /// Somebody has to answer a question.
        Question => "question",
        /// It failed too often in a row.
        GaveUp => "gave_up",
        /// A person cancelled it: it goes on when somebody retries it.
        Cancelled => "cancelled",
        /// A person has to act.
        Blocked => "blocked",
        /// Its run is ending.
        Ending => "ending",
        /// No daemon runs that would start it.
        NoDaemon => "no_daemon",
        /// Somebody holds it back, or its profile, tenant or account.
        Hold => "hold",
        /// Its account or profile has met a limit of its service.
        RateLimit => "rate_limit",
        /// It is being started.
        Starting => "starting",
        /// Those before it are looked at first.
        Turn => "turn",
        /// As many run as may run: in all, of its tenant, of its profile or of its lane.
        Slot => "slot",
        /// Every place of a pool that it needs is taken.
        Pool => "pool",
        /// The host has less free memory, or more load, than the configuration asks for.
        Headroom => "headroom",
        /// The configuration says that nothing is started.
        Disabled => "disabled",
        /// Another task works in its directory.
        Workspace => "workspace",
        /// What every run of its kind needs is broken.
        Environment => "environment",
        /// The host lacks something for now, or the board cannot be written.
        Host => "host",
        /// The daemon is stopping.
        Stopping => "stopping",
        /// The pass has started as many as it was to.
        Pass => "pass",
        /// Nobody knows whether the processes of its last run are gone.
        Survivors => "survivors",
        /// SIGKILL does not end the processes of its run.
        Unkillable => "unkillable",
        /// Its run is over, and its end cannot be proven or recorded.
        Stuck => "stuck",
    }
}

/// What a task waits for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Waiting {
    /// As a word.
    pub code: WaitingCode,
    /// In words: the rest of a sentence about the task, on one line.
    pub text: String,
    /// Until when, where that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<Timestamp>,
    /// The first tasks that it waits for, where it waits for parents.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub parents: Vec<OpenParent>,
    /// How many tasks more it waits for.
    #[serde(default, skip_serializing_if = "is_none")]
    pub more_parents: usize,
    /// What does not work, where it waits for that to work again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub broken: Option<Breakage>,
}

/// A task that is not done, and that another one waits for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct OpenParent {
    /// The task.
    pub id: TaskId,
    /// Where it stands.
    pub status: Status,
    /// The beginning of its title.
    pub title: String,
}

/// Something that tasks need and that does not work.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Breakage {
    /// What it is, as a short name: `program of lane claude`.
    pub what: String,
    /// What it said when it was last tried.
    pub why: String,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands over a reference")]
fn is_none(count: &usize) -> bool {
    *count == 0
}

impl Waiting {
    /// Makes a reason without a known end.
    pub fn new(code: WaitingCode, text: impl Into<String>) -> Self {
        let text: String = text.into();
        // One line, whatever a person or a worker wrote.
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        Self { code, text, until: None, parents: Vec::new(), more_parents: 0, broken: None }
    }

    /// Makes the reason of a task that waits for something to work again.
    pub fn broken(text: impl Into<String>, what: impl Into<String>, why: impl Into<String>) -> Self {
        let broken = Breakage { what: what.into(), why: why.into() };
        Self { broken: Some(broken), ..Self::new(WaitingCode::Environment, text) }
    }

    /// Makes the reason of a task whose assignee nothing here can run.
    pub fn nonspawnable(why: &str) -> Self {
        Self::new(WaitingCode::Nonspawnable, format!("waits for an outside worker to claim it: {why}"))
    }

    /// Adds the end that is known.
    #[must_use]
    pub fn until(self, at: Timestamp) -> Self {
        Self { until: Some(at), ..self }
    }
}
