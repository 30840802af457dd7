//! The proxies of all runs that have one: opened when a run has begun, or is taken over, and closed with it.

use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use kernel::{BoardId, Denied, Egress, RunId};
use policies::{Policy, Target, ask_keeper, receive_listener};
use tokio::io::Interest;
use tokio::net::{TcpListener, UnixStream};
use tokio::runtime::{Builder, Handle, Runtime};
use tokio::sync::{Notify, Semaphore};
use tokio_util::sync::CancellationToken;

use super::connection::{LOOKUPS, Terms, serve};
use super::tally::Tally;
use crate::failure::Failure;
use crate::service::BoardHandle;

/// How many connections a run may have at once. More of them wait in its queue, in the kernel.
const OF_RUN: usize = 64;
/// How many all runs may have at once: each has two descriptors and two buffers.
const OF_ALL: usize = 4096;
/// How many connections of a run are accepted in a second.
const A_SECOND: u32 = 100;
/// How many names of all runs are looked up at once.
const LOOKUP_THREADS: usize = 64;
/// The pause after an accept that failed, for lack of descriptors.
const PAUSE: Duration = Duration::from_millis(100);
/// The first and the longest pause between two looks for a shim that is only coming up.
const LOOK: (Duration, Duration) = (Duration::from_millis(2), Duration::from_millis(500));

type Key = (BoardId, RunId);

/// Of one daemon.
#[derive(Debug)]
pub(crate) struct WaysOut {
    runtime: Mutex<Option<Runtime>>,
    seats: Arc<Seats>,
    ways: Mutex<HashMap<Key, Way>>,
}

/// The proxy of one run.
#[derive(Debug)]
struct Way {
    board: Arc<BoardHandle>,
    tally: Arc<Tally>,
    close: CancellationToken,
}

/// The connections of all runs.
#[derive(Debug)]
struct Seats {
    all: usize,
    taken: AtomicUsize,
    left: Notify,
}

/// A connection that counts until it is dropped.
struct Seat {
    seats: Arc<Seats>,
    own: Arc<AtomicUsize>,
}

impl WaysOut {
    /// No proxies yet. They use a part of the descriptors that this process may have.
    pub(crate) fn new(descriptors: u64) -> Self {
        let all = usize::try_from(descriptors / 8).unwrap_or(OF_ALL).clamp(1, OF_ALL);
        let seats = Arc::new(Seats { all, taken: AtomicUsize::new(0), left: Notify::new() });
        WaysOut { runtime: Mutex::default(), seats, ways: Mutex::default() }
    }

    /// Serves the proxy of a run, as soon as its keeper has a listening socket; nothing where its policy has none.
    pub(crate) fn open(
        &self,
        board: &Arc<BoardHandle>,
        run: RunId,
        policy: &Policy,
        keeper: PathBuf,
    ) -> Result<(), Failure> {
        if !policy.has_proxy() {
            return Ok(());
        }
        let runtime = self.handle()?;
        let (tally, close) = (Arc::new(Tally::default()), CancellationToken::new());
        let way = Way { board: Arc::clone(board), tally: Arc::clone(&tally), close: close.clone() };
        if let Some(former) = self.ways().insert((board.id(), run), way) {
            former.close.cancel();
        }
        let terms = Terms { policy: policy.clone(), tally, lookups: Arc::new(Semaphore::new(LOOKUPS)) };
        let (board, seats) = (Arc::clone(board), Arc::clone(&self.seats));
        runtime.spawn(async move {
            let attended = async {
                match listener_of(&keeper).await {
                    Ok(Some(listener)) => {
                        attend(listener, Arc::new(terms), &seats, (&board, run), &close).await;
                    }
                    // It has ended before it had one.
                    Ok(None) => {}
                    Err(error) => tracing::error!(%run, %error, "proxy_not_served"),
                }
            };
            tokio::select! {
                // Cancel-safe: a connection that is not accepted ends with the listening socket.
                () = attended => {}
                () = close.cancelled() => {}
            }
        });
        Ok(())
    }

    /// Ends the proxy of a run of which nothing lives any more, and notes what went through it.
    pub(crate) fn close(&self, key: Key) {
        let Some(way) = self.ways().remove(&key) else { return };
        way.close.cancel();
        way.note_figures(key.1);
    }

    /// Notes what went through the proxies of runs that go on without this daemon. The next one counts from zero.
    pub(crate) fn note_figures(&self) {
        for ((_, run), way) in self.ways().drain() {
            way.close.cancel();
            way.note_figures(run);
        }
    }

    /// What the proxy of a run refused last.
    pub(crate) fn last_denied(&self, key: Key) -> Option<Denied> {
        self.ways().get(&key)?.tally.last_denied()
    }

    fn ways(&self) -> MutexGuard<'_, HashMap<Key, Way>> {
        self.ways.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The thread of all proxies, which the first one starts: what workers pass through them takes no time of the daemon's
    /// other threads.
    fn handle(&self) -> Result<Handle, Failure> {
        let mut runtime = self.runtime.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(runtime) = &*runtime {
            return Ok(runtime.handle().clone());
        }
        let built = Builder::new_multi_thread()
            .worker_threads(1)
            .max_blocking_threads(LOOKUP_THREADS)
            .thread_name("proxy")
            .enable_all()
            .build();
        let built =
            built.map_err(|e| Failure::failed(format!("failed to start the thread of the proxy: {e}")))?;
        Ok(runtime.insert(built).handle().clone())
    }
}

impl Way {
    fn note_figures(&self, run: RunId) {
        let figures = self.tally.figures();
        if figures != Egress::default() {
            submit(&self.board, move |board| board.note_egress(run, &figures));
        }
    }
}

impl Drop for WaysOut {
    fn drop(&mut self) {
        // It may be dropped on a thread of another runtime, which must not wait for its threads.
        if let Some(runtime) = self.runtime.lock().unwrap_or_else(PoisonError::into_inner).take() {
            runtime.shutdown_background();
        }
    }
}

impl Seats {
    /// Waits until a run may have one more connection: as long as more are free than it has itself, so that some are left for
    /// others, however many runs take what they can.
    async fn room(&self, own: &AtomicUsize) {
        loop {
            // Before the look: who leaves after that look is heard.
            let left = self.left.notified();
            let (own, taken) = (own.load(Ordering::Relaxed), self.taken.load(Ordering::Relaxed));
            if own < OF_RUN && own < self.all.saturating_sub(taken) {
                return;
            }
            left.await;
        }
    }

    fn take(self: &Arc<Self>, own: &Arc<AtomicUsize>) -> Seat {
        self.taken.fetch_add(1, Ordering::Relaxed);
        own.fetch_add(1, Ordering::Relaxed);
        Seat { seats: Arc::clone(self), own: Arc::clone(own) }
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        self.own.fetch_sub(1, Ordering::Relaxed);
        self.seats.taken.fetch_sub(1, Ordering::Relaxed);
        self.seats.left.notify_waiters();
    }
}

/// Gets the listening socket of a run from its keeper, as soon as there are both; none where the keeper has ended.
async fn listener_of(keeper: &Path) -> io::Result<Option<TcpListener>> {
    let mut pause = LOOK.0;
    let answer = loop {
        match ask_keeper(keeper) {
            Ok(answer) => break UnixStream::from_std(answer)?,
            // The shim is only coming up. Nothing tells when it is there.
            Err(error)
                if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused) =>
            {
                tokio::time::sleep(pause).await;
                pause = (pause * 2).min(LOOK.1);
            }
            Err(error) => return Err(error),
        }
    };
    loop {
        answer.readable().await?;
        match answer.try_io(Interest::READABLE, || receive_listener(&answer)) {
            Ok(listener) => return listener.map(TcpListener::from_std).transpose(),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) => return Err(error),
        }
    }
}

/// Accepts the connections of a run, one in each turn of the runtime: the listeners that are ready take turns.
async fn attend(
    listener: TcpListener,
    terms: Arc<Terms>,
    seats: &Arc<Seats>,
    (board, run): (&Arc<BoardHandle>, RunId),
    close: &CancellationToken,
) {
    let own = Arc::new(AtomicUsize::new(0));
    let (mut second, mut accepted) = (Instant::now(), 0);
    loop {
        if second.elapsed() >= Duration::from_secs(1) {
            (second, accepted) = (Instant::now(), 0);
        } else if accepted >= A_SECOND {
            tokio::time::sleep_until((second + Duration::from_secs(1)).into()).await;
        }
        seats.room(&own).await;
        match listener.accept().await {
            Ok((worker, _)) => {
                accepted += 1;
                let seat = seats.take(&own);
                let (terms, board, close) = (Arc::clone(&terms), Arc::clone(board), close.clone());
                tokio::spawn(async move {
                    let note = |denied: Denied, target: &Target| {
                        let host = target.to_string();
                        tracing::info!(%run, host, policy = denied.policy, "egress_denied");
                        submit(&board, move |board| board.note_egress_denied(run, &denied, &host));
                    };
                    tokio::select! {
                        // Nobody is left at the other end.
                        () = serve(worker, terms, note) => {}
                        () = close.cancelled() => {}
                    }
                    drop(seat);
                });
            }
            Err(error) => {
                tracing::warn!(%run, %error, "not_accepted");
                tokio::time::sleep(PAUSE).await;
            }
        }
        tokio::task::yield_now().await;
    }
}

/// Has the board note something. Nobody waits for it.
fn submit(
    board: &BoardHandle,
    job: impl FnOnce(&mut kernel::Board<'_>) -> Result<(), kernel::Error> + Send + 'static,
) {
    let Ok(writer) = board.writer() else { return };
    writer.submit(job, |result: Result<(), kernel::Error>| {
        if let Err(error) = result {
            tracing::warn!(%error, "egress_not_noted");
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_run_that_takes_what_it_can_leaves_connections_for_others() {
        let seats = Arc::new(Seats { all: 16, taken: AtomicUsize::new(0), left: Notify::new() });
        let fill = async |own: &Arc<AtomicUsize>| {
            let mut all = Vec::new();
            while tokio::time::timeout(PAUSE, seats.room(own)).await.is_ok() {
                all.push(seats.take(own));
            }
            all
        };
        let [greedy, second, third] = [(); 3].map(|()| Arc::new(AtomicUsize::new(0)));
        let mut first = fill(&greedy).await;
        assert_eq!(first.len(), 8);
        let _second = fill(&second).await;
        assert_eq!(second.load(Ordering::Relaxed), 4);
        assert!(tokio::time::timeout(PAUSE, seats.room(&third)).await.is_ok());

        let waits = seats.room(&greedy);
        first.truncate(2);
        assert!(tokio::time::timeout(PAUSE, waits).await.is_ok(), "who leaves makes room");
    }

    #[tokio::test(start_paused = true)]
    async fn a_run_has_a_share_however_many_are_free() {
        let seats = Arc::new(Seats { all: 4096, taken: AtomicUsize::new(0), left: Notify::new() });
        let own = Arc::new(AtomicUsize::new(0));
        let _all: Vec<Seat> = (0..OF_RUN).map(|_| seats.take(&own)).collect();
        assert!(tokio::time::timeout(PAUSE, seats.room(&own)).await.is_err());
    }
}
