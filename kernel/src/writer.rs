//! Writer of a board: a single thread that commits queued jobs as groups.
//!
//! See decision 0016.

use std::any::Any;
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
use crate::model::id::{BoardId, EventId, LetterId};
use crate::model::quota::SharedQuotas;
use crate::model::request::Request;
use crate::store::open_error::OpenError;
use crate::store::presence::Presence;
use crate::store::tx::{Database, Savepoint, Tx};
use crate::store::watched::Watched;

/// Largest number of jobs in a commit: enough to hide the disk's latency, few enough to answer the first soon.
const BATCH: usize = 256;
/// Idle time after the last commit before the log is truncated.
const REST: Duration = Duration::from_secs(2);

/// News of a commit that changed the board.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Committed {
    pub last_event: EventId,
    /// Number of the last message that waits in the outbox; zero if there is none.
    pub last_letter: LetterId,
}

/// Named points at which a test may fail the writer or end the process: `begin`, `job`, `commit`, `committed`.
#[derive(Clone)]
pub struct FailPoints(Arc<dyn Fn(&'static str) -> Option<StorageKind> + Send + Sync>);

impl FailPoints {
    /// Calls `at` at every point, so that a test can end the process there.
    pub fn new(at: impl Fn(&'static str) + Send + Sync + 'static) -> Self {
        Self(Arc::new(move |point| {
            at(point);
            None
        }))
    }

    /// Calls `at` at every point. A returned kind fails the step.
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

/// Treatment of the write-ahead log when a writer ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LogAtEnd {
    /// The log is moved into the database.
    #[default]
    Emptied,
    /// A short log is left to the next process, which reads it faster than this one could move it: two syncs are saved.
    LeftIfShort,
}

/// Parts of a board's writer that differ between a daemon and a test.
#[derive(Clone)]
pub struct WriterOptions {
    /// Source of time.
    pub clock: Arc<dyn Clock>,
    /// Source of randomness.
    pub entropy: Arc<dyn Entropy>,
    /// Callback on the writer's thread, after each commit that changed the board and before the replies.
    pub on_commit: Arc<dyn Fn(Committed) + Send + Sync>,
    /// Quotas of runs and tenants.
    pub quotas: SharedQuotas,
    /// Points at which tests make it fail.
    pub fail_point: FailPoints,
    /// Treatment of the log at the end.
    pub log_at_end: LogAtEnd,
}

impl Default for WriterOptions {
    fn default() -> Self {
        Self {
            clock: Arc::new(SystemClock),
            entropy: Arc::new(SystemEntropy),
            on_commit: Arc::new(|_| {}),
            quotas: SharedQuotas::default(),
            fail_point: FailPoints::default(),
            log_at_end: LogAtEnd::default(),
        }
    }
}

impl fmt::Debug for WriterOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WriterOptions").finish_non_exhaustive()
    }
}

/// Handle of the writer thread, shared by its clones. Dropping the last handle waits for the queued jobs.
#[derive(Clone)]
pub struct Writer {
    shared: Arc<Shared>,
}

struct Shared {
    /// Unbounded. A queued job waits for a reply, whose number the caller bounds, or is one of the few notes that a run
    /// may leave.
    queue: Mutex<Option<Sender<Pending>>>,
    thread: Mutex<Option<JoinHandle<()>>>,
    presence: Arc<Presence>,
    board: BoardId,
    steps: Arc<AtomicU64>,
}

impl fmt::Debug for Writer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Writer").finish_non_exhaustive()
    }
}

impl Shared {
    /// Ends the thread after the queued jobs, and waits for it.
    fn close(&self) {
        drop(self.queue.lock().unwrap_or_else(PoisonError::into_inner).take());
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        // A reply on the writer's own thread may drop the last handle, and the thread cannot wait for itself.
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
    /// Opens the board at `path` for writing, and starts the thread.
    pub fn open(path: &Path, options: WriterOptions) -> Result<Self, OpenError> {
        let database = Database::writer(path)?;
        let watched = Watched::open(path, &database)?;
        let (presence, board) = (watched.presence(), watched.board());
        let steps = Arc::new(AtomicU64::new(0));
        database.count_steps(Arc::clone(&steps));
        let (queue, jobs) = mpsc::channel();
        let thread = std::thread::Builder::new()
            .name("board-writer".to_owned())
            .spawn(move || serve(&database, &watched, &options, &jobs))
            .map_err(|source| OpenError::Io { step: "start the writer of", path: path.to_owned(), source })?;
        let (queue, thread) = (Mutex::new(Some(queue)), Mutex::new(Some(thread)));
        let shared = Shared { queue, thread, presence, board, steps };
        Ok(Self { shared: Arc::new(shared) })
    }

    /// Returns the identity of the board.
    pub fn board_id(&self) -> BoardId {
        self.shared.board
    }

    /// Refuses to go on if the board's file is known to have been overwritten while it is open. A write detects that.
    pub fn require_own(&self) -> Result<(), Error> {
        self.shared.presence.require_known()
    }

    /// Returns a count that grows while statements are executed, which tells a slow job from a job that hangs.
    pub fn steps(&self) -> u64 {
        self.shared.steps.load(Ordering::Relaxed)
    }

    /// Commits the queued jobs and closes the board, even if other handles exist. Later jobs fail.
    pub fn close(&self) {
        self.shared.close();
    }

    /// Queues a job. `done` is called on the writer's thread after the commit, or with the error.
    pub fn submit<T: Send + 'static>(
        &self,
        job: impl FnOnce(&mut Board<'_>) -> Result<T, Error> + Send + 'static,
        done: impl FnOnce(Result<T, Error>) + Send + 'static,
    ) {
        let job = |board: &mut Board<'_>| job(board).map(|made| Box::new(made) as Made);
        self.queue(Pending::new(Box::new(job), Box::new(|result| done(result.and_then(typed)))));
    }

    /// Queues a job without its types.
    fn queue(&self, pending: Pending) {
        let queue = self.shared.queue.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let refused = match queue {
            Some(queue) => queue.send(pending).err().map(|refused| refused.0),
            None => Some(pending),
        };
        if let Some(pending) = refused {
            pending.finish(Some(&gone()));
        }
    }

    /// Runs a job and waits for its commit. Must not be called on the writer's own thread.
    pub fn call<T: Send + 'static>(
        &self,
        job: impl FnOnce(&mut Board<'_>) -> Result<T, Error> + Send + 'static,
    ) -> Result<T, Error> {
        let (reply, answer) = mpsc::sync_channel(1);
        self.submit(job, move |result| {
            // The caller may be gone.
            drop(reply.send(result));
        });
        answer.recv().unwrap_or_else(|_| Err(gone()))
    }

    /// Queues a job that is done once per request. The reply is stored in the same transaction, and a repeat gets that
    /// reply. Only successes are stored.
    ///
    /// # Errors
    /// `done` gets [`Error::Invalid`] if the caller has used the id for another request.
    pub fn submit_once<T: Serialize + DeserializeOwned + Send + 'static>(
        &self,
        request: Request,
        job: impl FnOnce(&mut Board<'_>) -> Result<T, Error> + Send + 'static,
        done: impl FnOnce(Result<T, Error>) + Send + 'static,
    ) {
        let job = |board: &mut Board<'_>| {
            let reply = job(board)?;
            let json = serde_json::to_string(&reply).map_err(|error| unreadable("stored", &error))?;
            Ok(RequestReply { json, made: Some(Box::new(reply)) })
        };
        let done = |reply: Result<RequestReply, Error>| {
            done(reply.and_then(|reply| match reply.made {
                Some(made) => typed(made),
                None => {
                    serde_json::from_slice(reply.json.as_bytes()).map_err(|error| unreadable("read", &error))
                }
            }));
        };
        self.submit_reply_once(request, Box::new(job), Box::new(done));
    }

    /// Does the same with a reply whose type the writer does not know.
    pub fn submit_reply_once(&self, request: Request, job: RequestJob, done: RequestDone) {
        let job = move |board: &mut Board<'_>| {
            if let Some(json) = board.tx.stored_reply(&request)? {
                return Ok(RequestReply { json, made: None });
            }
            let reply = job(board)?;
            board.tx.store_reply(&request, &reply.json, board.now())?;
            Ok(reply)
        };
        self.submit(job, done);
    }
}

/// Result of a job without its type.
type Made = Box<dyn Any + Send>;

/// Job without the type of its result.
type Job = Box<dyn FnOnce(&mut Board<'_>) -> Result<Made, Error> + Send>;

/// Callback of a job.
type Done = Box<dyn FnOnce(Result<Made, Error>) + Send>;

/// Job of a request, whose reply is stored.
pub type RequestJob = Box<dyn FnOnce(&mut Board<'_>) -> Result<RequestReply, Error> + Send>;

/// Callback of such a job.
pub type RequestDone = Box<dyn FnOnce(Result<RequestReply, Error>) + Send>;

/// Reply to a request that is done once.
#[derive(Debug)]
pub struct RequestReply {
    /// Reply as JSON, as it is stored.
    pub json: String,
    /// Reply itself; none if the stored reply to an earlier request is returned.
    pub made: Option<Box<dyn Any + Send>>,
}

/// Returns a result as its type.
fn typed<T: 'static>(made: Made) -> Result<T, Error> {
    let other = |_| Error::Writer { message: "a job has a result of another type".to_owned() };
    made.downcast().map(|made| *made).map_err(other)
}

fn unreadable(step: &str, error: &serde_json::Error) -> Error {
    Error::Writer { message: format!("the reply cannot be {step}: {error}") }
}

fn gone() -> Error {
    Error::Writer { message: "its thread is gone".to_owned() }
}

/// Queued job. Its types are hidden, so that the writer is compiled once for all jobs.
struct Pending {
    job: Option<Job>,
    done: Option<Done>,
    result: Option<Result<Made, Error>>,
}

impl Pending {
    fn new(job: Job, done: Done) -> Self {
        Self { job: Some(job), done: Some(done), result: None }
    }

    /// Runs the job. An error means that its changes are undone.
    fn run(&mut self, board: &mut Board<'_>) -> Result<(), ()> {
        let Some(job) = self.job.take() else { return Err(()) };
        let result = catch_unwind(AssertUnwindSafe(|| job(board)))
            .unwrap_or_else(|_| Err(Error::Writer { message: "a job panicked; it was undone".to_owned() }));
        let is_committed = result.is_ok();
        self.result = Some(result);
        if is_committed { Ok(()) } else { Err(()) }
    }

    /// Returns the error of the store that failed the job, if one did.
    fn storage_error(&self) -> Option<Error> {
        match &self.result {
            Some(Err(error @ Error::Storage { .. })) => Some(error.clone()),
            Some(_) | None => None,
        }
    }

    /// Replaces the result by an error.
    fn fail(&mut self, error: Error) {
        self.result = Some(Err(error));
    }

    /// Calls back with the result, or with the error that lost the whole group.
    fn finish(mut self, lost: Option<&Error>) {
        let result = match (lost, self.result.take()) {
            // A refusal may depend on other jobs of the lost group, so it is lost too.
            (Some(error), _) => Err(error.clone()),
            (None, Some(result)) => result,
            (None, None) => Err(gone()),
        };
        if let Some(done) = self.done.take() {
            // A panic in a callback must not end the writer.
            drop(catch_unwind(AssertUnwindSafe(|| done(result))));
        }
    }
}

/// Serves the queue until its last sender is gone. The log is truncated after some idle time and at the end, because
/// reading connections cannot do it.
fn serve(database: &Database, watched: &Watched, options: &WriterOptions, jobs: &Receiver<Pending>) {
    let mut written = false;
    loop {
        // After a commit, wait only for a while, so that the log is truncated when the board is idle.
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
        // All jobs that are already queued share the next commit.
        let mut batch = vec![first];
        batch.extend(jobs.try_iter().take(BATCH - 1));
        match commit(database, watched, options, &mut batch) {
            Ok(committed) => {
                let changed = committed.is_some();
                written |= changed;
                // Subscribers see the commit before its callers do. A panic in them must not end the writer.
                if let Some(committed) = committed {
                    drop(catch_unwind(AssertUnwindSafe(|| (options.on_commit)(committed))));
                }
                for job in batch {
                    job.finish(None);
                }
                // After the replies, so that no caller waits for the log to grow. A command that ends soon needs no space.
                if changed && options.log_at_end == LogAtEnd::Emptied {
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
        match options.log_at_end {
            LogAtEnd::Emptied => database.empty_log(),
            LogAtEnd::LeftIfShort => database.leave_log(),
        }
    }
}

/// Runs a group in one transaction. Returns the news if it changed the board.
fn commit(
    database: &Database,
    watched: &Watched,
    options: &WriterOptions,
    batch: &mut [Pending],
) -> Result<Option<Committed>, Error> {
    watched.require()?;
    options.fail_point.pass("begin")?;
    // Dropping the transaction undoes it. The callers need the first error, not an error of the rollback.
    let tx = database.write()?;
    let mut changed = false;
    for job in batch.iter_mut() {
        changed |= if changed {
            step(&tx, options, job)?
        } else {
            // Without earlier writes of the group, a failed job is undone by rolling back the whole transaction.
            alone(&tx, options, job)?
        };
    }
    let last_event = tx.last_event()?;
    let last_letter = tx.last_letter()?;
    options.fail_point.pass("commit")?;
    tx.commit()?;
    // After the commit nothing can fail. At this point a test can only end the process.
    drop(options.fail_point.pass("committed"));
    // A commit to a file that its path no longer names is not acknowledged.
    watched.committed(last_event)?;
    Ok(changed.then_some(Committed { last_event, last_letter }))
}

/// Runs a job in its savepoint. Returns true if it changed the board. An error loses the whole group.
fn step(tx: &Tx<'_>, options: &WriterOptions, job: &mut Pending) -> Result<bool, Error> {
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

/// Runs a job without earlier writes in its group, without a savepoint, which would keep a copy of each changed page. A
/// failed job is undone by starting the transaction again.
fn alone(tx: &Tx<'_>, options: &WriterOptions, job: &mut Pending) -> Result<bool, Error> {
    match attempt(tx, options, job)? {
        Attempt::Refused => {
            tx.begin_anew()?;
            Ok(false)
        }
        Attempt::Kept { changed } => Ok(changed),
    }
}

/// Result of a job.
enum Attempt {
    Refused,
    Kept { changed: bool },
}

fn attempt(tx: &Tx<'_>, options: &WriterOptions, job: &mut Pending) -> Result<Attempt, Error> {
    if let Err(error) = options.fail_point.pass("job") {
        job.fail(error);
        return Ok(Attempt::Refused);
    }
    let before = tx.changes();
    let mut board = Board::new(tx, &*options.clock, &*options.entropy, options.quotas.get());
    let outcome = job.run(&mut board);
    if tx.is_over() {
        // SQLite has ended the transaction itself, as it does when the disk is full.
        return Err(job.storage_error().unwrap_or_else(|| Error::Storage {
            kind: StorageKind::Io,
            step: "keep the transaction",
            source: Arc::new(std::io::Error::other("SQLite rolled it back")),
        }));
    }
    Ok(if outcome.is_ok() { Attempt::Kept { changed: tx.changes() != before } } else { Attempt::Refused })
}
