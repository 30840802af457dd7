//! Connection table of a listener: admits connections, and evicts one when another needs its place.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use kernel::{BoardId, RunId};
use tokio::sync::Notify;
use tokio::sync::futures::Notified;
use tokio_util::sync::CancellationToken;

use super::connection_limits::{ConnectionGroup, ConnectionLimit, ConnectionLimits};
use super::connections::{ConnectionState, Connections};

/// Open connections of a listener.
#[derive(Debug, Default)]
pub(super) struct ConnectionTable {
    connections: Mutex<Connections>,
    next: AtomicU64,
    /// Notified when a connection has ended, or may be evicted again.
    freed: Notify,
}

/// Result of an admission.
#[derive(Debug)]
pub(super) enum Admitted {
    /// Admitted; another connection may have been evicted for it.
    In(ConnectionPermit, Option<ConnectionLimit>),
    /// Refused.
    Full(ConnectionLimit),
}

impl ConnectionTable {
    /// Waits, from this call on, until a connection has ended or may be evicted.
    pub(super) fn freed(&self) -> Notified<'_> {
        self.freed.notified()
    }

    /// Admits a connection. A refusal costs next to nothing, so connections beyond the limits are refused.
    pub(super) fn admit(
        self: &Arc<Self>,
        group: ConnectionGroup,
        bounds: ConnectionLimits,
        now: Instant,
    ) -> Admitted {
        let mut connections = self.lock();
        if !connections.may_open(group, bounds.rate, now) {
            return Admitted::Full(ConnectionLimit::Rate(bounds.rate));
        }
        let row = connections.groups.get(&group);
        let (open, leaving) = row.map_or((0, 0), |row| (row.open, row.leaving));
        // At most as many connections may be closing as may be open.
        if leaving >= bounds.each {
            return Admitted::Full(ConnectionLimit::Each(bounds.each));
        }
        if connections.leaving.len() >= bounds.all {
            return Admitted::Full(ConnectionLimit::All(bounds.all));
        }
        let met = if open >= bounds.each {
            Some((ConnectionLimit::Each(bounds.each), connections.first_of(group)))
        } else if connections.open.len() >= bounds.all {
            Some((ConnectionLimit::All(bounds.all), connections.first_of_largest()))
        } else {
            None
        };
        let bound = match met {
            None => None,
            Some((bound, Some(id))) => {
                connections.evict(id);
                Some(bound)
            }
            Some((bound, None)) => return Admitted::Full(bound),
        };
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        let leave = connections.add(id, group);
        drop(connections);
        Admitted::In(
            ConnectionPermit {
                entry: Arc::new(TableEntry { table: Arc::clone(self), id, run_limit: bounds.run }),
                leave,
            },
            bound,
        )
    }

    fn lock(&self) -> MutexGuard<'_, Connections> {
        self.connections.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A connection's entry in the table, removed when it is dropped.
#[derive(Clone, Debug)]
pub(crate) struct ConnectionPermit {
    entry: Arc<TableEntry>,
    leave: CancellationToken,
}

#[derive(Debug)]
struct TableEntry {
    table: Arc<ConnectionTable>,
    id: u64,
    /// Limit on the connections of its run.
    run_limit: usize,
}

impl Drop for TableEntry {
    fn drop(&mut self) {
        self.table.lock().remove(self.id);
        self.table.freed.notify_waiters();
    }
}

impl ConnectionPermit {
    /// Waits until the connection is evicted.
    pub(super) async fn evicted(&self) {
        self.leave.cancelled().await;
    }

    /// True while a request of an identified caller is in progress.
    pub(super) fn is_busy(&self) -> bool {
        self.entry
            .table
            .lock()
            .open
            .get(&self.entry.id)
            .is_some_and(|connection| connection.state == ConnectionState::Busy)
    }

    /// Returns the run of the connection, if known.
    pub(super) fn run(&self) -> Option<(BoardId, RunId)> {
        match self.entry.table.lock().open.get(&self.entry.id)?.group {
            ConnectionGroup::Run(board, run) => Some((board, run)),
            ConnectionGroup::User(_) | ConnectionGroup::Process(_) | ConnectionGroup::Anyone => None,
        }
    }

    /// Marks a request of an identified caller as in progress, until the return value is dropped. From now on the
    /// connection counts for the caller's run.
    ///
    /// # Errors
    /// The limit of the run, if each of its connections has a request in progress.
    pub(crate) fn busy(&self, run: Option<(BoardId, RunId)>) -> Result<Busy, ConnectionLimit> {
        let mut connections = self.entry.table.lock();
        if let Some((board, run)) = run {
            connections.join(self.entry.id, ConnectionGroup::Run(board, run), self.entry.run_limit)?;
        }
        connections.set_state(self.entry.id, ConnectionState::Busy);
        drop(connections);
        Ok(Busy(Arc::clone(&self.entry)))
    }
}

/// Mark of a request in progress.
#[derive(Debug)]
pub(crate) struct Busy(Arc<TableEntry>);

impl Drop for Busy {
    fn drop(&mut self) {
        self.0.table.lock().set_state(self.0.id, ConnectionState::Idle);
        self.0.table.freed.notify_waiters();
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    const BOUNDS: ConnectionLimits = ConnectionLimits { all: 6, each: 4, run: 2, rate: 100 };

    fn enter(table: &Arc<ConnectionTable>, group: ConnectionGroup) -> Admitted {
        table.admit(group, BOUNDS, Instant::now())
    }

    fn come(table: &Arc<ConnectionTable>, group: ConnectionGroup) -> ConnectionPermit {
        match enter(table, group) {
            Admitted::In(permit, _) => permit,
            Admitted::Full(bound) => panic!("{bound}"),
        }
    }

    fn ask(permit: &ConnectionPermit) -> Busy {
        permit.busy(None).unwrap()
    }

    fn run(number: i64) -> (BoardId, RunId) {
        (BoardId(uuid::Uuid::nil()), RunId(number))
    }

    fn gone(permits: &[ConnectionPermit]) -> Vec<usize> {
        (0..permits.len()).filter(|at| permits[*at].leave.is_cancelled()).collect()
    }

    #[test]
    fn within_a_group_the_oldest_that_is_not_known_gives_way() {
        let table = Arc::new(ConnectionTable::default());
        let mut permits: Vec<ConnectionPermit> =
            (0..4).map(|_| come(&table, ConnectionGroup::User(7))).collect();
        let busy = ask(&permits[0]);
        drop(ask(&permits[1]));
        permits.push(come(&table, ConnectionGroup::User(7)));
        assert_eq!(gone(&permits), [2], "0 is busy and 1 is known");
        permits.push(come(&table, ConnectionGroup::User(7)));
        permits.push(come(&table, ConnectionGroup::User(7)));
        assert_eq!(gone(&permits), [2, 3, 4]);
        drop(busy);
    }

    #[test]
    fn who_is_busy_never_gives_way_and_then_the_door_is_full() {
        let table = Arc::new(ConnectionTable::default());
        let permits: Vec<ConnectionPermit> = (0..4).map(|_| come(&table, ConnectionGroup::User(7))).collect();
        let busy: Vec<Busy> = permits.iter().map(ask).collect();
        let full = enter(&table, ConnectionGroup::User(7));
        assert!(matches!(full, Admitted::Full(ConnectionLimit::Each(4))), "{full:?}");
        assert!(gone(&permits).is_empty());
        drop(busy);
    }

    #[test]
    fn who_has_shown_its_token_is_counted_with_its_run_and_not_with_those_of_whom_nothing_is_known() {
        let table = Arc::new(ConnectionTable::default());
        let permits: Vec<ConnectionPermit> = (0..3).map(|_| come(&table, ConnectionGroup::Anyone)).collect();
        let first = permits[0].busy(Some(run(1))).unwrap();
        let second = permits[1].busy(Some(run(1))).unwrap();
        let third = permits[2].busy(Some(run(1))).map(drop);
        assert_eq!(third, Err(ConnectionLimit::Each(2)), "each has a request under way");
        drop(first);
        permits[2].busy(Some(run(1))).map(drop).unwrap();
        assert_eq!(gone(&permits), [0], "the one that asked nothing gives way");
        let neighbour = come(&table, ConnectionGroup::Process(8));
        neighbour.busy(Some(run(2))).map(drop).unwrap();
        let unknown: Vec<ConnectionPermit> = (0..3).map(|_| come(&table, ConnectionGroup::Anyone)).collect();
        assert!(gone(&[neighbour]).is_empty() && gone(&unknown).is_empty());
        drop((second, permits, unknown));
        let connections = table.lock();
        assert!(connections.open.is_empty() && connections.groups.is_empty());
    }

    #[test]
    fn a_full_door_makes_room_where_the_most_connections_are() {
        let table = Arc::new(ConnectionTable::default());
        let honest = come(&table, ConnectionGroup::User(1));
        let many: Vec<ConnectionPermit> = (0..4).map(|_| come(&table, ConnectionGroup::User(7))).collect();
        let other = come(&table, ConnectionGroup::User(2));
        let newcomer = come(&table, ConnectionGroup::User(3));
        assert_eq!(gone(&many), [0]);
        assert!(gone(&[honest, other, newcomer]).is_empty());
    }

    #[test]
    fn those_that_have_not_left_yet_are_bounded_too() {
        let table = Arc::new(ConnectionTable::default());
        let permits: Vec<ConnectionPermit> = (0..8).map(|_| come(&table, ConnectionGroup::User(7))).collect();
        assert_eq!(gone(&permits), [0, 1, 2, 3]);
        let full = enter(&table, ConnectionGroup::User(7));
        assert!(matches!(full, Admitted::Full(ConnectionLimit::Each(4))), "{full:?}");
        drop(permits);
        come(&table, ConnectionGroup::User(7));
    }

    #[test]
    fn who_opens_too_many_in_a_second_is_refused_and_nobody_else_is() {
        let table = Arc::new(ConnectionTable::default());
        let now = Instant::now();
        let opened = |group, now| {
            (0..5000).filter(|_| matches!(table.admit(group, BOUNDS, now), Admitted::In(..))).count()
        };
        assert_eq!(opened(ConnectionGroup::User(7), now), 200, "a burst");
        assert_eq!(opened(ConnectionGroup::User(7), now + Duration::from_secs(1)), 100);
        assert_eq!(opened(ConnectionGroup::User(8), now), 200);
    }

    #[test]
    fn an_entry_is_free_once_its_connection_has_ended() {
        let table = Arc::new(ConnectionTable::default());
        for _ in 0..100 {
            let permit = come(&table, ConnectionGroup::Anyone);
            let busy = ask(&permit);
            drop(permit);
            drop(busy);
        }
        let connections = table.lock();
        assert!(connections.open.is_empty() && connections.groups.is_empty());
    }
}
