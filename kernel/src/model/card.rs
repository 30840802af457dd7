//! What a board shows of a task beside the task itself.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What is counted of a task for its card. Each number stops at [`super::limits::COUNTED`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CardCounts {
    /// Its comments.
    pub comments: u64,
    /// Its links: to parents and to children.
    pub links: u64,
    /// Its children.
    pub children: ChildCounts,
    /// What the agents of its latest runs say that they have cost, live ones too, in millionths of a US dollar.
    pub cost_usd_micros: u64,
}

/// The children of a task.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ChildCounts {
    /// Those that are done.
    pub done: u64,
    /// All of them.
    pub total: u64,
}
