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
pub struct Jobs<K = RunOfBoard> {
    all: Arc<Semaphore>,
    /// Permits of callers with a job that runs or waits.
    by_caller: Mutex<BTreeMap<K, Arc<Semaphore>>>,
    cut_short: Mutex<BTreeSet<K>>,
}

/// Both permits: the caller's own, and a shared one.
#[derive(Debug)]
struct Turn {
    _of_caller: OwnedSemaphorePermit,
    _shared: OwnedSemaphorePermit,
}

impl<K> Default for Jobs<K> {
    fn default() -> Self {
        Jobs {
            all: Arc::new(Semaphore::new(AT_ONCE)),
            by_caller: Mutex::default(),
            cut_short: Mutex::default(),
        }
    }
}

impl<K: Clone + Ord> Jobs<K> {
    /// Runs a job with the time limit for workers. Returns its result, or the reason for its lack.
    pub async fn run<T: Send + 'static>(
        &self,
        caller: &K,
        work: impl FnOnce(&CancellationToken) -> T + Send + 'static,
    ) -> Result<T, String> {
        self.run_within(LONGEST, caller, work).await
    }

    /// Runs a job. Returns its result, or the reason for its lack. If the caller stops waiting, the job is cancelled;
    /// the permits are released only when the job has really ended.
    pub async fn run_within<T: Send + 'static>(
        &self,
        longest: Duration,
        caller: &K,
        work: impl FnOnce(&CancellationToken) -> T + Send + 'static,
    ) -> Result<T, String> {
        let turn = match tokio::time::timeout(TURN, self.turn(caller)).await {
            Ok(Some(turn)) => turn,
            Ok(None) => return Err("nobody looks any more".to_owned()),
            Err(_) => return Err(format!("it was not its turn within {} s", TURN.as_secs())),
        };
        let cancel = CancellationToken::new();
        let _given_up = cancel.clone().drop_guard();
        let (done, result_receiver) = oneshot::channel();
        let job = move || {
            let result = work(&cancel);
            drop(turn);
            // The receiver is gone if the request was given up.
            drop(done.send(result));
        };
        let thread = std::thread::Builder::new().name("job".to_owned()).spawn(job);
        thread.map_err(|error| format!("no thread was started: {error}"))?;
        match tokio::time::timeout(longest, result_receiver).await {
            Ok(Ok(found)) => Ok(found),
            Ok(Err(_)) => Err("it came to nothing".to_owned()),
            Err(_) => Err(format!("it was not done within {} s", longest.as_secs())),
        }
    }

    async fn turn(&self, caller: &K) -> Option<Turn> {
        let of_caller = {
            let mut turns = self.by_caller.lock().unwrap_or_else(PoisonError::into_inner);
            // A caller with a job that runs or waits holds a reference; the others are removed.
            turns.retain(|_, permit| Arc::strong_count(permit) > 1);
            Arc::clone(turns.entry(caller.clone()).or_insert_with(|| Arc::new(Semaphore::new(1))))
        };
        let of_caller = of_caller.acquire_owned().await.ok()?;
        let shared = Arc::clone(&self.all).acquire_owned().await.ok()?;
        Some(Turn { _of_caller: of_caller, _shared: shared })
    }

    /// Remembers that a job was cut short. Returns true if that is new.
    pub fn note_cut_short(&self, caller: K) -> bool {
        let mut noted = self.cut_short.lock().unwrap_or_else(PoisonError::into_inner);
        if noted.len() >= REMEMBERED && !noted.contains(&caller) {
            noted.pop_first();
        }
        noted.insert(caller)
    }

    /// Returns true if a job of this caller was cut short: the next would be, too.
    pub fn was_cut_short(&self, caller: &K) -> bool {
        self.cut_short.lock().unwrap_or_else(PoisonError::into_inner).contains(caller)
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
    fn a_run_has_one_job_at_a_time_also_when_its_clients_hang_up() {
        narrow().block_on(async {
            let jobs = Arc::new(Jobs::<RunOfBoard>::default());
            let (at_work, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
            let (begun, begins) = mpsc::channel();
            let (end, ends) = mpsc::channel::<()>();
            let ends = Arc::new(Mutex::new(ends));
            let start = || {
                let (jobs, at_work, most) = (Arc::clone(&jobs), Arc::clone(&at_work), Arc::clone(&most));
                let (begun, ends) = (begun.clone(), Arc::clone(&ends));
                tokio::spawn(async move {
                    jobs.run(&run(1), move |cancel| {
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
            assert_eq!(jobs.run(&run(2), |_| "another run").await, Ok("another run"));
            let read = tokio::task::spawn_blocking(|| "a read").await;
            assert_eq!(read.unwrap(), "a read", "no job keeps the thread of the reads");
            assert!(begins.try_recv().is_err(), "the run has a second job");
            end.send(()).unwrap();
            begins.recv().unwrap();
            end.send(()).unwrap();
            last.await.unwrap().unwrap();
            assert_eq!(most.load(Ordering::SeqCst), 1);
        });
    }

    #[tokio::test(start_paused = true)]
    async fn a_job_that_does_not_end_is_cut_short_and_the_run_is_noted_once() {
        let jobs = Jobs::<RunOfBoard>::default();
        let (end, ends) = mpsc::channel::<()>();
        let cut = jobs.run(&run(1), move |_| ends.recv()).await.unwrap_err();
        assert!(cut.contains("not done within 3 s"), "{cut}");
        let cut = jobs.run(&run(1), |_| Ok(())).await.map(|_: Result<(), ()>| ()).unwrap_err();
        assert!(cut.contains("it was not its turn"), "{cut}");
        end.send(()).unwrap();
        assert!(!jobs.was_cut_short(&run(1)));
        assert!(jobs.note_cut_short(run(1)));
        assert!(!jobs.note_cut_short(run(1)) && jobs.was_cut_short(&run(1)));
        for number in 2..3 * i64::try_from(REMEMBERED).unwrap() {
            jobs.note_cut_short(run(number));
        }
        assert_eq!(jobs.cut_short.lock().unwrap().len(), REMEMBERED);
    }
}
