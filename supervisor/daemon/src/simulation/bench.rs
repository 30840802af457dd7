//! Real board of a simulation, in a file in memory. Full disks and deaths of the writer can be injected.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU8, Ordering};

use kernel::{
    Board, Clock as _, Error, FailPoints, ManualClock, Readers, SeededEntropy, StorageKind, Timestamp, View,
    Writer, WriterOptions,
};
use tempfile::TempDir;

/// Directory of a file system in memory; the temporary directory replaces it on a host without it.
const MEMORY: &str = "/dev/shm";

/// Point in a write at which the daemon dies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Death {
    /// Before the commit: the write is lost.
    BeforeCommit,
    /// After the commit: the write is durable, and its reply is lost.
    AfterCommit,
}

/// Injected faults and observations of the board.
#[derive(Debug, Default)]
struct InjectedFaults {
    /// Point of a write at which the disk is full: 0 for none, 1 for each job, 2 for the commit, 3 for the begin of the
    /// transaction.
    full: AtomicU8,
    /// True if the next commit fails, because the daemon dies before it.
    dies: AtomicBool,
    /// True if there was a commit since the last query.
    changed: AtomicBool,
    last_event: AtomicI64,
}

impl InjectedFaults {
    fn at(&self, point: &'static str) -> Option<StorageKind> {
        let full = match self.full.load(Ordering::Relaxed) {
            1 => point == "job",
            2 => point == "commit",
            3 => point == "begin",
            _ => false,
        };
        if point == "commit" && self.dies.load(Ordering::Relaxed) {
            return Some(StorageKind::Io);
        }
        full.then_some(StorageKind::Full)
    }
}

/// Board of a simulation.
#[derive(Debug)]
pub(super) struct Bench {
    directory: TempDir,
    number: u32,
    pub(super) clock: Arc<ManualClock>,
    entropy: Arc<SeededEntropy>,
    faults: Arc<InjectedFaults>,
    open: Option<(Writer, Readers)>,
    death: Option<Death>,
    /// True if the daemon that wrote has died.
    pub(super) is_dead: bool,
    /// Last event that was acknowledged.
    pub(super) acknowledged: i64,
    /// Failures that were not injected.
    pub(super) surprises: Vec<String>,
    /// Number of a copy of the files at an earlier time.
    earlier: Option<u32>,
}

impl Bench {
    pub(super) fn new(seed: u64) -> Self {
        let directory = if std::path::Path::new(MEMORY).is_dir() {
            tempfile::tempdir_in(MEMORY)
        } else {
            tempfile::tempdir()
        };
        let mut bench = Bench {
            directory: directory.unwrap(),
            number: 0,
            clock: Arc::new(ManualClock::default()),
            entropy: Arc::new(SeededEntropy::new(seed)),
            faults: Arc::default(),
            open: None,
            death: None,
            is_dead: false,
            acknowledged: 0,
            surprises: Vec::new(),
            earlier: None,
        };
        kernel::create_board(&bench.path(), &"default".parse().unwrap(), &*bench.clock, &*bench.entropy)
            .unwrap();
        bench.open();
        bench
    }

    pub(super) fn path(&self) -> PathBuf {
        self.numbered(self.number)
    }

    fn numbered(&self, number: u32) -> PathBuf {
        self.directory.path().join(format!("board-{number}.db"))
    }

    fn open(&mut self) {
        let (faults, committed) = (Arc::clone(&self.faults), Arc::clone(&self.faults));
        let options = WriterOptions {
            clock: self.clock.clone(),
            entropy: self.entropy.clone(),
            on_commit: Arc::new(move |news| {
                committed.changed.store(true, Ordering::Relaxed);
                committed.last_event.store(news.last_event.get(), Ordering::Relaxed);
            }),
            fail_point: FailPoints::failing(move |point| faults.at(point)),
            ..WriterOptions::default()
        };
        let writer = Writer::open(&self.path(), options).unwrap();
        let readers = Readers::open(&self.path(), self.clock.clone()).unwrap();
        self.open = Some((writer, readers));
    }

    /// Replaces the board by a copy of its committed state, as a killed daemon leaves it, and opens the copy.
    pub(super) fn crash(&mut self) {
        let from = self.number;
        self.copy(from, from + 1);
        self.replace(from + 1);
        self.copy_for_later();
    }

    /// Opens the state of an earlier crash instead. No file system does this: it is a planted fault.
    pub(super) fn go_back(&mut self) {
        let Some(earlier) = self.earlier else { return self.crash() };
        let next = self.number + 1;
        self.copy(earlier, next);
        self.replace(next);
    }

    fn replace(&mut self, next: u32) {
        let before = self.path();
        drop(self.open.take());
        Self::remove(&before);
        self.number = next;
        self.is_dead = false;
        self.death = None;
        self.faults.dies.store(false, Ordering::Relaxed);
        self.open();
    }

    fn remove(path: &std::path::Path) {
        for end in ["", "-wal", "-shm"] {
            drop(std::fs::remove_file(format!("{}{end}", path.display())));
        }
    }

    /// Copies the file and its log, in the state in which a killed process leaves them.
    fn copy(&self, from: u32, to: u32) {
        for end in ["", "-wal"] {
            let (from, to) = (self.numbered(from), self.numbered(to));
            let from = format!("{}{end}", from.display());
            if std::path::Path::new(&from).exists() {
                std::fs::copy(from, format!("{}{end}", to.display())).unwrap();
            }
        }
    }

    fn copy_for_later(&mut self) {
        if self.earlier.is_none() {
            self.copy(self.number, u32::MAX);
            self.earlier = Some(u32::MAX);
        }
    }

    /// Lets the daemon die at its next write.
    pub(super) fn die_at_next_write(&mut self, death: Death) {
        self.death = Some(death);
        self.faults.dies.store(death == Death::BeforeCommit, Ordering::Relaxed);
    }

    /// Makes the disk full at one of the three points of [`Trouble::full`], or no longer full with 0.
    pub(super) fn fill(&mut self, full: u8) {
        self.faults.full.store(full, Ordering::Relaxed);
    }

    pub(super) fn is_full(&self) -> bool {
        self.faults.full.load(Ordering::Relaxed) != 0
    }

    /// Runs a job in the real writer. Only a success counts as acknowledged.
    pub(super) fn call<T: Send + 'static>(
        &mut self,
        job: impl FnOnce(&mut Board<'_>) -> Result<T, Error> + Send + 'static,
    ) -> Result<T, Error> {
        if self.is_dead {
            return Err(died());
        }
        let writer = &self.open.as_ref().unwrap().0;
        let result = writer.call(job);
        self.heard(result)
    }

    /// Runs the job of a repeatable request. A repeat gets the stored reply and does not run the job again.
    pub(super) fn call_once<T: serde::Serialize + serde::de::DeserializeOwned + Send + 'static>(
        &mut self,
        request: kernel::Request,
        job: impl FnOnce(&mut Board<'_>) -> Result<T, Error> + Send + 'static,
    ) -> Result<T, Error> {
        if self.is_dead {
            return Err(died());
        }
        let (reply, answer) = std::sync::mpsc::sync_channel(1);
        let writer = &self.open.as_ref().unwrap().0;
        writer.submit_once(request, job, move |result| drop(reply.send(result)));
        let result = answer.recv().unwrap();
        self.heard(result)
    }

    /// Returns the result that reaches the caller: an error if the daemon dies at this write.
    fn heard<T>(&mut self, result: Result<T, Error>) -> Result<T, Error> {
        if let Some(death) = self.death.take() {
            self.is_dead = true;
            self.faults.dies.store(false, Ordering::Relaxed);
            debug_assert!(death == Death::AfterCommit || result.is_err());
            return Err(died());
        }
        match &result {
            Err(Error::Storage { kind: StorageKind::Full, .. }) if self.is_full() => {}
            Err(error @ (Error::Storage { .. } | Error::Writer { .. })) => {
                self.surprises.push(error.to_string());
            }
            Err(_) => {}
            Ok(_) => self.acknowledged = self.faults.last_event.load(Ordering::Relaxed),
        }
        result
    }

    /// Reads the board.
    pub(super) fn read<T>(&self, f: impl FnOnce(&View<'_>) -> Result<T, Error>) -> T {
        self.open.as_ref().unwrap().1.with(f).unwrap()
    }

    /// Returns true if there was a commit since the last query.
    pub(super) fn take_changed(&self) -> bool {
        self.faults.changed.swap(false, Ordering::Relaxed)
    }

    pub(super) fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// Returns the defects of the file.
    pub(super) fn faults(&self) -> Vec<String> {
        kernel::check_board(&self.path()).unwrap()
    }
}

fn died() -> Error {
    Error::Writer { message: "the daemon has died".to_owned() }
}
