//! Read-only connections to a board, used at the same time as its writer.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::board::view::View;
use crate::model::clock::Clock;
use crate::model::error::Error;
use crate::store::open_error::OpenError;
use crate::store::presence::Presence;
use crate::store::tx::Database;

/// Largest number of idle connections.
const IDLE: usize = 8;

/// Pool of read-only connections, shared by its clones.
#[derive(Clone)]
pub struct Readers {
    shared: Arc<Shared>,
}

struct Shared {
    path: PathBuf,
    clock: Arc<dyn Clock>,
    idle: Mutex<Vec<Database>>,
    presence: Presence,
    /// Connection of its own, because `data_version` shows only commits of other connections. Opened when it is needed.
    watch: Mutex<Option<Database>>,
}

impl fmt::Debug for Readers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Readers").field("path", &self.shared.path).finish_non_exhaustive()
    }
}

impl Readers {
    /// Opens the board at `path` for reading.
    pub fn open(path: &Path, clock: Arc<dyn Clock>) -> Result<Self, OpenError> {
        Self::with_idle(path, clock, vec![Database::reader(path)?])
    }

    /// Makes readers of a board that this process has opened for writing. They connect to it when they are used.
    pub fn beside_writer(path: &Path, clock: Arc<dyn Clock>) -> Result<Self, OpenError> {
        Self::with_idle(path, clock, Vec::new())
    }

    fn with_idle(path: &Path, clock: Arc<dyn Clock>, idle: Vec<Database>) -> Result<Self, OpenError> {
        let presence = Presence::open(path).map_err(OpenError::io("look at", path))?;
        let (idle, watch) = (Mutex::new(idle), Mutex::new(None));
        Ok(Self { shared: Arc::new(Shared { path: path.to_owned(), clock, idle, presence, watch }) })
    }

    /// Runs `f` with a view of the board at one moment, in a read transaction.
    pub fn with<T>(&self, f: impl FnOnce(&View<'_>) -> Result<T, Error>) -> Result<T, Error> {
        let (mut f, mut result) = (Some(f), None);
        self.read(&mut |view| result = f.take().map(|f| f(view)))?;
        result.unwrap_or_else(|| Err(Error::Writer { message: "the board was not read".to_owned() }))
    }

    /// Calls `f` once. Not generic, so that it is compiled once for all reads.
    fn read(&self, f: &mut dyn FnMut(&View<'_>)) -> Result<(), Error> {
        let database = self.taken()?;
        let tx = database.read()?;
        f(&View { tx: &tx, clock: &*self.shared.clock });
        // A connection that cannot end its transaction is dropped, which ends it.
        if tx.roll_back().is_ok() {
            self.put_back(database);
        }
        Ok(())
    }

    fn taken(&self) -> Result<Database, Error> {
        let idle = lock(&self.shared.idle).pop();
        idle.map_or_else(|| self.open_another(), Ok)
    }

    fn put_back(&self, database: Database) {
        let mut idle = lock(&self.shared.idle);
        if idle.len() < IDLE {
            idle.push(database);
        }
    }

    /// Opens a further connection to the board's file. Refuses a file that has replaced it, because it may be another
    /// board.
    fn open_another(&self) -> Result<Database, Error> {
        self.shared.presence.require()?;
        Database::reader(&self.shared.path).map_err(|source| Error::Storage {
            kind: crate::StorageKind::Io,
            step: "open another reader",
            source: Arc::new(source),
        })
    }

    /// Fails if the board's file was removed, replaced or truncated while it is open.
    pub fn require_present(&self) -> Result<(), Error> {
        self.shared.presence.require()
    }

    /// Returns a number that changes when any program has committed to the board.
    ///
    /// A command that watches a board without a daemon polls this number. A daemon never polls: it holds the lock of
    /// the root, and every other command sends its writes to the daemon.
    pub fn data_version(&self) -> Result<i64, Error> {
        let mut watch = lock(&self.shared.watch);
        if watch.is_none() {
            *watch = Some(self.open_another()?);
        }
        watch.as_ref().map_or(Ok(0), Database::data_version)
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
