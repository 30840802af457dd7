//! Swarms: parallel workers, a verifier after them, a synthesizer after the verifier, and a shared blackboard.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::model::id::{Profile, TaskId, Tenant};

/// Prefix of a comment that is an entry of a swarm's blackboard; `{"key": …, "value": …}` follows.
pub(crate) const BLACKBOARD: &str = "[swarm:blackboard] ";

/// Request for a swarm: workers for one goal, a verifier and a synthesizer.
#[derive(Clone, Debug)]
pub struct NewSwarm {
    /// Goal of the whole swarm.
    pub goal: String,
    /// Workers, which run in parallel.
    pub workers: Vec<SwarmWorker>,
    /// Profile that checks their work.
    pub verifier: Profile,
    /// Profile that joins their work into one result.
    pub synthesizer: Profile,
    /// Tenant of all tasks.
    pub tenant: Option<Tenant>,
    /// Priority of all tasks.
    pub priority: i64,
    /// Name of the creator of the tasks; none means the actor.
    pub created_by: Option<String>,
    /// Idempotency key: the same key always names the same swarm.
    pub idempotency_key: Option<String>,
    /// Channel to subscribe to the tasks, in the form of [`crate::Origin`].
    pub channel: Option<String>,
}

/// Worker of a swarm. Its task is a parent of the verifier's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SwarmWorker {
    /// Assignee of the task.
    pub profile: Profile,
    /// Title of the worker's part; none means the goal.
    pub title: Option<String>,
    /// Skills that the worker should have.
    pub skills: Vec<String>,
}

/// Ids of the tasks of a swarm.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Swarm {
    /// Task of the blackboard, done from the start.
    pub root_id: TaskId,
    /// Tasks of the workers, in the given order.
    pub worker_ids: Vec<TaskId>,
    /// Task of the verifier, which waits for all workers.
    pub verifier_id: TaskId,
    /// Task of the synthesizer, which waits for the verifier.
    pub synthesizer_id: TaskId,
}
