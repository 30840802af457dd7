//! Pool claim of a run: the lane and the pools that it occupies, in addition to a slot.

use std::collections::BTreeSet;

use kernel::{Pool, Profile};
use serde::{Deserialize, Serialize};

/// Pool claim of each run of an assignee, in addition to a slot. A run keeps its claim while it lives, even if
/// the configuration changes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PoolClaim {
    /// Lane; none if the assignee is unknown.
    pub lane: Option<Profile>,
    /// Pools in which the run takes a place.
    #[serde(default)]
    pub pools: BTreeSet<Pool>,
    /// Pools among them that only the task names.
    #[serde(skip)]
    pub of_task: BTreeSet<Pool>,
    /// Limit on concurrent runs of the assignee, by the profile's file.
    #[serde(skip)]
    pub most_of_profile: Option<usize>,
    /// Limit on concurrent runs of the lane, by the lane's file.
    #[serde(skip)]
    pub most_of_lane: Option<usize>,
}

impl PoolClaim {
    /// Adds the pools that a task itself names.
    #[must_use]
    pub fn with(mut self, pools: &BTreeSet<Pool>) -> Self {
        self.of_task = pools.difference(&self.pools).cloned().collect();
        self.pools.extend(self.of_task.iter().cloned());
        self
    }
}
