//! Schedules jobs in workspaces on behalf of workers and readers: one at a time for each caller and a few in all, on
//! separate threads with a time limit. A slow job never blocks a thread that reads boards.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use kernel::{BoardName, RunId};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};
use tokio_util::sync::CancellationToken;

/// Limit on concurrent jobs. Each uses a waiting thread and a process.
const AT_ONCE: usize = 4;
/// Time limit of a worker's job. Normally it takes milliseconds, but on a loaded host the process also has to start.
const LONGEST: Duration = Duration::from_secs(3);
/// Longest wait for other jobs before a job is skipped.
const TURN: Duration = Duration::from_secs(15);
/// Limit on the remembered callers whose job was cut short. A forgotten caller is tried and warned again.
const REMEMBERED: usize = 1000;

pub(crate) type RunOfBoard = (BoardName, RunId);

/// Jobs in progress, keyed by caller; by default a caller is a run.
#[derive(Debug)]
pub struct Looks<K = RunOfBoard> {
    all: Arc<Semaphore>,
    /// Permits of callers with a job that runs or waits.
    own: Mutex<BTreeMap<K, Arc<Semaphore>>>,
    cut_short: Mutex<BTreeSet<K>>,
}

/// Both permits: the caller's own, and a shared one.
#[derive(Debug)]
struct Turn {
    _own: OwnedSemaphorePermit,
    _shared: OwnedSemaphorePermit,
}

impl<K> Default for Looks<K> {
    fn default() -> Self {
        Looks { all: Arc::new(Semaphore::new(AT_ONCE)), own: Mutex::default(), cut_short: Mutex::default() }
    }
}

impl<K: Clone + Ord> Looks<K> {
    /// Runs a job with the time limit for workers. Returns its result, or the reason for its lack.
    pub async fn look<T: Send + 'static>(
        &self,
        whose: &K,
        work: impl FnOnce(&CancellationToken) -> T + Send + 'static,
    ) -> Result<T, String> {
        self.look_within(LONGEST, whose, work).await
    }

    /// Runs a job. Returns its result, or the reason for its lack. If the caller stops waiting, the job is cancelled;
    /// the permits are released only when the job has really ended.
    pub async fn look_within<T: Send + 'static>(
        &self,
        longest: Duration,
        whose: &K,
        work: impl FnOnce(&CancellationToken) -> T + Send + 'static,
    ) -> Result<T, String> {
        let turn = match tokio::time::timeout(TURN, self.turn(whose)).await {
            Ok(Some(turn)) => turn,
            Ok(None) => return Err("nobody looks any more".to_owned()),
            Err(_) => return Err(format!("it was not its turn within {} s", TURN.as_secs())),
        };
        let cancel = CancellationToken::new();
        let _given_up = cancel.clone().drop_guard();
        let (done, found) = oneshot::channel();
        let look = move || {
            let found = work(&cancel);
            drop(turn);
            // The receiver is gone if the request was given up.
            drop(done.send(found));
        };
        let thread = std::thread::Builder::new().name("look".to_owned()).spawn(look);
        thread.map_err(|error| format!("no thread was started: {error}"))?;
        match tokio::time::timeout(longest, found).await {
            Ok(Ok(found)) => Ok(found),
            Ok(Err(_)) => Err("it came to nothing".to_owned()),
            Err(_) => Err(format!("it was not done within {} s", longest.as_secs())),
        }
    }

    async fn turn(&self, whose: &K) -> Option<Turn> {
        let own = {
            let mut turns = self.own.lock().unwrap_or_else(PoisonError::into_inner);
            // A caller with a job that runs or waits holds a reference; the others are removed.
            turns.retain(|_, own| Arc::strong_count(own) > 1);
            Arc::clone(turns.entry(whose.clone()).or_insert_with(|| Arc::new(Semaphore::new(1))))
        };
        let own = own.acquire_owned().await.ok()?;
        let shared = Arc::clone(&self.all).acquire_owned().await.ok()?;
        Some(Turn { _own: own, _shared: shared })
    }

    /// Remembers that a job was cut short. Returns true if that is new.
    pub fn note_cut_short(&self, whose: K) -> bool {
        let mut noted = self.cut_short.lock().unwrap_or_else(PoisonError::into_inner);
        if noted.len() >= REMEMBERED && !noted.contains(&whose) {
            noted.pop_first();
        }
        noted.insert(whose)
    }

    /// Returns true if a job of this caller was cut short: the next would be, too.
    pub fn was_cut_short(&self, whose: &K) -> bool {
        self.cut_short.lock().unwrap_or_else(PoisonError::into_inner).contains(whose)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::sync::mpsc;

    use super::*;

    fn run(number: i64) -> RunOfBoard {
        (BoardName::default(), RunId(number))
    }

    /// A single blocking thread, the hardest case.
    fn narrow() -> tokio::runtime::Runtime {
        tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .max_blocking_threads(1)
            .enable_all()
            .build()
            .unwrap()
    }

    #[test]
    fn a_run_has_one_look_at_a_time_also_when_its_clients_hang_up() {
        narrow().block_on(async {
            let looks = Arc::new(Looks::<RunOfBoard>::default());
            let (at_work, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
            let (begun, begins) = mpsc::channel();
            let (end, ends) = mpsc::channel::<()>();
            let ends = Arc::new(Mutex::new(ends));
            let start = || {
                let (looks, at_work, most) = (Arc::clone(&looks), Arc::clone(&at_work), Arc::clone(&most));
                let (begun, ends) = (begun.clone(), Arc::clone(&ends));
                tokio::spawn(async move {
                    looks
                        .look(&run(1), move |cancel| {
                            most.fetch_max(at_work.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                            begun.send(cancel.clone()).unwrap();
                            ends.lock().unwrap().recv().unwrap();
                            at_work.fetch_sub(1, Ordering::SeqCst);
                        })
                        .await
                })
            };
            let first = start();
            let cancel = begins.recv().unwrap();
            first.abort();
            cancel.cancelled().await;
            // The job whose caller is gone has not ended: the next ones wait, and give up, too.
            for _ in 0..5 {
                let next = start();
                tokio::task::yield_now().await;
                next.abort();
            }
            let last = start();
            assert_eq!(looks.look(&run(2), |_| "another run").await, Ok("another run"));
            let read = tokio::task::spawn_blocking(|| "a read").await;
            assert_eq!(read.unwrap(), "a read", "no look keeps the thread of the reads");
            assert!(begins.try_recv().is_err(), "the run has a second look");
            end.send(()).unwrap();
            begins.recv().unwrap();
            end.send(()).unwrap();
            last.await.unwrap().unwrap();
            assert_eq!(most.load(Ordering::SeqCst), 1);
        });
    }

    #[tokio::test(start_paused = true)]
    async fn a_look_that_does_not_end_is_cut_short_and_the_run_is_noted_once() {
        let looks = Looks::<RunOfBoard>::default();
        let (end, ends) = mpsc::channel::<()>();
        let cut = looks.look(&run(1), move |_| ends.recv()).await.unwrap_err();
        assert!(cut.contains("not done within 3 s"), "{cut}");
        let cut = looks.look(&run(1), |_| Ok(())).await.map(|_: Result<(), ()>| ()).unwrap_err();
        assert!(cut.contains("it was not its turn"), "{cut}");
        end.send(()).unwrap();
        assert!(!looks.was_cut_short(&run(1)));
        assert!(looks.note_cut_short(run(1)));
        assert!(!looks.note_cut_short(run(1)) && looks.was_cut_short(&run(1)));
        for number in 2..3 * i64::try_from(REMEMBERED).unwrap() {
            looks.note_cut_short(run(number));
        }
        assert_eq!(looks.cut_short.lock().unwrap().len(), REMEMBERED);
    }
}
