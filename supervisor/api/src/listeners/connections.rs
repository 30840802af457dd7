//! Rows of the connection table: open and closing connections, and the order of eviction.

use std::collections::{BTreeSet, HashMap};
use std::time::Instant;

use tokio_util::sync::CancellationToken;

use super::connection_limits::{ConnectionGroup, ConnectionLimit};
use super::usage::{BURST_OF_CONNECTIONS, Bucket, FORGOTTEN};

/// State of a connection. The order is the order of eviction; busy connections are never evicted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum ConnectionState {
    /// The caller is not identified yet.
    Unknown,
    /// A request was answered.
    Idle,
    /// A request of an identified caller is in progress.
    Busy,
}

/// Open and closing connections of a listener.
#[derive(Debug, Default)]
pub(super) struct Connections {
    pub(super) open: HashMap<u64, Connection>,
    pub(super) groups: HashMap<ConnectionGroup, GroupConnections>,
    /// Evicted connections that are not closed yet: their descriptors are still open.
    pub(super) leaving: HashMap<u64, ConnectionGroup>,
    pub(super) rates: HashMap<ConnectionGroup, Bucket>,
    pub(super) tidied: Option<Instant>,
}

#[derive(Debug)]
pub(super) struct Connection {
    pub(super) group: ConnectionGroup,
    pub(super) state: ConnectionState,
    pub(super) leave: CancellationToken,
}

/// Connections of one group: of a user, a process or a run.
#[derive(Debug, Default)]
pub(super) struct GroupConnections {
    pub(super) open: usize,
    pub(super) leaving: usize,
    /// Connections that may be evicted, in the order of eviction.
    pub(super) waiting: BTreeSet<(ConnectionState, u64)>,
}

impl Connections {
    /// Adds a connection of an unidentified caller. Returns a token that is cancelled on eviction.
    pub(super) fn add(&mut self, id: u64, group: ConnectionGroup) -> CancellationToken {
        let leave = CancellationToken::new();
        self.open.insert(id, Connection { group, state: ConnectionState::Unknown, leave: leave.clone() });
        let row = self.groups.entry(group).or_default();
        row.open += 1;
        row.waiting.insert((ConnectionState::Unknown, id));
        leave
    }

    pub(super) fn first_of(&self, group: ConnectionGroup) -> Option<u64> {
        self.groups.get(&group)?.waiting.first().map(|(_, id)| *id)
    }

    /// Returns the first connection to evict in the group with the most connections; among equal groups, the oldest.
    pub(super) fn first_of_largest(&self) -> Option<u64> {
        let waiting = self.groups.values().filter_map(|row| {
            let (state, id) = row.waiting.first()?;
            Some((std::cmp::Reverse(row.open), *state, *id))
        });
        waiting.min().map(|(_, _, id)| id)
    }

    pub(super) fn may_open(&mut self, group: ConnectionGroup, rate: u32, now: Instant) -> bool {
        // A run's socket has a rate limit of its own. Over loopback, unidentified callers would all row one limit.
        if matches!(group, ConnectionGroup::Run(..) | ConnectionGroup::Anyone) {
            return true;
        }
        if self.tidied.is_none_or(|at| now.duration_since(at) > FORGOTTEN) {
            self.tidied = Some(now);
            self.rates.retain(|_, bucket| !bucket.is_forgotten(now));
        }
        let bucket = self.rates.entry(group).or_insert_with(|| Bucket::full(rate, BURST_OF_CONNECTIONS, now));
        bucket.try_take(rate, now)
    }

    pub(super) fn evict(&mut self, id: u64) {
        let Some(connection) = self.open.remove(&id) else { return };
        connection.leave.cancel();
        if let Some(row) = self.groups.get_mut(&connection.group) {
            row.open -= 1;
            row.leaving += 1;
            row.waiting.remove(&(connection.state, id));
        }
        self.leaving.insert(id, connection.group);
    }

    /// Removes a closed connection.
    pub(super) fn remove(&mut self, id: u64) {
        let group = if let Some(connection) = self.open.remove(&id) {
            if let Some(row) = self.groups.get_mut(&connection.group) {
                row.open -= 1;
                row.waiting.remove(&(connection.state, id));
            }
            connection.group
        } else if let Some(group) = self.leaving.remove(&id) {
            if let Some(row) = self.groups.get_mut(&group) {
                row.leaving -= 1;
            }
            group
        } else {
            return;
        };
        if self.groups.get(&group).is_some_and(|row| row.open + row.leaving == 0) {
            self.groups.remove(&group);
        }
    }

    /// Moves a connection to the group of its run; if the run has too many, another of its connections is evicted.
    pub(super) fn join(
        &mut self,
        id: u64,
        group: ConnectionGroup,
        most: usize,
    ) -> Result<(), ConnectionLimit> {
        let Some(connection) = self.open.get(&id) else { return Ok(()) };
        let (former, state) = (connection.group, connection.state);
        // A worker with a uid of its own stays in the group of that uid, which no other run has.
        if former == group || matches!(former, ConnectionGroup::User(_)) {
            return Ok(());
        }
        if self.groups.get(&group).is_some_and(|row| row.open >= most) {
            let first = self.first_of(group).ok_or(ConnectionLimit::Each(most))?;
            self.evict(first);
        }
        if let Some(row) = self.groups.get_mut(&former) {
            row.open -= 1;
            row.waiting.remove(&(state, id));
            if row.open + row.leaving == 0 {
                self.groups.remove(&former);
            }
        }
        let row = self.groups.entry(group).or_default();
        row.open += 1;
        if state != ConnectionState::Busy {
            row.waiting.insert((state, id));
        }
        if let Some(connection) = self.open.get_mut(&id) {
            connection.group = group;
        }
        Ok(())
    }

    pub(super) fn set_state(&mut self, id: u64, state: ConnectionState) {
        // An evicted connection is no longer listed.
        let Some(connection) = self.open.get_mut(&id) else { return };
        let Some(row) = self.groups.get_mut(&connection.group) else { return };
        row.waiting.remove(&(connection.state, id));
        connection.state = state;
        if state != ConnectionState::Busy {
            row.waiting.insert((state, id));
        }
    }
}
