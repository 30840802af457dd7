//! Parsed result of a proposal.

use crate::model::id::{Profile, TaskId};
use crate::model::proposal::{ProposedProfile, ReviewAnswer};
use crate::model::schedule::TemplateTask;

/// Largest number of profiles that a proposal may name, and largest length of a profile's description, in characters.
pub(crate) const STAFF: (usize, usize) = (100, 300);
/// Parsed result of a proposal.
#[derive(Debug, Default)]
pub(crate) struct Proposed {
    /// New title of the subject.
    pub(crate) title: Option<String>,
    /// New text of the subject.
    pub(crate) body: Option<String>,
    /// New assignee of the subject.
    pub(crate) assignee: Option<Profile>,
    /// New tasks, each after its parents.
    pub(crate) tasks: Vec<TemplateTask>,
    pub(crate) review: Option<Review>,
    /// New profiles that a plan asks for.
    pub(crate) profiles: Vec<ProposedProfile>,
}

/// Answer of a review of a mission's progress.
#[derive(Debug)]
pub(crate) struct Review {
    pub(crate) answer: ReviewAnswer,
    pub(crate) reason: String,
    /// Tasks of the mission to drop.
    pub(crate) drop: Vec<TaskId>,
}
