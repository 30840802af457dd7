//! Accepts connections of a listener.

use std::fmt::Debug;
use std::io;
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};

/// Pause of a listener that cannot accept for lack of descriptors, which return as connections end.
const PAUSE: Duration = Duration::from_millis(100);

/// Source of connections.
pub trait Accept: Send + Sync + 'static {
    type Stream;
    /// Waits for the next connection. Cancel-safe: a connection that is not accepted stays in the backlog.
    fn accept(&self) -> impl Future<Output = io::Result<Self::Stream>> + Send;
}

impl Accept for UnixListener {
    type Stream = UnixStream;

    async fn accept(&self) -> io::Result<UnixStream> {
        UnixListener::accept(self).await.map(|(stream, _)| stream)
    }
}

impl Accept for TcpListener {
    type Stream = TcpStream;

    async fn accept(&self) -> io::Result<TcpStream> {
        TcpListener::accept(self).await.map(|(stream, _)| stream)
    }
}

/// Waits for the next connection, and pauses after each failed try. Cancel-safe. `name` names the listener in the log.
pub async fn next_connection<L: Accept, D: Debug + Sync>(listener: &L, name: &D) -> L::Stream {
    loop {
        match listener.accept().await {
            Ok(stream) => return stream,
            Err(error) => {
                tracing::warn!(%error, listener = ?name, "not_accepted");
                tokio::time::sleep(PAUSE).await;
            }
        }
    }
}
