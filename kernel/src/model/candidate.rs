//! Candidates for a start: their queues, and the caller's answer to each.

use std::collections::{BTreeMap, BTreeSet};

use crate::model::clock::Timestamp;
use crate::model::id::{Pool, Profile, TaskId, Tenant};
use crate::model::workspace::Workspace;

/// Task that may be started.
#[derive(Clone, Debug, PartialEq)]
pub struct Candidate {
    /// Id of the task, which waits for a worker.
    pub task: TaskId,
    /// Profile of the worker.
    pub assignee: Profile,
    /// Tenant whose limits the start counts against.
    pub tenant: Option<Tenant>,
    /// Priority; the highest starts first.
    pub priority: i64,
    /// Creation time of the task.
    pub created_at: Timestamp,
    /// Workspace as the task asks for it.
    pub workspace: Workspace,
    /// Key of the candidate's line. The tasks of a tenant and assignee are in one line when they need the same directory
    /// or repository and name the same pools. Empty for a task that needs no directory and names no pool.
    pub line: String,
    /// Pools that the task names.
    pub pools: BTreeSet<Pool>,
    /// Policy that the task itself asks for.
    pub policy: Option<String>,
    /// Mission of the task; none for the first task of a mission.
    pub mission: Option<String>,
    /// Depth in a chain of consults; none for any other task.
    pub consult: Option<u32>,
}

/// Tasks of one tenant, or of none, for one profile.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Group {
    pub(crate) tenant: Option<Tenant>,
    /// Assignee, or the reviewer.
    pub(crate) profile: Profile,
}

/// Queue of candidates of one group, in the order in which they should start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    /// Ready tasks of a line; the empty key is the queue of all tasks without a line.
    Line(String),
    /// First ready task of each line.
    Heads,
    /// Work that a profile has to review.
    Reviews,
    /// Work that waits for its check.
    Checks,
}

/// Caller's answer about a candidate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CandidateChoice {
    /// The candidate starts.
    Taken,
    /// The candidate cannot start now, and neither can any other task within this reach.
    Left(Reach),
}

/// Extent of a reason that keeps a task from starting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reach {
    Task,
    /// All tasks of its line.
    Line,
    /// All tasks of its assignee.
    Profile,
    /// All tasks of its tenant.
    Tenant,
    /// Every task.
    Everything,
}

/// Account of each profile that has one.
pub type Accounts = BTreeMap<Profile, String>;
