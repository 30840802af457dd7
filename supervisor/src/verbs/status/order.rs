//! In which order `status` lists the live workers.

use std::cmp::Reverse;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::WorkerLine;

/// The order of the live workers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Order {
    /// Those that run longest first.
    Age,
    /// Those with the nearest deadline first.
    Left,
    /// Those that have used the most processor time first.
    Cpu,
    /// Those with the most memory first.
    Memory,
    /// Those that have shown no sign of life for the longest time first.
    Beat,
    /// By assignee.
    Assignee,
    /// By title.
    Title,
}

/// Sorts workers. Those that are alike stay in their order, the oldest first.
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
