//! Binds the sockets and the loopback port of a root where callers expect them.
//!
//! The port must be the same for each daemon of the root: workers that outlive a daemon know no other, and their
//! sandbox allows no other.

use std::io::ErrorKind;
use std::net::TcpListener;
use std::os::unix::net::UnixListener;
use std::path::Path;

use rustix::net::{SocketType, listen};
use shim::rundir::write_json;

use base::failure::Failure;
use base::paths::Root;
use host::socket_file;

const FILE: &str = "worker.port";

/// Number of connections that may wait to be accepted, as in the standard library.
const BACKLOG: i32 = 128;

/// Binds a socket, in place of an existing one, and listens.
pub(super) fn bind_unix(path: &Path, mode: u32) -> Result<UnixListener, Failure> {
    let socket = socket_file::bind(path, mode, SocketType::STREAM)?;
    listen(&socket, BACKLOG).map_err(|e| Failure::file("listen on the socket", path, &e.into()))?;
    Ok(socket.into())
}

/// Binds the last daemon's port, or another if that is taken.
pub(super) fn bind_loopback(root: &Root) -> Result<TcpListener, Failure> {
    let failed =
        |e: std::io::Error| Failure::failed(format!("failed to bind a loopback port for workers: {e}"));
    let former = former(root);
    // The standard library sets SO_REUSEADDR, so that lingering connections of the last daemon do not prevent it.
    let listener = match former.map(|port| TcpListener::bind(("127.0.0.1", port))) {
        Some(Ok(listener)) => listener,
        taken => {
            if let (Some(port), Some(Err(error))) = (former, taken) {
                tracing::warn!(
                    port,
                    %error,
                    "loopback_port_taken: workers that an earlier daemon left running do not reach the board any more"
                );
            }
            TcpListener::bind(("127.0.0.1", 0)).map_err(failed)?
        }
    };
    let port = listener.local_addr().map_err(failed)?.port();
    if former != Some(port) {
        write_json(root.dir(), FILE, &port)
            .map_err(|e| Failure::file("write", &root.dir().join(FILE), &e))?;
    }
    Ok(listener)
}

/// Returns the last port; none if the file is missing or invalid.
fn former(root: &Root) -> Option<u16> {
    let path = root.dir().join(FILE);
    match std::fs::read(&path) {
        Ok(bytes) => serde_json::from_slice(&bytes).ok(),
        Err(e) if e.kind() == ErrorKind::NotFound => None,
        Err(error) => {
            tracing::warn!(path = %path.display(), %error, "loopback_port_not_read");
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::paths::RootChoice;

    fn port(listener: &TcpListener) -> u16 {
        listener.local_addr().unwrap().port()
    }

    #[test]
    fn the_next_daemon_has_the_port_of_the_last_one_unless_somebody_else_has_it() {
        let dir = tempfile::tempdir().unwrap();
        let choice = RootChoice { root: Some(dir.path().into()), ..RootChoice::default() };
        let root = choice.resolve(|_| None).unwrap();
        let first = bind_loopback(&root).unwrap();
        let taken = bind_loopback(&root).unwrap();
        assert_ne!(port(&first), port(&taken));
        // A connection that was open when the last daemon ended must not prevent the bind.
        let _peer = std::net::TcpStream::connect(taken.local_addr().unwrap()).unwrap();
        let number = port(&taken);
        drop(taken.accept().unwrap());
        drop(taken);
        assert_eq!(port(&bind_loopback(&root).unwrap()), number);
        std::fs::write(root.dir().join(FILE), "no number").unwrap();
        bind_loopback(&root).unwrap();
    }
}
