//! The streams that callers have open: how many each may have, and when a stream has to end.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use kernel::{Actor, Tenant};
use tokio_util::sync::CancellationToken;

use crate::exit::Code;
use crate::failure::Failure;

/// The streams of one caller. A tab of a browser has one.
const EACH: usize = 16;
/// The streams of all callers together. A caller without a stream gets one beyond it.
const ALL: usize = 256;

/// Who has streams: a user, or a tenant's user.
type Key = (String, Option<u32>, Option<Tenant>);

/// The streams that are open.
#[derive(Debug, Default)]
pub(super) struct Streams(Mutex<HashMap<Key, usize>>);

/// One of them. It counts until it is dropped.
#[derive(Debug)]
pub(crate) struct OpenStream {
    streams: Arc<Streams>,
    key: Key,
    /// The daemon stops.
    stop: CancellationToken,
}

impl Streams {
    /// Admits one more stream of a caller.
    ///
    /// # Errors
    /// The caller, or all callers, have too many.
    pub(super) fn enter(
        self: &Arc<Self>,
        actor: &Actor,
        stop: CancellationToken,
    ) -> Result<OpenStream, Failure> {
        let key = (actor.name.clone(), actor.uid, actor.tenant.clone());
        let mut open = self.lock();
        let (own, all) = (open.get(&key).copied().unwrap_or_default(), open.values().sum::<usize>());
        if own >= EACH {
            return Err(refused(format!("{} has {EACH} streams open, the limit of one caller", actor.name)));
        }
        if own > 0 && all >= ALL {
            return Err(refused(format!("{ALL} streams are open, the limit of all callers")));
        }
        *open.entry(key.clone()).or_default() += 1;
        drop(open);
        Ok(OpenStream { streams: Arc::clone(self), key, stop })
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Key, usize>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn refused(why: String) -> Failure {
    Failure::new(Code::Throttled, why).hint("close a stream that is not read, and try again")
}

impl OpenStream {
    /// Returns when the stream has to end: the daemon stops.
    pub(crate) async fn over(&self) {
        self.stop.cancelled().await;
    }
}

impl Drop for OpenStream {
    fn drop(&mut self) {
        let mut open = self.streams.lock();
        if let Some(count) = open.get_mut(&self.key) {
            *count -= 1;
            if *count == 0 {
                open.remove(&self.key);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn enter(streams: &Arc<Streams>, name: &str) -> Result<OpenStream, Failure> {
        streams.enter(&Actor::person(name), CancellationToken::new())
    }

    #[test]
    fn a_caller_has_a_bounded_number_of_streams_and_another_one_still_gets_its_own() {
        let streams = Arc::new(Streams::default());
        let mut places: Vec<OpenStream> = (0..EACH).map(|_| enter(&streams, "ann").unwrap()).collect();
        let refusal = enter(&streams, "ann").unwrap_err();
        assert_eq!(refusal.code, Code::Throttled);
        assert!(refusal.message.contains("ann has 16 streams"), "{}", refusal.message);
        drop(enter(&streams, "bob").unwrap());
        places.pop();
        drop(enter(&streams, "ann").unwrap());
        drop(places);
        assert!(streams.lock().is_empty(), "nothing is kept of streams that have ended");
    }

    #[test]
    fn when_all_streams_are_taken_only_a_caller_without_one_gets_one() {
        let streams = Arc::new(Streams::default());
        let names: Vec<String> = (0..ALL / EACH).map(|at| format!("user-{at}")).collect();
        let most = |name: &String| (0..EACH).map(|_| enter(&streams, name).unwrap()).collect::<Vec<_>>();
        let places: Vec<Vec<OpenStream>> = names.iter().map(most).collect();
        let first = enter(&streams, "late").unwrap();
        assert_eq!(enter(&streams, "late").unwrap_err().code, Code::Throttled);
        drop((first, places));
    }
}
