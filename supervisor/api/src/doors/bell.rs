//! Self-probe of the operator's listener for the watchdog: the daemon makes a connection to itself, which is accepted,
//! read and answered like any other.

use std::io;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::{Mutex, mpsc};

use super::stream::Listener;

/// Request of the probe. Any response, also a refusal, shows that the listener serves.
const REQUEST: &[u8] = b"GET / HTTP/1.1\r\nhost: supervisor\r\nconnection: close\r\n\r\n";

/// Sender of self-probes.
#[derive(Debug)]
pub struct Bell {
    /// Connections to the listener, one at a time, because a probe waits for its response.
    connections: mpsc::Sender<UnixStream>,
}

/// Listener that also accepts self-probe connections; without a socket it accepts only these.
#[derive(Debug)]
pub(super) struct Belled {
    listener: Option<UnixListener>,
    rung: Mutex<mpsc::Receiver<UnixStream>>,
}

/// Returns the sender of probes, and the receiver for the listener.
pub(super) fn bell() -> (Bell, mpsc::Receiver<UnixStream>) {
    let (connections, rung) = mpsc::channel(1);
    (Bell { connections }, rung)
}

impl Belled {
    pub(super) fn new(listener: Option<UnixListener>, rung: mpsc::Receiver<UnixStream>) -> Self {
        Belled { listener, rung: Mutex::new(rung) }
    }
}

impl Listener for Belled {
    type Stream = UnixStream;

    async fn accept(&self) -> io::Result<UnixStream> {
        let mut rung = self.rung.lock().await;
        let accepted = async {
            match &self.listener {
                Some(listener) => listener.accept().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            // Both are cancel-safe: a connection that is not taken stays in its queue.
            accepted = accepted => accepted.map(|(stream, _)| stream),
            // If the sender of probes was dropped, only the socket is accepted from.
            Some(stream) = rung.recv() => Ok(stream),
        }
    }
}

impl Bell {
    /// Waits until the listener has responded.
    ///
    /// # Errors
    /// Fails if the listener was dropped or closed the connection, or if no descriptors are left.
    pub async fn ring(&self) -> io::Result<()> {
        let (mut near, far) = UnixStream::pair()?;
        self.connections.send(far).await.map_err(|_| io::ErrorKind::BrokenPipe)?;
        near.write_all(REQUEST).await?;
        near.read_u8().await.map(|_| ())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_bell_is_answered_by_who_receives_at_the_door_and_fails_where_nobody_does() {
        let dir = tempfile::tempdir().unwrap();
        let listener = UnixListener::bind(dir.path().join("socket")).unwrap();
        let (bell, rung) = bell();
        let door = Belled::new(Some(listener), rung);
        let serve = async {
            let mut stream = door.accept().await.unwrap();
            let mut request = vec![0; REQUEST.len()];
            stream.read_exact(&mut request).await.unwrap();
            stream.write_all(b"HTTP/1.1 404").await.unwrap();
        };
        let (rung, ()) = tokio::join!(bell.ring(), serve);
        rung.unwrap();
        drop(door);
        assert_eq!(bell.ring().await.unwrap_err().kind(), io::ErrorKind::BrokenPipe);
    }
}
