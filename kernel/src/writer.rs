//! The one writer: a thread that commits what is queued as one group.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::board::Board;
use crate::model::clock::{Clock, SystemClock};
use crate::model::entropy::{Entropy, SystemEntropy};
use crate::model::error::{Error, StorageKind};
use crate::model::id::{EventId, LetterId};
use crate::model::quota::SharedQuotas;
use crate::model::request::Request;
use crate::store::open_error::OpenError;
use crate::store::presence::Presence;
use crate::store::tx::{Database, Savepoint, Tx};
use crate::store::watched::Watched;

/// The most jobs that share one commit: enough to hide the disk's latency, few enough to answer the first soon.
const BATCH: usize = 256;
/// So long after the last commit the log is given back.
const REST: Duration = Duration::from_secs(2);

/// Tells of a commit that changed the board.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Committed {
    /// The last event there is now.
    pub last_event: EventId,
    /// The last message that waits in the outbox; zero where there is none.
    pub last_letter: LetterId,
}

/// Named points at which a test may fail the writer or end the process: `begin`, `job`, `commit`, `committed`.
#[derive(Clone)]
pub struct FailPoints(Arc<dyn Fn(&'static str) -> Option<StorageKind> + Send + Sync>);

impl FailPoints {
    /// Calls `at` at every point, to end the process there.
    pub fn new(at: impl Fn(&'static str) + Send + Sync + 'static) -> Self {
        Self(Arc::new(move |point| {
            at(point);
            None
        }))
    }

    /// Calls `at` at every point; what it returns fails the step.
    pub fn failing(at: impl Fn(&'static str) -> Option<StorageKind> + Send + Sync + 'static) -> Self {
        Self(Arc::new(at))
    }

    fn pass(&self, point: &'static str) -> Result<(), Error> {
        match (self.0)(point) {
            None => Ok(()),
            Some(kind) => {
                let source = Arc::new(std::io::Error::other("injected failure"));
                Err(Error::Storage { kind, step: point, source })
            }
        }
    }
}

impl Default for FailPoints {
    fn default() -> Self {
        Self(Arc::new(|_| None))
    }
}

impl fmt::Debug for FailPoints {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("FailPoints")
    }
}

/// What a writer is made with.
#[derive(Clone)]
pub struct WriterOptions {
    /// Where time comes from.
    pub clock: Arc<dyn Clock>,
    /// Where randomness comes from.
    pub entropy: Arc<dyn Entropy>,
    /// Called on the writer's thread after each commit that changed the board, before the replies.
    pub on_commit: Arc<dyn Fn(Committed) + Send + Sync>,
    /// What runs and tenants may write.
    pub quotas: SharedQuotas,
    /// Where tests make it fail.
    pub fail_point: FailPoints,
}

impl Default for WriterOptions {
    fn default() -> Self {
        Self {
            clock: Arc::new(SystemClock),
            entropy: Arc::new(SystemEntropy),
            on_commit: Arc::new(|_| {}),
            quotas: SharedQuotas::default(),
            fail_point: FailPoints::default(),
        }
    }
}

impl fmt::Debug for WriterOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WriterOptions").finish_non_exhaustive()
    }
}

/// A handle of the writer thread. Clones share it; the last one to go waits for what is queued.
#[derive(Clone)]
pub struct Writer {
    shared: Arc<Shared>,
}

struct Shared {
    /// Not bounded by itself: what is queued waits for a reply that its caller bounds, or is one of the few notes that a run may leave.
    queue: Mutex<Option<Sender<Box<dyn Job>>>>,
    thread: Mutex<Option<JoinHandle<()>>>,
    presence: Arc<Presence>,
    steps: Arc<AtomicU64>,
}

impl fmt::Debug for Writer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Writer").finish_non_exhaustive()
    }
}

impl Shared {
    /// Lets the thread end when it has done what is queued, and waits for that.
    fn close(&self) {
        drop(self.queue.lock().unwrap_or_else(PoisonError::into_inner).take());
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        // The last handle may be dropped by a reply on the writer's own thread, which cannot wait for itself.
        if let Some(thread) = thread.filter(|thread| thread.thread().id() != std::thread::current().id()) {
            drop(thread.join());
        }
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        self.close();
    }
}

impl Writer {
    /// Opens the board at `path` to write and starts the thread.
    pub fn open(path: &Path, options: WriterOptions) -> Result<Self, OpenError> {
        let database = Database::writer(path)?;
        let watched = Watched::of(path, &database)?;
        let presence = watched.presence();
        let steps = Arc::new(AtomicU64::new(0));
        database.count_steps(Arc::clone(&steps));
        let (queue, jobs) = mpsc::channel();
        let thread = std::thread::Builder::new()
            .name("board-writer".to_owned())
            .spawn(move || serve(&database, &watched, &options, &jobs))
            .map_err(|source| OpenError::Io { step: "start the writer of", path: path.to_owned(), source })?;
        let shared =
            Shared { queue: Mutex::new(Some(queue)), thread: Mutex::new(Some(thread)), presence, steps };
        Ok(Self { shared: Arc::new(shared) })
    }

    /// Refuses where the board's file is known to have been overwritten while it is open; a write finds that out.
    pub fn require_own(&self) -> Result<(), Error> {
        self.shared.presence.require_known()
    }

    /// A count that grows while statements are executed: by it a job that takes long can be told from one that hangs.
    pub fn steps(&self) -> u64 {
        self.shared.steps.load(Ordering::Relaxed)
    }

    /// Commits what is queued and closes the board, even if others have a handle: later jobs fail.
    pub fn close(&self) {
        self.shared.close();
    }

    /// Queues a job. `done` is called on the writer's thread after the commit, or with what failed.
    pub fn submit<T: Send + 'static>(
        &self,
        job: impl FnOnce(&mut Board<'_>) -> Result<T, Error> + Send + 'static,
        done: impl FnOnce(Result<T, Error>) + Send + 'static,
    ) {
        let pending: Box<dyn Job> = Box::new(Pending { job: Some(job), done: Some(done), result: None });
        let queue = self.shared.queue.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let refused = match queue {
            Some(queue) => queue.send(pending).err().map(|refused| refused.0),
            None => Some(pending),
        };
        if let Some(pending) = refused {
            pending.finish(Some(&gone()));
        }
    }

    /// Runs a job and waits for its commit. Not to be called on the writer's own thread.
    pub fn call<T: Send + 'static>(
        &self,
        job: impl FnOnce(&mut Board<'_>) -> Result<T, Error> + Send + 'static,
    ) -> Result<T, Error> {
        let (reply, answer) = mpsc::sync_channel(1);
        self.submit(job, move |result| {
            // A caller that is gone wants no reply.
            drop(reply.send(result));
        });
        answer.recv().unwrap_or_else(|_| Err(gone()))
    }

    /// Queues a job that is done once per request: its reply is stored with what it did, and a repeat gets that
    /// reply. Only successes are stored.
    ///
    /// # Errors
    /// `done` gets [`Error::Invalid`] when the caller has used the id for another request.
    pub fn submit_once<T: Serialize + DeserializeOwned + Send + 'static>(
        &self,
        request: Request,
        job: impl FnOnce(&mut Board<'_>) -> Result<T, Error> + Send + 'static,
        done: impl FnOnce(Result<T, Error>) + Send + 'static,
    ) {
        self.submit(
            move |board| {
                if let Some(stored) = board.tx.stored_reply(&request)? {
                    return serde_json::from_str(&stored).map_err(|error| unreadable("read", &error));
                }
                let reply = job(board)?;
                let text = serde_json::to_string(&reply).map_err(|error| unreadable("stored", &error))?;
                board.tx.store_reply(&request, &text, board.now())?;
                Ok(reply)
            },
            done,
        );
    }
}

fn unreadable(step: &str, error: &serde_json::Error) -> Error {
    Error::Writer { message: format!("the reply cannot be {step}: {error}") }
}

fn gone() -> Error {
    Error::Writer { message: "its thread is gone".to_owned() }
}

/// A job without its types.
trait Job: Send {
    /// Does the work; returns whether it is to be kept.
    fn run(&mut self, board: &mut Board<'_>) -> Result<(), ()>;
    /// Returns how the store failed the job, if it did.
    fn storage_error(&self) -> Option<Error>;
    /// Replaces the result by an error.
    fn fail(&mut self, error: Error);
    /// Tells the result, or why the whole group was lost.
    fn finish(self: Box<Self>, lost: Option<&Error>);
}

struct Pending<T, J, D> {
    job: Option<J>,
    done: Option<D>,
    result: Option<Result<T, Error>>,
}

impl<T, J, D> Job for Pending<T, J, D>
where
    T: Send,
    J: FnOnce(&mut Board<'_>) -> Result<T, Error> + Send,
    D: FnOnce(Result<T, Error>) + Send,
{
    fn run(&mut self, board: &mut Board<'_>) -> Result<(), ()> {
        let Some(job) = self.job.take() else { return Err(()) };
        let result = catch_unwind(AssertUnwindSafe(|| job(board)))
            .unwrap_or_else(|_| Err(Error::Writer { message: "a job panicked; it was undone".to_owned() }));
        let kept = result.is_ok();
        self.result = Some(result);
        if kept { Ok(()) } else { Err(()) }
    }

    fn storage_error(&self) -> Option<Error> {
        match &self.result {
            Some(Err(error @ Error::Storage { .. })) => Some(error.clone()),
            Some(_) | None => None,
        }
    }

    fn fail(&mut self, error: Error) {
        self.result = Some(Err(error));
    }

    fn finish(mut self: Box<Self>, lost: Option<&Error>) {
        let result = match (lost, self.result.take()) {
            // A refusal may rest on what others of the lost group had done, so it is lost too.
            (Some(error), _) => Err(error.clone()),
            (None, Some(result)) => result,
            (None, None) => Err(gone()),
        };
        if let Some(done) = self.done.take() {
            // A reply that panics must not end the writer.
            drop(catch_unwind(AssertUnwindSafe(|| done(result))));
        }
    }
}

/// Serves the queue until its last sender is gone. The log is given back when nothing is written for a while, and at the
/// end: the connections that read cannot do it.
fn serve(database: &Database, watched: &Watched, options: &WriterOptions, jobs: &Receiver<Box<dyn Job>>) {
    let mut written = false;
    loop {
        let first = if written {
            match jobs.recv_timeout(REST) {
                Ok(first) => first,
                Err(RecvTimeoutError::Timeout) => {
                    if watched.require().is_ok() {
                        database.shorten_log();
                        watched.note_written();
                    }
                    written = false;
                    continue;
                }
                Err(RecvTimeoutError::Disconnected) => break,
            }
        } else {
            let Ok(first) = jobs.recv() else { break };
            first
        };
        let mut batch = vec![first];
        batch.extend(jobs.try_iter().take(BATCH - 1));
        match commit(database, watched, options, &mut batch) {
            Ok(committed) => {
                let changed = committed.is_some();
                written |= changed;
                if let Some(committed) = committed {
                    drop(catch_unwind(AssertUnwindSafe(|| (options.on_commit)(committed))));
                }
                for job in batch {
                    job.finish(None);
                }
                if changed {
                    database.reserve_log();
                }
            }
            Err(error) => {
                for job in batch {
                    job.finish(Some(&error));
                }
            }
        }
    }
    if watched.require().is_ok() {
        database.empty_log();
    }
}

/// Runs a group in one transaction. Returns the news if it changed the board.
fn commit(
    database: &Database,
    watched: &Watched,
    options: &WriterOptions,
    batch: &mut [Box<dyn Job>],
) -> Result<Option<Committed>, Error> {
    watched.require()?;
    options.fail_point.pass("begin")?;
    // Undone when it is dropped: the first failure is what the callers need to hear.
    let tx = database.write()?;
    let mut changed = false;
    for job in batch.iter_mut() {
        changed |= if changed {
            step(&tx, options, job.as_mut())?
        } else {
            // Until something was written all of it can be undone.
            alone(&tx, options, job.as_mut())?
        };
    }
    let last_event = tx.last_event()?;
    let last_letter = tx.last_letter()?;
    options.fail_point.pass("commit")?;
    tx.commit()?;
    // Too late to fail: the point only serves to end the process here.
    drop(options.fail_point.pass("committed"));
    // What was committed to a file that nobody can find is not acknowledged.
    watched.committed(last_event)?;
    Ok(changed.then_some(Committed { last_event, last_letter }))
}

/// Runs one job in its savepoint. Returns whether it changed the board; an error loses the group.
fn step(tx: &Tx<'_>, options: &WriterOptions, job: &mut dyn Job) -> Result<bool, Error> {
    tx.savepoint(Savepoint::Job)?;
    match attempt(tx, options, job)? {
        Attempt::Refused => {
            tx.undo_to(Savepoint::Job)?;
            Ok(false)
        }
        Attempt::Kept { changed } => {
            tx.release(Savepoint::Job)?;
            Ok(changed)
        }
    }
}

/// Runs one job before which nothing was written. A savepoint would keep a copy of each page that the job changes; to undo this one
/// the transaction is begun anew.
fn alone(tx: &Tx<'_>, options: &WriterOptions, job: &mut dyn Job) -> Result<bool, Error> {
    match attempt(tx, options, job)? {
        Attempt::Refused => {
            tx.begin_anew()?;
            Ok(false)
        }
        Attempt::Kept { changed } => Ok(changed),
    }
}

/// What came of a job.
enum Attempt {
    Refused,
    Kept { changed: bool },
}

fn attempt(tx: &Tx<'_>, options: &WriterOptions, job: &mut dyn Job) -> Result<Attempt, Error> {
    if let Err(error) = options.fail_point.pass("job") {
        job.fail(error);
        return Ok(Attempt::Refused);
    }
    let before = tx.changes();
    let mut board = Board::new(tx, &*options.clock, &*options.entropy, options.quotas.get());
    let kept = job.run(&mut board);
    if tx.is_over() {
        // SQLite has ended the transaction itself, as it does when the disk is full.
        return Err(job.storage_error().unwrap_or_else(|| Error::Storage {
            kind: StorageKind::Io,
            step: "keep the transaction",
            source: Arc::new(std::io::Error::other("SQLite rolled it back")),
        }));
    }
    Ok(if kept.is_ok() { Attempt::Kept { changed: tx.changes() != before } } else { Attempt::Refused })
}
