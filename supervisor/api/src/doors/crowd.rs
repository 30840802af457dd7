//! Connection table of a listener: admits connections, and evicts one when another needs its place.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use kernel::{BoardId, RunId};
use tokio::sync::Notify;
use tokio::sync::futures::Notified;
use tokio_util::sync::CancellationToken;

use super::bounds::{Bound, Bounds, Group};
use super::members::{Members, State};

/// Open connections of a listener.
#[derive(Debug, Default)]
pub(super) struct Crowd {
    members: Mutex<Members>,
    next: AtomicU64,
    /// Notified when a connection has ended, or may be evicted again.
    left: Notify,
}

/// Result of an admission.
#[derive(Debug)]
pub(super) enum Entry {
    /// Admitted; another connection may have been evicted for it.
    In(Seat, Option<Bound>),
    /// Refused.
    Full(Bound),
}

impl Crowd {
    /// Waits, from this call on, until a connection has ended or may be evicted.
    pub(super) fn left(&self) -> Notified<'_> {
        self.left.notified()
    }

    /// Admits a connection. A refusal costs next to nothing, so connections beyond the limits are refused.
    pub(super) fn enter(self: &Arc<Self>, group: Group, bounds: Bounds, now: Instant) -> Entry {
        let mut members = self.lock();
        if !members.may_open(group, bounds.rate, now) {
            return Entry::Full(Bound::Rate(bounds.rate));
        }
        let share = members.groups.get(&group);
        let (open, leaving) = share.map_or((0, 0), |share| (share.open, share.leaving));
        // At most as many connections may be closing as may be open.
        if leaving >= bounds.each {
            return Entry::Full(Bound::Each(bounds.each));
        }
        if members.leaving.len() >= bounds.all {
            return Entry::Full(Bound::All(bounds.all));
        }
        let met = if open >= bounds.each {
            Some((Bound::Each(bounds.each), members.first_of(group)))
        } else if members.open.len() >= bounds.all {
            Some((Bound::All(bounds.all), members.first_of_largest()))
        } else {
            None
        };
        let bound = match met {
            None => None,
            Some((bound, Some(id))) => {
                members.send_away(id);
                Some(bound)
            }
            Some((bound, None)) => return Entry::Full(bound),
        };
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        let leave = members.add(id, group);
        drop(members);
        Entry::In(
            Seat { place: Arc::new(Place { crowd: Arc::clone(self), id, most: bounds.run }), leave },
            bound,
        )
    }

    fn lock(&self) -> MutexGuard<'_, Members> {
        self.members.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A connection's entry in the table, removed when it is dropped.
#[derive(Clone, Debug)]
pub(crate) struct Seat {
    place: Arc<Place>,
    leave: CancellationToken,
}

#[derive(Debug)]
struct Place {
    crowd: Arc<Crowd>,
    id: u64,
    /// Limit on the connections of its run.
    most: usize,
}

impl Drop for Place {
    fn drop(&mut self) {
        self.crowd.lock().remove(self.id);
        self.crowd.left.notify_waiters();
    }
}

impl Seat {
    /// Waits until the connection is evicted.
    pub(super) async fn told_to_leave(&self) {
        self.leave.cancelled().await;
    }

    /// Returns true while a request of an identified caller is in progress.
    pub(super) fn is_busy(&self) -> bool {
        self.place.crowd.lock().open.get(&self.place.id).is_some_and(|member| member.state == State::Busy)
    }

    /// Returns the run of the connection, if known.
    pub(super) fn run(&self) -> Option<(BoardId, RunId)> {
        match self.place.crowd.lock().open.get(&self.place.id)?.group {
            Group::Run(board, run) => Some((board, run)),
            Group::User(_) | Group::Process(_) | Group::Anyone => None,
        }
    }

    /// Marks a request of an identified caller as in progress, until the return value is dropped. From now on the
    /// connection counts for the caller's run.
    ///
    /// # Errors
    /// The limit of the run, if each of its connections has a request in progress.
    pub(crate) fn busy(&self, run: Option<(BoardId, RunId)>) -> Result<Busy, Bound> {
        let mut members = self.place.crowd.lock();
        if let Some((board, run)) = run {
            members.join(self.place.id, Group::Run(board, run), self.place.most)?;
        }
        members.become_(self.place.id, State::Busy);
        drop(members);
        Ok(Busy(Arc::clone(&self.place)))
    }
}

/// Mark of a request in progress.
#[derive(Debug)]
pub(crate) struct Busy(Arc<Place>);

impl Drop for Busy {
    fn drop(&mut self) {
        self.0.crowd.lock().become_(self.0.id, State::Idle);
        self.0.crowd.left.notify_waiters();
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    const BOUNDS: Bounds = Bounds { all: 6, each: 4, run: 2, rate: 100 };

    fn enter(crowd: &Arc<Crowd>, group: Group) -> Entry {
        crowd.enter(group, BOUNDS, Instant::now())
    }

    fn come(crowd: &Arc<Crowd>, group: Group) -> Seat {
        match enter(crowd, group) {
            Entry::In(seat, _) => seat,
            Entry::Full(bound) => panic!("{bound}"),
        }
    }

    fn ask(seat: &Seat) -> Busy {
        seat.busy(None).unwrap()
    }

    fn run(number: i64) -> (BoardId, RunId) {
        (BoardId(uuid::Uuid::nil()), RunId(number))
    }

    fn gone(seats: &[Seat]) -> Vec<usize> {
        (0..seats.len()).filter(|at| seats[*at].leave.is_cancelled()).collect()
    }

    #[test]
    fn within_a_group_the_oldest_that_is_not_known_gives_way() {
        let crowd = Arc::new(Crowd::default());
        let mut seats: Vec<Seat> = (0..4).map(|_| come(&crowd, Group::User(7))).collect();
        let busy = ask(&seats[0]);
        drop(ask(&seats[1]));
        seats.push(come(&crowd, Group::User(7)));
        assert_eq!(gone(&seats), [2], "0 is busy and 1 is known");
        seats.push(come(&crowd, Group::User(7)));
        seats.push(come(&crowd, Group::User(7)));
        assert_eq!(gone(&seats), [2, 3, 4]);
        drop(busy);
    }

    #[test]
    fn who_is_busy_never_gives_way_and_then_the_door_is_full() {
        let crowd = Arc::new(Crowd::default());
        let seats: Vec<Seat> = (0..4).map(|_| come(&crowd, Group::User(7))).collect();
        let busy: Vec<Busy> = seats.iter().map(ask).collect();
        let full = enter(&crowd, Group::User(7));
        assert!(matches!(full, Entry::Full(Bound::Each(4))), "{full:?}");
        assert!(gone(&seats).is_empty());
        drop(busy);
    }

    #[test]
    fn who_has_shown_its_token_is_counted_with_its_run_and_not_with_those_of_whom_nothing_is_known() {
        let crowd = Arc::new(Crowd::default());
        let seats: Vec<Seat> = (0..3).map(|_| come(&crowd, Group::Anyone)).collect();
        let first = seats[0].busy(Some(run(1))).unwrap();
        let second = seats[1].busy(Some(run(1))).unwrap();
        let third = seats[2].busy(Some(run(1))).map(drop);
        assert_eq!(third, Err(Bound::Each(2)), "each has a request under way");
        drop(first);
        seats[2].busy(Some(run(1))).map(drop).unwrap();
        assert_eq!(gone(&seats), [0], "the one that asked nothing gives way");
        let neighbour = come(&crowd, Group::Process(8));
        neighbour.busy(Some(run(2))).map(drop).unwrap();
        let strangers: Vec<Seat> = (0..3).map(|_| come(&crowd, Group::Anyone)).collect();
        assert!(gone(&[neighbour]).is_empty() && gone(&strangers).is_empty());
        drop((second, seats, strangers));
        let members = crowd.lock();
        assert!(members.open.is_empty() && members.groups.is_empty());
    }

    #[test]
    fn a_full_door_makes_room_where_the_most_connections_are() {
        let crowd = Arc::new(Crowd::default());
        let honest = come(&crowd, Group::User(1));
        let many: Vec<Seat> = (0..4).map(|_| come(&crowd, Group::User(7))).collect();
        let other = come(&crowd, Group::User(2));
        let newcomer = come(&crowd, Group::User(3));
        assert_eq!(gone(&many), [0]);
        assert!(gone(&[honest, other, newcomer]).is_empty());
    }

    #[test]
    fn those_that_have_not_left_yet_are_bounded_too() {
        let crowd = Arc::new(Crowd::default());
        let seats: Vec<Seat> = (0..8).map(|_| come(&crowd, Group::User(7))).collect();
        assert_eq!(gone(&seats), [0, 1, 2, 3]);
        let full = enter(&crowd, Group::User(7));
        assert!(matches!(full, Entry::Full(Bound::Each(4))), "{full:?}");
        drop(seats);
        come(&crowd, Group::User(7));
    }

    #[test]
    fn who_opens_too_many_in_a_second_is_refused_and_nobody_else_is() {
        let crowd = Arc::new(Crowd::default());
        let now = Instant::now();
        let opened = |group, now| {
            (0..5000).filter(|_| matches!(crowd.enter(group, BOUNDS, now), Entry::In(..))).count()
        };
        assert_eq!(opened(Group::User(7), now), 200, "a burst");
        assert_eq!(opened(Group::User(7), now + Duration::from_secs(1)), 100);
        assert_eq!(opened(Group::User(8), now), 200);
    }

    #[test]
    fn a_place_is_free_when_the_connection_has_gone() {
        let crowd = Arc::new(Crowd::default());
        for _ in 0..100 {
            let seat = come(&crowd, Group::Anyone);
            let busy = ask(&seat);
            drop(seat);
            drop(busy);
        }
        let members = crowd.lock();
        assert!(members.open.is_empty() && members.groups.is_empty());
    }
}
