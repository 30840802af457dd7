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
    /// The tasks that wait for it, and how many of them are done.
    pub children: ChildCounts,
    /// What the agents of its latest runs say that they have cost, live ones too, in millionths of a US dollar.
    pub cost_usd_micros: u64,
}

/// How many tasks wait for a task, of which it is a parent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ChildCounts {
    /// The children that are done.
    pub done: u64,
    /// All children, those that are done included.
    pub total: u64,
}
