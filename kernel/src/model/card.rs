//! Figures that a board shows on a task's card.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Figures for a task's card. Each number stops at [`super::limits::COUNTED`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CardCounts {
    pub comments: u64,
    /// Number of links to parents and to children.
    pub links: u64,
    /// Children, done and in total.
    pub children: ChildCounts,
    /// Cost that the agents of the latest runs report, live runs included, in millionths of a US dollar.
    pub cost_usd_micros: u64,
}

/// Number of the children of a task, done and in total.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ChildCounts {
    /// Number of children that are done.
    pub done: u64,
    /// Number of all children.
    pub total: u64,
}
