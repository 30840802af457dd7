//! Fleet: one task for each of many directories at each tick, created once however often a tick is dispatched.

use crate::model::id::{Profile, Tick};
use crate::model::task::NewTask;

/// Prefix of the idempotency keys of fleets. No other key may have it, so that no other task passes for a task of a
/// fleet.
pub(crate) const KEYS: &str = "dispatch-fleet:";

/// Identity of a fleet: a profile that works in the directories beneath one directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FleetId {
    pub profile: Profile,
    /// Absolute path of the parent directory.
    pub root: String,
}

impl FleetId {
    /// Returns the idempotency key of a directory's task at a tick. A tick has neither `/` nor `@`, and a profile no `/`,
    /// so the keys of two tasks always differ.
    pub(crate) fn key(&self, directory: &str, tick: &Tick) -> String {
        format!("{KEYS}{}{}/{directory}@{tick}", self.profile, self.root.trim_end_matches('/'))
    }
}

/// Task of a fleet, to be created.
#[derive(Clone, Debug)]
pub struct NewFleetTask {
    pub directory: String,
    /// The task. The board sets its idempotency key from the directory and the tick.
    pub task: NewTask,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_names_profile_directory_and_tick() {
        let fleet = |root: &str| FleetId { profile: "insta".parse().unwrap(), root: root.to_owned() };
        let tick = "2026-11-23".parse().unwrap();
        let key = fleet("/srv/insta").key("acct-1", &tick);
        assert_eq!(key, "dispatch-fleet:insta/srv/insta/acct-1@2026-11-23");
        assert_eq!(fleet("/").key("a", &tick), "dispatch-fleet:insta/a@2026-11-23");
    }
}
