//! Binds a socket of the daemon to its path: replaces the socket of a daemon that has ended, and gives the file its mode
//! before any client can connect.

use std::io::{self, ErrorKind};
use std::os::fd::OwnedFd;
use std::os::unix::fs::{FileTypeExt as _, PermissionsExt as _};
use std::path::Path;

use rustix::fs::{Mode, fchmod};
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, bind as bind_to, socket_with};

use base::exit::Code;
use base::failure::Failure;
use base::paths::make_dir;

/// Number of retries if the directory of the socket does not exist or is removed meanwhile.
const AGAIN: usize = 3;
/// Mode of a directory that holds sockets. Any user may pass through it; the mode of each socket limits access.
const DIRECTORY: u32 = 0o711;

/// Binds a new socket to a path and replaces an old socket there. The file never has more permissions than `mode`,
/// whatever the umask: a client that connected before a later chmod would keep its connection. The caller holds the
/// lock of the root, so no live daemon listens on the old socket.
///
/// # Errors
/// [`Code::Conflict`] if the path has a file of another type.
pub fn bind(path: &Path, mode: u32, kind: SocketType) -> Result<OwnedFd, Failure> {
    match std::fs::symlink_metadata(path) {
        Ok(meta) if !meta.file_type().is_socket() => {
            return Err(Failure::new(
                Code::Conflict,
                format!(
                    "{} is in the way: the daemon's socket belongs there, and it is not a socket",
                    path.display()
                ),
            )
            .hint("move that file away and start again"));
        }
        Ok(_) => std::fs::remove_file(path).map_err(|e| Failure::file("remove the old socket", path, &e))?,
        Err(_) => {}
    }
    let mut again = AGAIN;
    loop {
        match bound(path, mode, kind) {
            // The directory does not exist, or was removed after it was made.
            Err(error) if error.kind() == ErrorKind::NotFound && again > 0 => {
                again -= 1;
                make_dir(path.parent().unwrap_or(path), DIRECTORY)?;
            }
            outcome => return outcome.map_err(|error| Failure::file("bind the socket", path, &error)),
        }
    }
}

fn bound(path: &Path, mode: u32, kind: SocketType) -> io::Result<OwnedFd> {
    let socket = socket_with(AddressFamily::UNIX, kind, SocketFlags::CLOEXEC, None)?;
    // bind(2) on Linux gives the file the mode of the socket without the bits of the umask. The second call adds those bits.
    fchmod(&socket, Mode::from_raw_mode(mode))?;
    bind_to(&socket, &SocketAddrUnix::new(path)?)?;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode))?;
    Ok(socket)
}

/// Returns a remedy if the path of the daemon's socket has a file of another type.
pub fn in_its_place(socket: &Path) -> Option<String> {
    let kind = socket.symlink_metadata().ok()?.file_type();
    let shown = socket.display();
    (!kind.is_socket())
        .then(|| format!("{shown} is not a socket: move it away, and the daemon creates its own"))
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::*;

    #[test]
    fn a_socket_is_never_more_open_than_it_is_to_be() {
        // Of this process alone: each test runs in its own process.
        rustix::process::umask(Mode::empty());
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("sock");
        let over = AtomicBool::new(false);
        let widest = std::thread::scope(|scope| {
            let seen = scope.spawn(|| {
                let mut widest = 0;
                loop {
                    widest |= std::fs::metadata(&path).map_or(0, |meta| meta.permissions().mode() & 0o777);
                    if over.load(Ordering::Relaxed) {
                        return widest;
                    }
                }
            });
            for kind in [SocketType::STREAM, SocketType::DGRAM].into_iter().cycle().take(4000) {
                drop(bind(&path, 0o600, kind).unwrap());
            }
            over.store(true, Ordering::Relaxed);
            seen.join().unwrap()
        });
        assert_eq!(widest, 0o600, "{widest:o}");
    }

    #[test]
    fn a_directory_that_was_taken_away_is_made_again() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("run/sock");
        drop(bind(&path, 0o600, SocketType::STREAM).unwrap());
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        let directory = path.parent().unwrap();
        assert_eq!(std::fs::metadata(directory).unwrap().permissions().mode() & 0o777, DIRECTORY);
    }

    #[test]
    fn what_is_no_socket_is_not_removed() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("sock");
        std::fs::write(&path, "somebody's").unwrap();
        let failure = bind(&path, 0o600, SocketType::STREAM).unwrap_err();
        assert!(failure.message.contains("is in the way") && failure.hint.is_some(), "{failure}");
        assert_eq!(std::fs::read(&path).unwrap(), b"somebody's");
    }
}
