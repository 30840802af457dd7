//! A fleet: one task for each of many directories at each tick, made once however often a tick is dispatched.

use crate::model::id::{Profile, Tick};
use crate::model::task::NewTask;

/// How the idempotency keys of fleets begin. Nothing else may use it, so that no other task stands for one of a fleet.
pub(crate) const KEYS: &str = "dispatch-fleet:";

/// Which fleet it is: a profile at work in the directories beneath one directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FleetId {
    /// Who works.
    pub profile: Profile,
    /// The absolute path above the directories.
    pub root: String,
}

impl FleetId {
    /// The idempotency key of a directory's task at a tick. A tick has neither `/` nor `@`, and a profile no `/`, so no two of them
    /// have the same key.
    pub(crate) fn key(&self, directory: &str, tick: &Tick) -> String {
        format!("{KEYS}{}{}/{directory}@{tick}", self.profile, self.root.trim_end_matches('/'))
    }
}

/// A task of a fleet that is to be made.
#[derive(Clone, Debug)]
pub struct NewFleetTask {
    /// The name of its directory.
    pub directory: String,
    /// The task. It gets the idempotency key of its directory at the tick.
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
