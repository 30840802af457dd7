//! Tasks that may be started: where they come from, and what the caller says of each.

use std::collections::{BTreeMap, BTreeSet};

use crate::model::clock::Timestamp;
use crate::model::id::{Pool, Profile, TaskId, Tenant};

/// A task that may be started.
#[derive(Clone, Debug, PartialEq)]
pub struct Candidate {
    /// The task, which waits for a worker.
    pub task: TaskId,
    /// Who is to work on it.
    pub assignee: Profile,
    /// The tenant whose caps it counts under.
    pub tenant: Option<Tenant>,
    /// The highest starts first.
    pub priority: i64,
    /// Its age.
    pub created_at: Timestamp,
    /// Its workspace as it was asked for.
    pub workspace: String,
    /// The tasks of its tenant and assignee that need the same directory or repository, and name the same pools, are one line; empty
    /// for one that needs none and names none.
    pub line: String,
    /// The pools that it names.
    pub pools: BTreeSet<Pool>,
    /// The policy that the task itself asks for.
    pub policy: Option<String>,
    /// The mission that it belongs to, where it is not the first task of one.
    pub mission: Option<String>,
    /// How many questions deep it is, where it is the task of one.
    pub consult: Option<u32>,
}

/// The tasks of one tenant, or of none, for one profile.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Group {
    pub(crate) tenant: Option<Tenant>,
    /// The assignee, or the reviewer.
    pub(crate) profile: Profile,
}

/// Where candidates of one group come from, each in the order in which they should start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    /// The ready tasks of a line; of those that are in none for the empty one.
    Line(String),
    /// The first ready task of each line.
    Heads,
    /// What a profile is to review.
    Reviews,
    /// Work that waits for its check.
    Checks,
}

/// What the caller says of a candidate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// It starts.
    Taken,
    /// It cannot start now, and neither can what the reason reaches.
    Left(Reach),
}

/// How far the reason reaches that keeps a task from starting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reach {
    /// Only this task.
    Task,
    /// The tasks of its line.
    Line,
    /// The tasks of its assignee.
    Profile,
    /// The tasks of its tenant.
    Tenant,
    /// Every task.
    Everything,
}

/// The account of each profile that has one.
pub type Accounts = BTreeMap<Profile, String>;
