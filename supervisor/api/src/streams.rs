//! Limits the open streams of callers, and ends them when the daemon stops.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use kernel::{Actor, Tenant};
use tokio_util::sync::CancellationToken;

use base::exit::Code;
use base::failure::Failure;

/// Limit on the streams of one caller. A browser tab has one.
const EACH: usize = 16;
/// Limit on all streams. A caller without a stream is admitted beyond it.
const ALL: usize = 256;

/// Owner of streams: name, uid and, for a member, tenant.
type StreamsKey = (String, Option<u32>, Option<Tenant>);

/// Open streams by owner.
#[derive(Debug, Default)]
pub(super) struct Streams(Mutex<HashMap<StreamsKey, usize>>);

/// An open stream, counted until it is dropped.
#[derive(Debug)]
pub struct OpenStream {
    streams: Arc<Streams>,
    key: StreamsKey,
    /// Cancelled when the daemon stops.
    stop: CancellationToken,
}

impl Streams {
    /// Admits a stream of a caller.
    ///
    /// # Errors
    /// The caller, or all callers together, have too many streams.
    pub(super) fn enter(
        self: &Arc<Self>,
        actor: &Actor,
        stop: CancellationToken,
    ) -> Result<OpenStream, Failure> {
        let key = (actor.name.clone(), actor.uid, actor.tenant.clone());
        let mut open = self.lock();
        let (of_caller, all) = (open.get(&key).copied().unwrap_or_default(), open.values().sum::<usize>());
        if of_caller >= EACH {
            return Err(refused(format!("{} has {EACH} streams open, the limit of one caller", actor.name)));
        }
        if of_caller > 0 && all >= ALL {
            return Err(refused(format!("{ALL} streams are open, the limit of all callers")));
        }
        *open.entry(key.clone()).or_default() += 1;
        drop(open);
        Ok(OpenStream { streams: Arc::clone(self), key, stop })
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<StreamsKey, usize>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn refused(why: String) -> Failure {
    Failure::new(Code::Throttled, why).hint("close a stream that is not read, and try again")
}

impl OpenStream {
    /// Waits until the daemon stops, when the stream must end.
    pub async fn over(&self) {
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
