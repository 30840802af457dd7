//! Self-probe of the operator's listener for the watchdog: the daemon makes a connection to itself, which is accepted,
//! read and answered like any other.

use std::io;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::{Mutex, mpsc};

use host::accept::Accept;

/// Request of the probe. Any response, also a refusal, shows that the listener serves.
const REQUEST: &[u8] = b"GET / HTTP/1.1\r\nhost: supervisor\r\nconnection: close\r\n\r\n";

/// Sender of self-probes.
#[derive(Debug)]
pub struct SelfProbe {
    /// Connections to the listener, one at a time, because a probe waits for its response.
    connections: mpsc::Sender<UnixStream>,
}

/// Listener that also accepts self-probe connections; without a socket it accepts only these.
#[derive(Debug)]
pub(super) struct ProbedListener {
    listener: Option<UnixListener>,
    probes: Mutex<mpsc::Receiver<UnixStream>>,
}

/// Returns the sender of probes, and the receiver for the listener.
pub(super) fn self_probe() -> (SelfProbe, mpsc::Receiver<UnixStream>) {
    let (connections, probes) = mpsc::channel(1);
    (SelfProbe { connections }, probes)
}

impl ProbedListener {
    pub(super) fn new(listener: Option<UnixListener>, probes: mpsc::Receiver<UnixStream>) -> Self {
        ProbedListener { listener, probes: Mutex::new(probes) }
    }
}

impl Accept for ProbedListener {
    type Stream = UnixStream;

    async fn accept(&self) -> io::Result<UnixStream> {
        let mut probes = self.probes.lock().await;
        let accepted = async {
            match &self.listener {
                Some(listener) => Accept::accept(listener).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            // Both are cancel-safe: a connection that is not taken stays in its queue.
            accepted = accepted => accepted,
            // If the sender of probes was dropped, only the socket is accepted from.
            Some(stream) = probes.recv() => Ok(stream),
        }
    }
}

impl SelfProbe {
    /// Waits until the listener has responded.
    ///
    /// # Errors
    /// Fails if the listener was dropped or closed the connection, or if no descriptors are left.
    pub async fn probe(&self) -> io::Result<()> {
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
    async fn a_probe_is_answered_by_a_serving_listener_and_fails_without_one() {
        let dir = tempfile::tempdir().unwrap();
        let listener = UnixListener::bind(dir.path().join("socket")).unwrap();
        let (sender, probes) = self_probe();
        let listener = ProbedListener::new(Some(listener), probes);
        let serve = async {
            let mut stream = listener.accept().await.unwrap();
            let mut request = vec![0; REQUEST.len()];
            stream.read_exact(&mut request).await.unwrap();
            stream.write_all(b"HTTP/1.1 404").await.unwrap();
        };
        let (answered, ()) = tokio::join!(sender.probe(), serve);
        answered.unwrap();
        drop(listener);
        assert_eq!(sender.probe().await.unwrap_err().kind(), io::ErrorKind::BrokenPipe);
    }
}
