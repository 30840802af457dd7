//! Rows of the connection table: open and closing connections, and the order of eviction.

use std::collections::{BTreeSet, HashMap};
use std::time::Instant;

use tokio_util::sync::CancellationToken;

use super::account::{BURST_OF_CONNECTIONS, Bucket, FORGOTTEN};
use super::bounds::{Bound, Group};

/// State of a connection. The order is the order of eviction; busy connections are never evicted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum State {
    /// The caller is not identified yet.
    Unknown,
    /// A request was answered.
    Idle,
    /// A request of an identified caller is in progress.
    Busy,
}

/// Open and closing connections of a listener.
#[derive(Debug, Default)]
pub(super) struct Members {
    pub(super) open: HashMap<u64, Member>,
    pub(super) groups: HashMap<Group, Share>,
    /// Evicted connections that are not closed yet: their descriptors are still open.
    pub(super) leaving: HashMap<u64, Group>,
    pub(super) rates: HashMap<Group, Bucket>,
    pub(super) tidied: Option<Instant>,
}

#[derive(Debug)]
pub(super) struct Member {
    pub(super) group: Group,
    pub(super) state: State,
    pub(super) leave: CancellationToken,
}

/// Connections of one group.
#[derive(Debug, Default)]
pub(super) struct Share {
    pub(super) open: usize,
    pub(super) leaving: usize,
    /// Connections that may be evicted, in the order of eviction.
    pub(super) waiting: BTreeSet<(State, u64)>,
}

impl Members {
    /// Adds a connection of an unidentified caller. Returns a token that is cancelled on eviction.
    pub(super) fn add(&mut self, id: u64, group: Group) -> CancellationToken {
        let leave = CancellationToken::new();
        self.open.insert(id, Member { group, state: State::Unknown, leave: leave.clone() });
        let share = self.groups.entry(group).or_default();
        share.open += 1;
        share.waiting.insert((State::Unknown, id));
        leave
    }

    pub(super) fn first_of(&self, group: Group) -> Option<u64> {
        self.groups.get(&group)?.waiting.first().map(|(_, id)| *id)
    }

    /// Returns the first connection to evict in the group with the most connections; among equal groups, the oldest.
    pub(super) fn first_of_largest(&self) -> Option<u64> {
        let waiting = self.groups.values().filter_map(|share| {
            let (state, id) = share.waiting.first()?;
            Some((std::cmp::Reverse(share.open), *state, *id))
        });
        waiting.min().map(|(_, _, id)| id)
    }

    pub(super) fn may_open(&mut self, group: Group, rate: u32, now: Instant) -> bool {
        // A run's socket has a rate limit of its own. Over loopback, unidentified callers would all share one limit.
        if matches!(group, Group::Run(..) | Group::Anyone) {
            return true;
        }
        if self.tidied.is_none_or(|at| now.duration_since(at) > FORGOTTEN) {
            self.tidied = Some(now);
            self.rates.retain(|_, bucket| !bucket.is_forgotten(now));
        }
        let bucket = self.rates.entry(group).or_insert_with(|| Bucket::full(rate, BURST_OF_CONNECTIONS, now));
        let some = bucket.has_some(rate, now);
        if some {
            bucket.take();
        }
        some
    }

    pub(super) fn send_away(&mut self, id: u64) {
        let Some(member) = self.open.remove(&id) else { return };
        member.leave.cancel();
        if let Some(share) = self.groups.get_mut(&member.group) {
            share.open -= 1;
            share.leaving += 1;
            share.waiting.remove(&(member.state, id));
        }
        self.leaving.insert(id, member.group);
    }

    /// Removes a closed connection.
    pub(super) fn remove(&mut self, id: u64) {
        let group = if let Some(member) = self.open.remove(&id) {
            if let Some(share) = self.groups.get_mut(&member.group) {
                share.open -= 1;
                share.waiting.remove(&(member.state, id));
            }
            member.group
        } else if let Some(group) = self.leaving.remove(&id) {
            if let Some(share) = self.groups.get_mut(&group) {
                share.leaving -= 1;
            }
            group
        } else {
            return;
        };
        if self.groups.get(&group).is_some_and(|share| share.open + share.leaving == 0) {
            self.groups.remove(&group);
        }
    }

    /// Moves a connection to the group of its run; if the run has too many, another of its connections is evicted.
    pub(super) fn join(&mut self, id: u64, group: Group, most: usize) -> Result<(), Bound> {
        let Some(member) = self.open.get(&id) else { return Ok(()) };
        let (former, state) = (member.group, member.state);
        // A worker with a uid of its own stays in the group of that uid, which no other run has.
        if former == group || matches!(former, Group::User(_)) {
            return Ok(());
        }
        if self.groups.get(&group).is_some_and(|share| share.open >= most) {
            let first = self.first_of(group).ok_or(Bound::Each(most))?;
            self.send_away(first);
        }
        if let Some(share) = self.groups.get_mut(&former) {
            share.open -= 1;
            share.waiting.remove(&(state, id));
            if share.open + share.leaving == 0 {
                self.groups.remove(&former);
            }
        }
        let share = self.groups.entry(group).or_default();
        share.open += 1;
        if state != State::Busy {
            share.waiting.insert((state, id));
        }
        if let Some(member) = self.open.get_mut(&id) {
            member.group = group;
        }
        Ok(())
    }

    pub(super) fn become_(&mut self, id: u64, state: State) {
        // An evicted connection is no longer listed.
        let Some(member) = self.open.get_mut(&id) else { return };
        let Some(share) = self.groups.get_mut(&member.group) else { return };
        share.waiting.remove(&(member.state, id));
        member.state = state;
        if state != State::Busy {
            share.waiting.insert((state, id));
        }
    }
}
