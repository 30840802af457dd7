//! Examines paths that callers name, without following symbolic links: the caller may have no right to learn about the
//! target of a link.

use std::io;
use std::path::Path;

use rustix::fs::{CWD, Mode, OFlags, ResolveFlags, Stat, fstat, openat2};
use rustix::io::Errno;

/// Returns the status of a file. If the last part of the path is a symbolic link, returns the status of the link
/// itself.
///
/// # Errors
/// Fails if the file is missing, or if another part of the path is a symbolic link ([`is_linked`]).
pub fn status(path: &Path) -> io::Result<Stat> {
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let resolve = ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    Ok(fstat(openat2(CWD, path, flags, Mode::empty(), resolve)?)?)
}

/// Returns true if [`status`] failed because the path leads through a symbolic link (ELOOP).
pub fn is_linked(error: &io::Error) -> bool {
    error.raw_os_error() == Some(Errno::LOOP.raw_os_error())
}

/// Returns true if the file exists, and its path leads through no symbolic link.
pub fn exists(path: &Path) -> bool {
    status(path).is_ok()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn a_path_through_a_link_tells_nothing_of_the_place_behind_it() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().canonicalize().unwrap().join(name);
        std::fs::create_dir(at("real")).unwrap();
        std::fs::write(at("real/there"), "").unwrap();
        symlink(at("real"), at("link")).unwrap();
        symlink(at("real/there"), at("file")).unwrap();
        symlink(at("nowhere"), at("broken")).unwrap();
        assert!(exists(&at("real/there")) && !exists(&at("real/absent")));
        for name in ["link/there", "link/absent"] {
            assert!(is_linked(&status(&at(name)).unwrap_err()), "{name}");
        }
        assert!(
            exists(&at("file")) && exists(&at("broken")),
            "a link itself is there, whatever is behind it"
        );
    }
}
