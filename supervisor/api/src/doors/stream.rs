//! Connections of Unix sockets and of the loopback port, behind common traits.

use std::os::fd::AsFd;

use rustix::net::SendFlags;
use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};

use super::bounds::Group;
use host::socket_owner::{self, Unknown};

/// Source of connections.
pub(super) trait Listener: Send + 'static {
    /// Type of its connections.
    type Stream: Stream;
    /// Waits for the next connection.
    fn accept(&self) -> impl Future<Output = std::io::Result<Self::Stream>> + Send;
}

/// A connection.
pub(super) trait Stream:
    tokio::io::AsyncRead + tokio::io::AsyncWrite + Sized + Unpin + Send + 'static
{
    /// Returns the group in which it is counted before a request identifies the caller.
    fn group(&self) -> Group;
    /// Returns the Unix user of the peer.
    fn user(&self) -> Result<u32, Unknown>;
    /// Writes as much as fits at once.
    fn say(&self, bytes: &[u8]);
    /// The connection, detached from a runtime.
    type Homeless: Send + 'static;
    /// Detaches it from its runtime.
    fn leave(self) -> std::io::Result<Self::Homeless>;
    /// Attaches it to the present runtime.
    fn enter(homeless: Self::Homeless) -> std::io::Result<Self>;
}

impl Listener for UnixListener {
    type Stream = UnixStream;

    async fn accept(&self) -> std::io::Result<UnixStream> {
        UnixListener::accept(self).await.map(|(stream, _)| stream)
    }
}

impl Stream for UnixStream {
    fn group(&self) -> Group {
        let Ok(peer) = self.peer_cred() else { return Group::Anyone };
        let own = nix::unistd::geteuid().as_raw();
        match peer.pid() {
            // All workers and the operator may share this uid, so the process distinguishes them.
            Some(pid) if peer.uid() == own => Group::Process(pid),
            Some(_) | None => Group::User(peer.uid()),
        }
    }

    fn user(&self) -> Result<u32, Unknown> {
        // A socket without credentials has the uid -1 (`unix(7)`).
        let known = self.peer_cred().ok().map(|peer| peer.uid()).filter(|uid| *uid != u32::MAX);
        known.ok_or(Unknown::Unreported)
    }

    fn say(&self, bytes: &[u8]) {
        say(self, bytes);
    }

    type Homeless = std::os::unix::net::UnixStream;

    fn leave(self) -> std::io::Result<Self::Homeless> {
        self.into_std()
    }

    fn enter(homeless: Self::Homeless) -> std::io::Result<Self> {
        UnixStream::from_std(homeless)
    }
}

/// Writes at once, even if the runtime does not yet know that the socket is writable.
fn say(stream: &impl AsFd, bytes: &[u8]) {
    // A peer that does not read gets nothing.
    rustix::net::send(stream, bytes, SendFlags::DONTWAIT | SendFlags::NOSIGNAL).ok();
}

impl Listener for TcpListener {
    type Stream = TcpStream;

    async fn accept(&self) -> std::io::Result<TcpStream> {
        TcpListener::accept(self).await.map(|(stream, _)| stream)
    }
}

impl Stream for TcpStream {
    fn group(&self) -> Group {
        Group::Anyone
    }

    fn user(&self) -> Result<u32, Unknown> {
        let ends = (self.peer_addr(), self.local_addr());
        let (Ok(theirs), Ok(ours)) = ends else { return Err(Unknown::Unreported) };
        socket_owner::owner(theirs, ours)
    }

    fn say(&self, bytes: &[u8]) {
        say(self, bytes);
    }

    type Homeless = std::net::TcpStream;

    fn leave(self) -> std::io::Result<Self::Homeless> {
        self.into_std()
    }

    fn enter(homeless: Self::Homeless) -> std::io::Result<Self> {
        TcpStream::from_std(homeless)
    }
}
