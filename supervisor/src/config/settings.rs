//! Reads settings files safely: only regular files of a limited length, and never a file that could block the reader.

use std::fs::File;
use std::io::{Error, ErrorKind, Read as _, Result};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

/// Longest accepted settings file, in bytes.
const LONGEST: u64 = 1 << 20;

/// Reads a settings file.
pub(crate) fn read(path: &Path) -> Result<String> {
    // `O_NONBLOCK`: opening a FIFO without a writer would block.
    let file =
        File::options().read(true).custom_flags(nix::libc::O_NONBLOCK | nix::libc::O_CLOEXEC).open(path)?;
    let meta = file.metadata()?;
    if meta.is_dir() {
        return Err(ErrorKind::IsADirectory.into());
    }
    if !meta.is_file() {
        return Err(Error::other("it is not a regular file"));
    }
    let mut text = String::new();
    let length = file.take(LONGEST + 1).read_to_string(&mut text)?;
    if length as u64 > LONGEST {
        return Err(Error::other("it has more than 1 MiB"));
    }
    Ok(text)
}

/// Reads a settings file; none if it does not exist.
pub(crate) fn read_if_any(path: &Path) -> Result<Option<String>> {
    match read(path) {
        Err(e) if e.kind() == ErrorKind::NotFound => Ok(None),
        read => read.map(Some),
    }
}
