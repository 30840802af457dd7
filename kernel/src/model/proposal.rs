//! Proposals: tasks whose valid results change another task or make tasks for it.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::model::id::{Profile, TaskId};
use crate::model::words::words;

words! {
    /// Kind of a proposal.
    "kind of proposal"
    ProposalKind {
        /// The specification of a task in triage.
        Specify => "specify",
        /// The division of a task in triage into tasks.
        Decompose => "decompose",
        /// The tasks of a mission.
        Plan => "plan",
        /// The assignee of a task that has none.
        Route => "route",
        /// The progress of a mission: it goes on as planned, gets a new plan, or stops.
        Progress => "progress",
    }
}

words! {
    /// Answer of a review of a mission's progress.
    "answer of a review"
    ReviewAnswer {
        /// The mission goes on as it is.
        Continue => "continue",
        /// Other tasks lead to the goal.
        Replan => "replan",
        /// A person decides about the mission.
        Stop => "stop",
    }
}

/// Occasions for a review of a mission's progress; with both absent there is no review.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReviewTerms {
    /// Number of moves of the mission's tasks after which a review is due.
    pub moves: Option<u64>,
    /// Time without a move after which a review is due.
    pub idle: Option<Duration>,
}

/// Task to be made for a proposal.
#[derive(Clone, Debug)]
pub struct NewProposal {
    pub kind: ProposalKind,
    /// Task that the proposal is for.
    pub subject: TaskId,
    /// Profile that makes the proposal.
    pub assignee: Profile,
    /// Profiles that the proposal may name, each with its description.
    pub staff: BTreeMap<Profile, String>,
    /// Profiles whose own policy confines no run. The proposal may name them only for a task that names a policy.
    pub unconfined: BTreeSet<Profile>,
    /// Names of all existing profiles and lanes. The proposal must use none of them for a new profile.
    pub taken: BTreeSet<Profile>,
    /// Policy of the runs; absent means the profile's policy.
    pub policy: Option<String>,
    /// Author of the task; absent means the actor.
    pub author: Option<String>,
}

/// Task whose result is a proposal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Proposal {
    /// Task that makes the proposal.
    pub task: TaskId,
    pub kind: ProposalKind,
    /// Task that the proposal is for.
    pub subject: TaskId,
    /// Profiles that the proposal may name, each with its description.
    pub staff: BTreeMap<Profile, String>,
    /// Names that no new profile may have.
    pub taken: BTreeSet<Profile>,
}

/// Profile that a plan asks for. Tasks for the profile wait until a person has made it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ProposedProfile {
    pub name: Profile,
    /// Purpose of the profile, in one line.
    pub description: String,
    /// Text that its workers read before their tasks.
    pub prompt: String,
}
