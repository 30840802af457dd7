//! What each run of an assignee takes of what is limited, beside a slot.

use std::collections::BTreeSet;

use kernel::{Pool, Profile};
use serde::{Deserialize, Serialize};

/// What each run of an assignee takes of what is limited, beside a slot. Kept with a run: it has these as long as it lives, whatever is
/// configured meanwhile.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Share {
    /// Its lane; none where nothing is known of its assignee.
    pub(crate) lane: Option<Profile>,
    /// The pools of which it has a place.
    #[serde(default)]
    pub(crate) pools: BTreeSet<Pool>,
    /// Those of them that its task alone names.
    #[serde(skip)]
    pub(crate) of_task: BTreeSet<Pool>,
    /// How many runs of the assignee there may be at once by the file of its profile.
    #[serde(skip)]
    pub(crate) most_of_profile: Option<usize>,
    /// How many runs of the lane there may be at once by its file.
    #[serde(skip)]
    pub(crate) most_of_lane: Option<usize>,
}

impl Share {
    /// The same for the run of a task that names pools itself.
    pub(crate) fn with(mut self, pools: &BTreeSet<Pool>) -> Self {
        self.of_task = pools.difference(&self.pools).cloned().collect();
        self.pools.extend(self.of_task.iter().cloned());
        self
    }
}
