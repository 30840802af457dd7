//! A swarm: workers side by side, a verifier behind them, a synthesizer behind that, around one shared blackboard.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::model::id::{Profile, TaskId, Tenant};

/// How a comment begins that is an entry of a swarm's blackboard; `{"key": …, "value": …}` follows.
pub(crate) const BLACKBOARD: &str = "[swarm:blackboard] ";

/// What a new swarm is made of.
#[derive(Clone, Debug)]
pub struct NewSwarm {
    /// What all of it is for.
    pub goal: String,
    /// Who works, side by side.
    pub workers: Vec<SwarmWorker>,
    /// The profile that checks their work.
    pub verifier: Profile,
    /// Who makes one result of it.
    pub synthesizer: Profile,
    /// The namespace of all its tasks.
    pub tenant: Option<Tenant>,
    /// The priority of all its tasks.
    pub priority: i64,
    /// Who asked for it; the actor when absent.
    pub created_by: Option<String>,
    /// The same key always names the same swarm.
    pub idempotency_key: Option<String>,
    /// The channel that is subscribed to its tasks, as [`crate::Origin`] has it.
    pub channel: Option<String>,
}

/// A worker of a swarm: its task is a prerequisite of the verifier's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SwarmWorker {
    /// The assignee of its task.
    pub profile: Profile,
    /// Its part; the goal where none is named.
    pub title: Option<String>,
    /// The skills it should have.
    pub skills: Vec<String>,
}

/// The tasks of a swarm.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Swarm {
    /// The blackboard: done from the start.
    pub root_id: TaskId,
    /// The workers' tasks, in the order given.
    pub worker_ids: Vec<TaskId>,
    /// The verifier's task: waits for all workers.
    pub verifier_id: TaskId,
    /// The synthesizer's task: waits for the verifier.
    pub synthesizer_id: TaskId,
}
