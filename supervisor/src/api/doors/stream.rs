//! What a door accepts: connections of a Unix socket and of a loopback port.

use std::os::fd::AsFd;

use rustix::net::SendFlags;
use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};

use super::bounds::Group;
use crate::host::socket_owner;

/// What a door accepts connections from.
pub(super) trait Listener: Send + 'static {
    /// A connection.
    type Stream: Stream;
    /// Waits for the next one.
    fn accept(&self) -> impl Future<Output = std::io::Result<Self::Stream>> + Send;
}

/// A connection.
pub(super) trait Stream:
    tokio::io::AsyncRead + tokio::io::AsyncWrite + Sized + Unpin + Send + 'static
{
    /// Whose it is, and the uid of the peer.
    fn group(&self) -> (Group, u32);
    /// The Unix user of the other end, where the kernel says it.
    fn owner(&self) -> Option<u32>;
    /// Writes what fits at once.
    fn say(&self, bytes: &[u8]);
    /// The same connection on no runtime.
    type Homeless: Send + 'static;
    /// Leaves the runtime that has received it.
    fn leave(self) -> std::io::Result<Self::Homeless>;
    /// Enters the runtime that this is called on.
    fn enter(homeless: Self::Homeless) -> std::io::Result<Self>;
}

impl Listener for UnixListener {
    type Stream = UnixStream;

    async fn accept(&self) -> std::io::Result<UnixStream> {
        UnixListener::accept(self).await.map(|(stream, _)| stream)
    }
}

impl Stream for UnixStream {
    fn group(&self) -> (Group, u32) {
        // A peer whose credentials cannot be read is nobody: the key or a token must speak for it.
        let Ok(peer) = self.peer_cred() else { return (Group::Anyone, u32::MAX) };
        let own = nix::unistd::geteuid().as_raw();
        let group = match peer.pid() {
            // All workers, and the operator, may have this uid: the process tells them apart.
            Some(pid) if peer.uid() == own => Group::Process(pid),
            Some(_) | None => Group::User(peer.uid()),
        };
        (group, peer.uid())
    }

    fn owner(&self) -> Option<u32> {
        self.peer_cred().ok().map(|peer| peer.uid())
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

/// Writes at once, also where the runtime has not seen yet that this can be done.
fn say(stream: &impl AsFd, bytes: &[u8]) {
    // A peer that does not read hears nothing.
    rustix::net::send(stream, bytes, SendFlags::DONTWAIT | SendFlags::NOSIGNAL).ok();
}

impl Listener for TcpListener {
    type Stream = TcpStream;

    async fn accept(&self) -> std::io::Result<TcpStream> {
        TcpListener::accept(self).await.map(|(stream, _)| stream)
    }
}

impl Stream for TcpStream {
    fn group(&self) -> (Group, u32) {
        (Group::Anyone, u32::MAX)
    }

    fn owner(&self) -> Option<u32> {
        socket_owner::owner(self.peer_addr().ok()?, self.local_addr().ok()?)
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
