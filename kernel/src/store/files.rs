//! Names and moves of the files beside a board.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use super::open_error::OpenError;
use crate::model::clock::Timestamp;

/// Moves a board's files away under a name with the reason and the time. A crash in between leaves a board that is
/// refused as missing, never a board without its log.
pub(crate) fn put_aside(path: &Path, why: &str, now: Timestamp) -> Result<Option<PathBuf>, OpenError> {
    let fail = |source| OpenError::Io { step: "move away", path: path.to_owned(), source };
    let aside = with_end(path, &format!(".{why}-{}", now.as_micros()));
    let mut moved = None;
    for end in ["", "-wal", "-shm", "-journal"] {
        match fs::rename(with_end(path, end), with_end(&aside, end)) {
            Ok(()) if end.is_empty() => moved = Some(aside.clone()),
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(fail(error)),
        }
    }
    sync_dir(path)?;
    Ok(moved)
}

/// Renames a draft to a board's file, and makes the rename durable.
pub(crate) fn put_in_place(draft: &Path, path: &Path, step: &'static str) -> Result<(), OpenError> {
    fs::rename(draft, path).map_err(OpenError::io(step, path))?;
    sync_dir(path)
}

/// Makes a file durable. Returns its length.
pub(crate) fn sync(file: &Path) -> Result<u64, OpenError> {
    File::open(file)
        .and_then(|file| file.sync_all().and_then(|()| file.metadata()))
        .map(|meta| meta.len())
        .map_err(|source| OpenError::Io { step: "write", path: file.to_owned(), source })
}

/// Makes the name of a file durable.
pub(crate) fn sync_dir(file: &Path) -> Result<(), OpenError> {
    let dir = match file.parent() {
        Some(dir) if !dir.as_os_str().is_empty() => dir,
        Some(_) | None => Path::new("."),
    };
    File::open(dir).and_then(|dir| dir.sync_all()).map_err(OpenError::io("write", dir))
}

/// Returns the path with a text appended.
pub(crate) fn with_end(path: &Path, end: &str) -> PathBuf {
    let mut name = path.to_owned().into_os_string();
    name.push(end);
    name.into()
}

/// Returns a draft name beside a file that the draft will replace.
pub(crate) fn draft_path(path: &Path) -> PathBuf {
    with_end(path, &format!(".new-{}", uuid::Uuid::new_v4().simple()))
}

/// Writes a small file atomically: it has the old or the new content, even after a power loss, and only its owner can
/// read it. Several processes may write the same file at once; the last writer wins.
pub(crate) fn replace(path: &Path, content: &[u8]) -> io::Result<()> {
    let draft = draft_path(path);
    let written = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&draft)
        .and_then(|mut file| file.write_all(content).and_then(|()| file.sync_all()))
        .and_then(|()| fs::rename(&draft, path));
    if written.is_err() {
        // The caller needs the first error, not this one.
        drop(fs::remove_file(&draft));
    }
    written?;
    File::open(path.parent().unwrap_or(Path::new(".")))?.sync_all()
}
