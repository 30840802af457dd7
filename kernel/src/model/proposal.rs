//! Proposals: tasks whose results change another task, or make tasks for it, once they are found valid.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::model::id::{Profile, TaskId};
use crate::model::words::words;

words! {
    /// What a proposal is about.
    "kind of proposal"
    ProposalKind {
        /// What a task in triage is to say.
        Specify => "specify",
        /// The tasks into which one in triage is divided.
        Decompose => "decompose",
        /// The tasks of a mission.
        Plan => "plan",
        /// The assignee of a task that has none.
        Route => "route",
        /// Whether a mission goes on as it is planned.
        Progress => "progress",
    }
}

words! {
    /// What a review of a mission's progress answers.
    "answer of a review"
    ReviewAnswer {
        /// It goes on as it is.
        Continue => "continue",
        /// Other tasks lead to its goal.
        Replan => "replan",
        /// A person decides whether it goes on at all.
        Stop => "stop",
    }
}

/// When the progress of missions is reviewed; never where both are none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReviewTerms {
    /// After this number of moves of its tasks.
    pub moves: Option<u64>,
    /// When none has moved for this time.
    pub idle: Option<Duration>,
}

/// A task that is to be made for a proposal.
#[derive(Clone, Debug)]
pub struct NewProposal {
    /// What it is about.
    pub kind: ProposalKind,
    /// The task that it is for.
    pub subject: TaskId,
    /// The profile that makes it.
    pub assignee: Profile,
    /// The profiles that it may name, each with what it is for.
    pub staff: BTreeMap<Profile, String>,
    /// The names of all profiles and lanes that there are: no new profile may be proposed under one of them.
    pub taken: BTreeSet<Profile>,
    /// The policy of its runs; the profile's when absent.
    pub policy: Option<String>,
    /// Who asks for it; the actor when absent.
    pub author: Option<String>,
}

/// A task whose result is a proposal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Proposal {
    /// The task that makes it.
    pub task: TaskId,
    /// What it is about.
    pub kind: ProposalKind,
    /// The task that it is for.
    pub subject: TaskId,
    /// The profiles that it may name, each with what it is for.
    pub staff: BTreeMap<Profile, String>,
    /// The names that no new profile may have.
    pub taken: BTreeSet<Profile>,
}

/// A profile that a plan asks for. Its tasks wait until a person has made it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ProposedProfile {
    /// Its name.
    pub name: Profile,
    /// What it is for, in one line.
    pub description: String,
    /// What its workers read before their tasks.
    pub prompt: String,
}
