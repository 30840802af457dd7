//! The order in which `status` lists the live workers.

use std::cmp::Reverse;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::WorkerLine;

/// The order of the live workers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Order {
    /// Longest running first.
    Age,
    /// Nearest deadline first.
    Left,
    /// Most processor time first.
    Cpu,
    /// Most memory first.
    Memory,
    /// Longest without a sign of life first.
    Beat,
    Assignee,
    Title,
}

/// Sorts workers. Equal workers stay in their order, the oldest first.
pub(super) fn sort(workers: &mut [WorkerLine], order: Order) {
    let used = |worker: &WorkerLine| worker.usage.unwrap_or_default();
    match order {
        Order::Age => workers.sort_by_key(|worker| worker.run.started_at),
        Order::Left => workers.sort_by_key(|worker| worker.left_seconds.unwrap_or(u64::MAX)),
        Order::Cpu => workers.sort_by_key(|worker| Reverse(used(worker).cpu_us)),
        Order::Memory => workers.sort_by_key(|worker| Reverse(used(worker).memory_bytes)),
        Order::Beat => {
            workers.sort_by_key(|worker| worker.run.last_heartbeat_at.unwrap_or(worker.run.started_at));
        }
        Order::Assignee => workers.sort_by_key(|worker| worker.run.profile.as_ref().map(ToString::to_string)),
        Order::Title => workers.sort_by_key(|worker| worker.run.title.to_lowercase()),
    }
}
