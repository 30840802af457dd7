//! The operator's door, asked by the daemon itself: a connection of its own, which is received, read and answered as any other.

use std::io;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::{Mutex, mpsc};

use super::stream::Listener;

/// What it asks. Any answer says that the door serves; a refusal too.
const REQUEST: &[u8] = b"GET / HTTP/1.1\r\nhost: supervisor\r\nconnection: close\r\n\r\n";

/// Asks a door.
#[derive(Debug)]
pub(crate) struct Bell {
    /// One at a time: who rings waits for the answer.
    connections: mpsc::Sender<UnixStream>,
}

/// A listener that receives from its bell, too. Without a listener there is the bell alone.
#[derive(Debug)]
pub(super) struct Belled {
    listener: Option<UnixListener>,
    rung: Mutex<mpsc::Receiver<UnixStream>>,
}

/// Makes a bell and the end that its listener gets.
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
            // Cancel-safe both: what is not taken stays where it is.
            accepted = accepted => accepted.map(|(stream, _)| stream),
            // Without a bell there is the socket alone.
            Some(stream) = rung.recv() => Ok(stream),
        }
    }
}

impl Bell {
    /// Returns when the door has answered.
    ///
    /// # Errors
    /// Fails where nobody receives at the door any more, or where descriptors run out.
    pub(crate) async fn ring(&self) -> io::Result<()> {
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
