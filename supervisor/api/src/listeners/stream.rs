//! Connections of Unix sockets and of the loopback port, behind common traits.

use std::os::fd::AsFd;

use rustix::net::SendFlags;
use tokio::net::{TcpStream, UnixStream};

use super::connection_limits::ConnectionGroup;
use host::socket_owner::{self, Unknown};

/// A connection.
pub(super) trait PeerStream:
    tokio::io::AsyncRead + tokio::io::AsyncWrite + Sized + Unpin + Send + 'static
{
    /// Returns the group in which it is counted before a request identifies the caller.
    fn group(&self) -> ConnectionGroup;
    /// Returns the Unix user of the peer.
    fn user(&self) -> Result<u32, Unknown>;
    /// Writes as much as fits at once.
    fn write_now(&self, bytes: &[u8]);
    /// The connection, detached from a runtime.
    type Detached: Send + 'static;
    /// Detaches it from its runtime.
    fn detach(self) -> std::io::Result<Self::Detached>;
    /// Attaches it to the present runtime.
    fn attach(homeless: Self::Detached) -> std::io::Result<Self>;
}

impl PeerStream for UnixStream {
    fn group(&self) -> ConnectionGroup {
        let Ok(peer) = self.peer_cred() else { return ConnectionGroup::Anyone };
        let euid = nix::unistd::geteuid().as_raw();
        match peer.pid() {
            // All workers and the operator may share this uid, so the process distinguishes them.
            Some(pid) if peer.uid() == euid => ConnectionGroup::Process(pid),
            Some(_) | None => ConnectionGroup::User(peer.uid()),
        }
    }

    fn user(&self) -> Result<u32, Unknown> {
        // A socket without credentials has the uid -1 (`unix(7)`).
        let known = self.peer_cred().ok().map(|peer| peer.uid()).filter(|uid| *uid != u32::MAX);
        known.ok_or(Unknown::Unreported)
    }

    fn write_now(&self, bytes: &[u8]) {
        write_now(self, bytes);
    }

    type Detached = std::os::unix::net::UnixStream;

    fn detach(self) -> std::io::Result<Self::Detached> {
        self.into_std()
    }

    fn attach(homeless: Self::Detached) -> std::io::Result<Self> {
        UnixStream::from_std(homeless)
    }
}

/// Writes at once, even if the runtime does not yet know that the socket is writable.
fn write_now(stream: &impl AsFd, bytes: &[u8]) {
    // A peer that does not read gets nothing.
    rustix::net::send(stream, bytes, SendFlags::DONTWAIT | SendFlags::NOSIGNAL).ok();
}

impl PeerStream for TcpStream {
    fn group(&self) -> ConnectionGroup {
        ConnectionGroup::Anyone
    }

    fn user(&self) -> Result<u32, Unknown> {
        let ends = (self.peer_addr(), self.local_addr());
        let (Ok(theirs), Ok(ours)) = ends else { return Err(Unknown::Unreported) };
        socket_owner::owner(theirs, ours)
    }

    fn write_now(&self, bytes: &[u8]) {
        write_now(self, bytes);
    }

    type Detached = std::net::TcpStream;

    fn detach(self) -> std::io::Result<Self::Detached> {
        self.into_std()
    }

    fn attach(homeless: Self::Detached) -> std::io::Result<Self> {
        TcpStream::from_std(homeless)
    }
}
