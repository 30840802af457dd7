//! Unauthenticated connections: a limited number, of which the oldest is evicted for a new one.
//!
//! A sender sends its token with its first bytes, so its connection is known long before it is the oldest. A limit
//! for each address would not help: the bridge is behind a proxy and sees one address.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use tokio_util::sync::CancellationToken;

/// Limit on the unauthenticated connections.
const MOST: usize = 64;

/// All unauthenticated connections, oldest first. A client with a token sends it in its first bytes, so it is
/// authenticated before many others connect.
#[derive(Debug, Default)]
pub(super) struct UnauthenticatedConnections {
    open: Mutex<OpenConnections>,
}

#[derive(Debug, Default)]
struct OpenConnections {
    /// Number of the next connection.
    next: u64,
    ends: VecDeque<(u64, CancellationToken)>,
}

/// An unauthenticated connection, until it is authenticated or closed.
#[derive(Debug)]
pub(super) struct UnauthenticatedConnection {
    all: Arc<UnauthenticatedConnections>,
    number: u64,
}

impl UnauthenticatedConnections {
    /// Adds a connection. The returned token is cancelled when the connection is evicted.
    pub(super) fn enter(all: &Arc<Self>) -> (UnauthenticatedConnection, CancellationToken) {
        let end = CancellationToken::new();
        let mut waiting = all.open.lock().unwrap_or_else(PoisonError::into_inner);
        let number = waiting.next;
        waiting.next += 1;
        waiting.ends.push_back((number, end.clone()));
        if waiting.ends.len() > MOST
            && let Some((_, oldest)) = waiting.ends.pop_front()
        {
            oldest.cancel();
        }
        drop(waiting);
        (UnauthenticatedConnection { all: Arc::clone(all), number }, end)
    }
}

impl Drop for UnauthenticatedConnection {
    fn drop(&mut self) {
        let mut waiting = self.all.open.lock().unwrap_or_else(PoisonError::into_inner);
        waiting.ends.retain(|(number, _)| *number != self.number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_one_makes_room_and_who_is_known_stays() {
        let all = Arc::new(UnauthenticatedConnections::default());
        let (known, of_known) = UnauthenticatedConnections::enter(&all);
        drop(known);
        let (_oldest, of_oldest) = UnauthenticatedConnections::enter(&all);
        let (_second, of_second) = UnauthenticatedConnections::enter(&all);

        let more: Vec<_> = (0..MOST - 1).map(|_| UnauthenticatedConnections::enter(&all)).collect();

        assert!(of_oldest.is_cancelled() && !of_second.is_cancelled() && !of_known.is_cancelled());
        drop(more);
        assert_eq!(all.open.lock().unwrap().ends.len(), 1, "those who have gone take no room");
    }
}
