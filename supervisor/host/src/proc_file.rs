//! Reads files of other processes in `/proc`, whose size those processes control.
//!
//! A process can extend the range of its environment and command line over all its memory (`PR_SET_MM_MAP` of
//! `prctl(2)`), so such files are read up to a limit.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::Path;

use procfs::ProcError;
use shim::shortage::unless_short;

/// Limit on an environment, in bytes.
pub const ENVIRONMENT: usize = 1024 * 1024;
/// Limit on a command line, in bytes.
pub const COMMAND: usize = 4 * 1024;
/// Limit on files that the kernel itself writes, in bytes: the status of a process, its cgroups.
pub(crate) const KERNEL: usize = 64 * 1024;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Beginning {
    pub bytes: Vec<u8>,
    /// True if the file is longer.
    pub is_cut: bool,
}

/// Reads a file up to a limit in bytes.
pub fn read_bounded(path: &Path, limit: usize) -> io::Result<Beginning> {
    let most = u64::try_from(limit).map_or(u64::MAX, |limit| limit.saturating_add(1));
    let mut bytes = Vec::new();
    File::open(path)?.take(most).read_to_end(&mut bytes)?;
    let is_cut = bytes.len() > limit;
    bytes.truncate(limit);
    Ok(Beginning { bytes, is_cut })
}

/// Returns a result about a process; none if the process has ended or is hidden from this user.
///
/// # Errors
/// The host lacks resources at present, which says nothing about the process.
pub fn of_process<T>(read: Result<T, ProcError>) -> io::Result<Option<T>> {
    match read {
        Ok(read) => Ok(Some(read)),
        Err(ProcError::Io(error, _)) => unless_short(Err(error)),
        Err(_) => Ok(None),
    }
}

/// Returns the real, effective, saved and file-system uid of a process; none if it has ended.
///
/// The owner of its files in `/proc` is less reliable: the files of a process that may not be dumped belong to root.
///
/// # Errors
/// The host lacks resources at present.
pub fn users(pid: i32) -> io::Result<Option<[u32; 4]>> {
    let path = format!("/proc/{pid}/status");
    let status = unless_short(read_bounded(Path::new(&path), KERNEL))?;
    Ok(status.and_then(|status| users_in(&status.bytes)))
}

fn users_in(status: &[u8]) -> Option<[u32; 4]> {
    let line = status.split(|byte| *byte == b'\n').find_map(|line| line.strip_prefix(b"Uid:"))?;
    let users = str::from_utf8(line).ok()?.split_whitespace().map_while(|word| word.parse().ok());
    users.collect::<Vec<_>>().try_into().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_is_read_than_the_limit() {
        let zero = read_bounded(Path::new("/dev/zero"), 4).unwrap();
        assert_eq!(zero, Beginning { bytes: vec![0; 4], is_cut: true });
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), "text").unwrap();
        let whole = read_bounded(file.path(), 4).unwrap();
        assert_eq!(whole, Beginning { bytes: b"text".to_vec(), is_cut: false });
    }

    #[test]
    fn the_users_of_a_process_are_those_of_its_status() {
        let own = std::process::id().cast_signed();
        let real = users(own).unwrap().map(|users| users[0]);
        assert_eq!(real, Some(rustix::process::getuid().as_raw()));
        assert_eq!(users(0).unwrap(), None);
    }

    #[test]
    fn a_process_that_cannot_be_read_for_now_is_not_taken_for_one_that_is_not_there() {
        let failed = |number: nix::errno::Errno| {
            of_process::<()>(Err(ProcError::Io(io::Error::from_raw_os_error(number as i32), None)))
        };
        assert!(failed(nix::errno::Errno::ESRCH).unwrap().is_none());
        assert!(of_process::<()>(Err(ProcError::NotFound(None))).unwrap().is_none());
        assert!(failed(nix::errno::Errno::EMFILE).is_err() && failed(nix::errno::Errno::ENOMEM).is_err());
    }
}
