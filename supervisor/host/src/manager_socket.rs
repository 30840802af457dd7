//! The operator's socket of a service manager (`sd_listen_fds(3)`): the daemon takes it over if it was passed, and
//! leaves it alone otherwise.
//!
//! See decision 0185.

use std::io;
use std::os::fd::{OwnedFd, RawFd};
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::net::sockopt::{socket_acceptconn, socket_domain, socket_type};
use rustix::net::{AddressFamily, SocketType};
use rustix::process::{PidfdFlags, PidfdGetfdFlags, getpid, pidfd_getfd, pidfd_open};

use super::listening::{is_at, is_listened_on, resolved};
use base::exit::Code;
use base::failure::Failure;

/// Name of the socket in its unit (`FileDescriptorName=`).
const NAME: &str = "operator";
/// Time for which a process that a killed daemon was starting may keep the daemon's socket open.
const INHERITED: Duration = Duration::from_secs(2);
const LOOK: Duration = Duration::from_millis(10);

/// Listener on the operator's socket at the start of the daemon.
#[derive(Debug)]
pub enum OperatorSocket {
    /// The service manager's socket, passed to this process.
    Passed(UnixListener),
    /// The service manager, or another process, which did not pass it.
    Held,
    /// None: the daemon makes its own socket.
    Free,
}

impl OperatorSocket {
    /// Returns true if the socket's file belongs to the service manager.
    pub fn is_managers(&self) -> bool {
        matches!(self, OperatorSocket::Passed(_) | OperatorSocket::Held)
    }
}

/// Finds the listener on the operator's socket, and takes the socket over if it was passed. The owner of the root
/// calls this once. No connection is made, because a connection would make the service manager start the service.
/// Blocking.
///
/// # Errors
/// The passed descriptor is not this socket, or users other than its owner may connect to it.
pub fn find(path: &Path) -> Result<OperatorSocket, Failure> {
    let Some(passed) = passed()? else { return Ok(found(path)) };
    require_socket_of(&passed, path)?;
    if !is_at(&passed, path) {
        // The file was removed or replaced by a daemon, so no client can connect to the passed socket.
        tracing::warn!(path = %path.display(), "passed_socket_without_file");
        return Ok(OperatorSocket::Free);
    }
    require_closed(path)?;
    Ok(OperatorSocket::Passed(passed.into()))
}

/// Finds the listener if no socket was passed.
fn found(path: &Path) -> OperatorSocket {
    let start = Instant::now();
    while is_listened_on(path) {
        if start.elapsed() >= INHERITED {
            return OperatorSocket::Held;
        }
        // Polled: no notification announces the close.
        std::thread::sleep(LOOK);
    }
    OperatorSocket::Free
}

/// Returns the refusal to start while a service manager listens, which would start another daemon.
pub fn held(path: &Path) -> Failure {
    let shown = path.display();
    Failure::new(Code::Conflict, format!("a service manager, or another process, listens on {shown}")).hint(format!(
        "start its service, as in: systemctl start supervisor; or stop the socket first: systemctl stop supervisor.socket; \
         where no unit listens, `ss -xlp src {shown}` shows the process, which may be a daemon whose root was removed: end it"
    ))
}

/// Returns the passed socket with the name of the operator's.
fn passed() -> Result<Option<OwnedFd>, Failure> {
    let refused =
        |e: io::Error| Failure::usage(format!("sockets of the service manager cannot be used: {e}"));
    let mut socket_found = None;
    for (number, name) in sd_notify::listen_fds_with_names().map_err(refused)? {
        let socket = own(number).map_err(refused)?;
        if name != NAME || socket_found.is_some() {
            return Err(Failure::usage(format!(
                "the service manager has passed a socket named {name:?}: a daemon takes one, named {NAME:?}"
            ))
            .hint(format!("write FileDescriptorName={NAME} into the socket unit, with one ListenStream=")));
        }
        socket_found = Some(socket);
    }
    Ok(socket_found)
}

/// Takes ownership of a descriptor that is known only by its number: duplicates it and closes the number.
fn own(number: RawFd) -> io::Result<OwnedFd> {
    let process = pidfd_open(getpid(), PidfdFlags::empty())?;
    let copy = pidfd_getfd(process, number, PidfdGetfdFlags::empty())?;
    nix::unistd::close(number)?;
    Ok(copy)
}

/// Refuses a descriptor that is not the listening socket at a path.
fn require_socket_of(socket: &OwnedFd, path: &Path) -> Result<(), Failure> {
    let is_listening = socket_domain(socket).is_ok_and(|domain| domain == AddressFamily::UNIX)
        && socket_type(socket).is_ok_and(|kind| kind == SocketType::STREAM)
        && socket_acceptconn(socket).unwrap_or_default();
    let address = socket.try_clone().ok().filter(|_| is_listening);
    let address = address.and_then(|socket| UnixListener::from(socket).local_addr().ok());
    let (at, shown) = match &address {
        Some(address) => match (address.as_pathname(), address.as_abstract_name()) {
            (Some(at), _) => (Some(at.to_owned()), at.display().to_string()),
            (None, Some(name)) => (None, format!("@{}", String::from_utf8_lossy(name))),
            (None, None) => (None, "a socket without an address".to_owned()),
        },
        None => (None, "something that is not a listening stream socket".to_owned()),
    };
    if at.is_some_and(|at| resolved(&at) == resolved(path)) {
        return Ok(());
    }
    Err(Failure::usage(format!(
        "the service manager has passed {shown}; the operator's socket of this root is {}",
        path.display()
    ))
    .hint(format!("write ListenStream={} into the socket unit", path.display())))
}

/// Refuses a socket to which other users may connect: each connection has the operator's rights.
fn require_closed(path: &Path) -> Result<(), Failure> {
    let meta = std::fs::symlink_metadata(path).map_err(|e| Failure::file("look at the socket", path, &e))?;
    let mode = meta.permissions().mode() & 0o777;
    let of_others = mode & 0o077;
    let daemon_uid = nix::unistd::geteuid().as_raw();
    if of_others == 0 && (meta.uid() == daemon_uid || meta.uid() == 0) {
        return Ok(());
    }
    Err(Failure::new(
        Code::NotPermitted,
        format!("others may connect to {} (owner {}, mode {mode:04o}) and direct this supervisor", path.display(), meta.uid()),
    )
    .hint("write SocketMode=0600 into the socket unit, without SocketUser= and SocketGroup=, and restart the socket"))
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;

    fn listening(dir: &Path, name: &str) -> (PathBuf, OwnedFd) {
        let path = dir.join(name);
        let socket = UnixListener::bind(&path).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
        (path, socket.into())
    }

    #[test]
    fn where_nothing_was_passed_somebody_else_holds_the_socket_or_nobody_does() {
        let dir = tempfile::tempdir().unwrap();
        let (path, socket) = listening(dir.path(), "sock");
        assert!(matches!(find(&path), Ok(OperatorSocket::Held)));
        drop(socket);
        assert!(matches!(find(&path), Ok(OperatorSocket::Free)));
    }

    #[test]
    fn another_socket_than_the_operators_is_refused_with_its_address() {
        let dir = tempfile::tempdir().unwrap();
        let (path, socket) = listening(dir.path(), "sock");
        let (_, other) = listening(dir.path(), "other");
        require_socket_of(&socket, &path).unwrap();
        let link = dir.path().join("link");
        std::os::unix::fs::symlink(dir.path(), &link).unwrap();
        require_socket_of(&socket, &link.join("sock")).unwrap();
        let refused = require_socket_of(&other, &path).unwrap_err();
        assert!(refused.message.contains("other; the operator's socket of this root is"), "{refused}");
        let datagram = std::os::unix::net::UnixDatagram::bind(dir.path().join("datagram")).unwrap();
        let (near, _far) = std::os::unix::net::UnixStream::pair().unwrap();
        for socket in [OwnedFd::from(datagram), OwnedFd::from(near)] {
            let refused = require_socket_of(&socket, &path).unwrap_err();
            assert!(refused.message.contains("something that is not a listening stream socket"), "{refused}");
        }
    }

    #[test]
    fn a_socket_that_others_may_connect_to_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let (path, _socket) = listening(dir.path(), "sock");
        require_closed(&path).unwrap();
        for mode in [0o666, 0o660, 0o620, 0o602] {
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
            let refused = require_closed(&path).unwrap_err();
            assert!(refused.message.contains(&format!("mode {mode:04o}")), "{refused}");
        }
    }
}
