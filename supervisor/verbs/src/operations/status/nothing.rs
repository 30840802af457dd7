//! Reply of `status` for a root that does not exist yet.

use std::collections::BTreeMap;

use kernel::{BoardName, Clock as _, SystemClock};

use super::health::Health;
use super::{Status, StatusReport};
use base::paths::Root;

impl Status {
    /// Returns the report for a root that does not exist; none if the root exists. `status` does not create the root: only
    /// commands that write do.
    pub fn without_root(&self, root: &Root, board: &BoardName) -> Option<StatusReport> {
        root.is_nothing().then(|| StatusReport {
            health: Health::NotRunning,
            troubles: Vec::new(),
            problems: Vec::new(),
            daemon: None,
            holder: None,
            is_starting: false,
            in_its_place: None,
            root: root.dir().to_owned(),
            disk: None,
            board: board.clone(),
            tenant: self.tenant.clone(),
            assignee: self.assignee.clone(),
            board_trouble: None,
            workers: Vec::new(),
            counts: BTreeMap::new(),
            broken: Vec::new(),
            ticks: Vec::new(),
            asking: Vec::new(),
            clock_set: None,
            waiting: Vec::new(),
            waiting_more: 0,
            warnings: Vec::new(),
            now: SystemClock.now(),
        })
    }
}
