//! `attach` for the terminal of a worker: shows its output and sends it typed keys, until the person leaves or the run
//! ends.

use std::pin::Pin;
use std::time::Duration;

use kernel::{RunId, TaskId};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc;
use tokio::time::{Instant, MissedTickBehavior, interval, sleep_until};

use crate::client::Client;
use base::exit::Code;
use base::failure::Failure;
use base::terminal::raw::{Lent, keys};
use base::terminal::signals::{Signalled, Signals};
use base::terminal::{complain, printable};
use verbs::{Log, LogReply, RequestedSize, Type, Typed};

/// The key that leaves the worker: Ctrl-].
const LEAVE: u8 = 0x1d;
/// Limit on the bytes sent at once. Longer input goes in pieces.
const PIECE: usize = 1024;
/// Interval at which the daemon is told that a person is at the terminal.
const STILL_THERE: Duration = Duration::from_secs(5);
/// Pause after a refusal by a worker that reads nothing, or without a response of the daemon.
const AGAIN: Duration = Duration::from_millis(200);

/// Reasons why a person left the terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AttachEnd {
    /// They pressed the key for that, or their terminal is gone.
    Alone,
    /// The run has ended.
    Over,
    /// A signal asks this process to end, with this code.
    Signalled(u8),
}

/// The keys of a person, from the first terminal of a task to its last.
pub(super) struct Keyboard {
    typed: Option<mpsc::Receiver<Vec<u8>>>,
    holder: String,
}

type SendingKeys<'a> = Pin<Box<dyn Future<Output = (Vec<u8>, Result<Typed, Failure>)> + Send + 'a>>;

/// A terminal, while a person is at it.
struct Attached<'a> {
    client: &'a Client,
    task: &'a TaskId,
    holder: &'a str,
    screen: Lent,
    /// Output for the person's terminal.
    pending: Option<String>,
    /// Typed bytes that are not sent yet.
    unsent: Vec<u8>,
    /// True if a message to the daemon is due: the size of the person's terminal, or the sign that a person is there.
    is_due: bool,
    sending: Option<SendingKeys<'a>>,
    /// Not before then, after the daemon or the worker took nothing.
    pause: Option<Instant>,
    /// Other people at the keys, as last reported.
    typist: Option<String>,
}

impl Keyboard {
    pub(super) fn new() -> Self {
        Keyboard { typed: None, holder: uuid::Uuid::new_v4().to_string() }
    }

    /// Shows the terminal of a run from the offset of `log` on, which is updated, and sends typed keys.
    pub(super) async fn attach(
        &mut self,
        client: &Client,
        task: &TaskId,
        run: RunId,
        log: &mut Log,
        first: LogReply,
    ) -> Result<AttachEnd, Failure> {
        complain(&format!(
            "This is the terminal of run {run}. What you type goes to its worker; Ctrl-] detaches."
        ));
        let mut signals = Signals::listen()?;
        let mut resized = signal(SignalKind::window_change())
            .map_err(|e| Failure::failed(format!("SIGWINCH cannot be listened to: {e}")))?;
        let mut still_there = interval(STILL_THERE);
        still_there.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let typed = self.typed.get_or_insert_with(keys);
        let mut here = Attached::new(client, task, &self.holder, Lent::lend()?);
        here.show(log, &first);
        let left = loop {
            here.send();
            let pause = here.pause;
            // Each branch is cancel-safe: the log is read again from the same offset, unread keys and signals stay in
            // their streams, and a pending piece is kept outside of the loop.
            tokio::select! {
                room = here.screen.room(), if here.pending.is_some() => match (room, here.pending.take()) {
                    (Some(room), Some(piece)) => drop(room.send(piece)),
                    _ => break AttachEnd::Alone,
                },
                piece = client.call(&*log), if here.pending.is_none() => match piece {
                    Ok(piece) if piece.ended || !piece.terminal => {
                        here.show(log, &piece);
                        if piece.text.is_empty() { break AttachEnd::Over }
                    }
                    Ok(piece) => here.show(log, &piece),
                    // The run continues without a daemon, and the next daemon takes it over.
                    Err(failure) if matches!(failure.code, Code::Unreachable | Code::TryAgain) => tokio::time::sleep(AGAIN).await,
                    Err(failure) => {
                        drop(here);
                        return Err(failure);
                    }
                },
                keys = typed.recv() => match keys {
                    Some(keys) => if let Some(left) = here.typed(&keys) { break left },
                    None => break AttachEnd::Alone,
                },
                (bytes, answer) = async { match &mut here.sending { Some(sending) => sending.await, None => std::future::pending().await } } => {
                    here.sending = None;
                    here.sent(bytes, answer);
                }
                () = async { match pause { Some(at) => sleep_until(at).await, None => std::future::pending().await } } => here.pause = None,
                _ = resized.recv() => here.is_due = true,
                _ = still_there.tick() => here.is_due = true,
                signalled = signals.next() => match signalled {
                    Signalled::End(code) => break AttachEnd::Signalled(code),
                    Signalled::Stop => {}
                    Signalled::Continue => Lent::resume(),
                },
            }
        };
        here.leave().await;
        Ok(left)
    }
}

impl<'a> Attached<'a> {
    fn new(client: &'a Client, task: &'a TaskId, holder: &'a str, screen: Lent) -> Self {
        Attached {
            client,
            task,
            holder,
            screen,
            pending: None,
            unsent: Vec::new(),
            is_due: true,
            sending: None,
            pause: None,
            typist: None,
        }
    }

    fn show(&mut self, log: &mut Log, piece: &LogReply) {
        log.offset = Some(piece.next_offset);
        let drawn = self.screen.drawn(&piece.text);
        if !drawn.is_empty() {
            self.pending = Some(drawn);
        }
    }

    /// Takes typed bytes up to the key that leaves the worker.
    fn typed(&mut self, keys: &[u8]) -> Option<AttachEnd> {
        let end = keys.iter().position(|key| *key == LEAVE);
        // The buffer is limited, in case the worker reads nothing for a long time.
        if self.unsent.len() < PIECE * 64 {
            self.unsent.extend_from_slice(&keys[..end.unwrap_or(keys.len())]);
        }
        end.map(|_| AttachEnd::Alone)
    }

    /// Sends pending bytes and sizes, one request at a time.
    fn send(&mut self) {
        if self.sending.is_some() || self.pause.is_some() || (self.unsent.is_empty() && !self.is_due) {
            return;
        }
        let mut say = Type::attached(self.task, self.holder);
        let whole = whole_characters(&self.unsent, PIECE);
        let bytes: Vec<u8> = self.unsent.drain(..whole).collect();
        say.text = String::from_utf8_lossy(&bytes).into_owned();
        say.size =
            Lent::size().filter(|_| self.is_due).map(|(rows, columns)| RequestedSize { rows, columns });
        self.is_due = false;
        let client = self.client;
        self.sending = Some(Box::pin(async move { (bytes, client.call(&say).await) }));
    }

    /// Handles the response to a request.
    fn sent(&mut self, bytes: Vec<u8>, answer: Result<Typed, Failure>) {
        match answer {
            Ok(Typed { is_full: true, .. }) => {
                self.unsent.splice(..0, bytes);
                self.pause = Some(Instant::now() + AGAIN);
            }
            Ok(Typed { typist: Some(name), .. }) => {
                self.unsent.clear();
                if self.typist.as_ref() != Some(&name) {
                    complain(&format!(
                        "\r\n{} types here: you can watch, but what you type is dropped.\r",
                        printable(&name)
                    ));
                }
                self.typist = Some(name);
            }
            Ok(_) => self.typist = None,
            // The input may have reached the worker, so it is not sent again.
            Err(_) => self.pause = Some(Instant::now() + AGAIN),
        }
    }

    /// Sends the last typed bytes, then releases the keyboard and the terminal.
    async fn leave(mut self) {
        let last = async {
            if let Some(sending) = self.sending.take() {
                let (bytes, answer) = sending.await;
                self.sent(bytes, answer);
            }
            self.pause = None;
            self.is_due = false;
            self.send();
            if let Some(sending) = self.sending.take() {
                drop(sending.await);
            }
            let bye = Type { leave: true, ..Type::attached(self.task, self.holder) };
            drop(self.client.call(&bye).await);
        };
        // Without a response, the daemon releases the keyboard when its time is over.
        drop(tokio::time::timeout(Duration::from_secs(2), last).await);
    }
}

/// Returns the number of the first bytes to send: whole characters, and at least one byte.
fn whole_characters(bytes: &[u8], most: usize) -> usize {
    let first = &bytes[..bytes.len().min(most)];
    let begun = first.utf8_chunks().last().map_or(0, |chunk| chunk.invalid().len());
    match first.len() - begun {
        0 => first.len(),
        whole => whole,
    }
}

#[cfg(test)]
mod tests {
    use super::whole_characters;

    #[test]
    fn what_is_sent_at_once_ends_between_two_characters() {
        assert_eq!(whole_characters("añb".as_bytes(), 2), 1);
        assert_eq!(whole_characters("añb".as_bytes(), 3), 3);
        assert_eq!(whole_characters(b"", 9), 0);
        assert_eq!(whole_characters(b"\xff", 9), 1, "it is sent as what stands for it");
    }
}
