//! What a proposal comes to once it was read.

use crate::model::id::{Profile, TaskId};
use crate::model::proposal::{ProposedProfile, ReviewAnswer};
use crate::model::schedule::TemplateTask;

/// The most profiles that a proposal may name, and the most characters of what each is for.
pub(crate) const STAFF: (usize, usize) = (100, 300);
/// What a proposal comes to.
#[derive(Debug, Default)]
pub(crate) struct Proposed {
    /// The new title of its task.
    pub(crate) title: Option<String>,
    /// The new text of its task.
    pub(crate) body: Option<String>,
    /// The assignee of its task.
    pub(crate) assignee: Option<Profile>,
    /// New tasks, each behind those that it waits for.
    pub(crate) tasks: Vec<TemplateTask>,
    /// What a review of a mission answers.
    pub(crate) review: Option<Review>,
    /// New profiles that a plan asks for.
    pub(crate) profiles: Vec<ProposedProfile>,
}

/// What a review of a mission's progress answers.
#[derive(Debug)]
pub(crate) struct Review {
    pub(crate) answer: ReviewAnswer,
    pub(crate) reason: String,
    /// Tasks of the mission that are not needed any more.
    pub(crate) drop: Vec<TaskId>,
}
