//! The corpus of a target: inputs as files, and the input that is being read, for the case that it ends the process.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use sha2::{Digest as _, Sha256};

use crate::judge::Fault;

/// An input that is not read within this many seconds never is.
const HANGS: u32 = 120;

/// The inputs of one target.
#[derive(Debug)]
pub(crate) struct Corpus {
    name: &'static str,
    directory: PathBuf,
    /// Holds the input that is being read, as long as it is, locked. None where another process has it.
    running: Option<(File, PathBuf)>,
}

impl Corpus {
    /// Opens the corpus. What ended an earlier process becomes a part of it.
    pub(crate) fn open(name: &'static str, directory: PathBuf) -> Self {
        let mut corpus = Corpus { name, directory, running: None };
        corpus.running = corpus.take_over();
        corpus
    }

    /// Opens the file of the current input, beside the built tests.
    fn take_over(&self) -> Option<(File, PathBuf)> {
        let tests = std::env::current_exe().ok()?;
        let directory = tests.parent()?.join("fuzz");
        fs::create_dir_all(&directory).ok()?;
        let path = directory.join(format!("{}.running", self.name));
        let file = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(&path).ok()?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock | TryLockError::Error(_)) => return None,
        }
        let unfinished = fs::read(&path).ok().and_then(|bytes| whole(&bytes).map(<[u8]>::to_vec));
        if let Some(input) = unfinished {
            self.write("ended", &input);
        }
        Some((file, path))
    }

    /// All inputs, in the order of their names.
    pub(crate) fn inputs(&self) -> Vec<Vec<u8>> {
        let Ok(entries) = fs::read_dir(&self.directory) else { return Vec::new() };
        let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
        paths.sort();
        paths.iter().filter_map(|path| fs::read(path).ok()).collect()
    }

    /// The place of the input that is being read.
    pub(crate) fn running(&self) -> Running {
        Running::watched(self.name, self.running.as_ref().map(|(_, path)| path.as_path()))
    }

    fn path(&self, prefix: &str, input: &[u8]) -> PathBuf {
        let digest = hex::encode(Sha256::digest(input));
        self.directory.join(format!("{prefix}-{}", &digest[..12]))
    }

    fn write(&self, prefix: &str, input: &[u8]) -> PathBuf {
        let path = self.path(prefix, input);
        fs::create_dir_all(&self.directory).ok();
        fs::write(&path, input).ok();
        path
    }

    /// Keeps an input that has broken a promise, and names its file.
    pub(crate) fn report(&self, input: &[u8], fault: &Fault) -> String {
        let known = self.inputs().contains(&input.to_vec());
        let place = if known { self.directory.clone() } else { self.write("found", input) };
        self.clear();
        let shown: String =
            input.iter().take(600).flat_map(|byte| byte.escape_ascii()).map(char::from).collect();
        let more = if input.len() > 600 { "…" } else { "" };
        format!(
            "{}: {fault}\ninput of {} bytes in {}:\n{shown}{more}",
            self.name,
            input.len(),
            place.display()
        )
    }

    /// Says that nothing has ended the process: what did so before was innocent.
    pub(crate) fn close(&self) {
        self.clear();
        let Ok(entries) = fs::read_dir(&self.directory) else { return };
        for entry in
            entries.flatten().filter(|entry| entry.file_name().as_encoded_bytes().starts_with(b"ended-"))
        {
            fs::remove_file(entry.path()).ok();
        }
    }

    fn clear(&self) {
        if let Some((_, path)) = &self.running {
            fs::remove_file(path).ok();
        }
    }
}

/// An input with its length before it: what was written over a longer one is distinguished from it.
fn whole(bytes: &[u8]) -> Option<&[u8]> {
    let (length, rest) = bytes.split_first_chunk::<8>()?;
    rest.get(..usize::try_from(u64::from_le_bytes(*length)).ok()?)
}

/// The input that is being read. Where it takes too long, the process is ended, and the input is left.
#[derive(Debug)]
pub(crate) struct Running {
    file: Option<File>,
    started: Arc<AtomicU64>,
}

impl Running {
    fn watched(name: &'static str, path: Option<&Path>) -> Self {
        let file =
            path.and_then(|path| OpenOptions::new().write(true).create(true).truncate(false).open(path).ok());
        let started = Arc::new(AtomicU64::new(0));
        let watched = Arc::downgrade(&started);
        let shown = path.map(Path::to_owned).unwrap_or_default();
        thread::spawn(move || {
            let (mut last, mut since) = (0, 0);
            // It ends a second after the target at the latest, with its process in most cases.
            while let Some(started) = watched.upgrade() {
                let now = started.load(Ordering::Relaxed);
                drop(started);
                since = if now == last { since + 1 } else { 0 };
                last = now;
                if since > HANGS {
                    let place = shown.display();
                    panic_and_abort(&format!(
                        "{name}: an input is read for {HANGS} seconds; it is in {place}"
                    ));
                }
                thread::sleep(Duration::from_secs(1));
            }
        });
        Running { file, started }
    }

    /// Notes which input is read from now on.
    pub(crate) fn begin(&mut self, input: &[u8]) {
        self.started.fetch_add(1, Ordering::Relaxed);
        if let Some(file) = &self.file {
            let mut bytes = (input.len() as u64).to_le_bytes().to_vec();
            bytes.extend_from_slice(input);
            file.write_all_at(&bytes, 0).ok();
        }
    }
}

fn panic_and_abort(message: &str) -> ! {
    drop(std::panic::catch_unwind(|| panic!("{message}")));
    std::process::abort()
}
