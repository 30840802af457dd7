//! Lends the person's terminal to a worker: each key is passed on unchanged, and the worker's drawing goes to the
//! terminal. The terminal is restored however this process ends, except by SIGKILL.

use std::io::{self, Read as _, Write as _};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Mutex, Once, PoisonError};
use std::time::Duration;

use rustix::stdio::{stdin, stdout};
use rustix::termios::{OptionalActions, Termios, tcgetattr, tcgetwinsize, tcsetattr};
use tokio::sync::mpsc;

use super::{AS_BEFORE, Drawn, FIRST_SCREEN};
use crate::failure::Failure;

/// Capacity of the queue of typed input, in pieces. Further input stays in the terminal.
const TYPED: usize = 16;
/// Size of a read of typed input, in bytes.
const PIECE: usize = 1024;
/// Capacity of the queue to a terminal that accepts no output, in pieces.
const DRAWN: usize = 1;
/// Longest wait for a terminal that accepts no output when it is restored.
const LEAVING: Duration = Duration::from_secs(1);

/// Erases leftovers of the worker below the cursor, such as the foot of an input field.
const BELOW_GONE: &str = "\x1b[J";

/// Former modes of the terminal, while it is lent.
static BEFORE: Mutex<Option<Termios>> = Mutex::new(None);

/// A lent terminal. Dropping it restores the terminal.
#[derive(Debug)]
pub struct Lent {
    drawn: Drawn,
    /// None once the terminal is given back.
    out: Option<mpsc::Sender<String>>,
    /// Disconnected when all output is written.
    written: Receiver<()>,
}

impl Lent {
    /// Lends the terminal. A panic restores it before the panic is reported.
    pub fn lend() -> Result<Self, Failure> {
        static HOOK: Once = Once::new();
        HOOK.call_once(|| {
            let report = std::panic::take_hook();
            std::panic::set_hook(Box::new(move |panic| {
                give_back(true);
                report(panic);
            }));
        });
        let failed = |e: io::Error| Failure::failed(format!("the terminal cannot be used: {e}"));
        let before = tcgetattr(stdin()).map_err(|e| failed(e.into()))?;
        let mut raw = before.clone();
        raw.make_raw();
        *BEFORE.lock().unwrap_or_else(PoisonError::into_inner) = Some(before);
        let (out, written) = writer();
        let lent = Lent { drawn: Drawn::default(), out: Some(out), written };
        tcsetattr(stdin(), OptionalActions::Now, &raw).map_err(|e| failed(e.into()))?;
        Ok(lent)
    }

    /// Takes the terminal again, after others have used it.
    pub fn resume() {
        let before = BEFORE.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(mut raw) = before.clone() {
            raw.make_raw();
            tcsetattr(stdin(), OptionalActions::Now, &raw).ok();
        }
    }

    /// Returns the part of the worker's output that goes to the terminal.
    pub fn drawn(&mut self, piece: &str) -> String {
        self.drawn.cleaned(piece)
    }

    /// Waits for space for one more piece in the output queue. Cancel-safe: it writes nothing.
    pub fn room(&self) -> impl Future<Output = Option<mpsc::OwnedPermit<String>>> + use<> {
        let out = self.out.clone();
        async move { out?.reserve_owned().await.ok() }
    }

    /// Returns the size of the terminal in rows and columns; none if the terminal does not report it.
    pub fn size() -> Option<(u16, u16)> {
        let size = tcgetwinsize(stdout()).ok()?;
        (size.ws_row > 0 && size.ws_col > 0).then_some((size.ws_row, size.ws_col))
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        // The queued output of the worker is written before the terminal is restored, and none of it afterwards.
        self.out = None;
        match self.written.recv_timeout(LEAVING) {
            Ok(()) | Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {}
        }
        give_back(self.drawn.is_full_screen());
    }
}

/// Restores the terminal, once. The modes come first, so that at least the keys work on a terminal that accepts no
/// output.
fn give_back(is_full_screen: bool) {
    let before = BEFORE.lock().unwrap_or_else(PoisonError::into_inner).take();
    let Some(before) = before else { return };
    tcsetattr(stdin(), OptionalActions::Now, &before).ok();
    let (done, wait) = channel();
    std::thread::spawn(move || {
        let screen = if is_full_screen { FIRST_SCREEN } else { "" };
        let mut out = io::stdout().lock();
        let end = format!("{screen}{AS_BEFORE}\r\n{BELOW_GONE}");
        out.write_all(end.as_bytes()).and_then(|()| out.flush()).ok();
        done.send(()).ok();
    });
    match wait.recv_timeout(LEAVING) {
        Ok(()) | Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {}
    }
}

/// Writes to the terminal on a thread of its own, because a write to a terminal cannot be cancelled. The thread ends
/// when the queue closes or with the process. A piece whose turn comes after the terminal was given back is dropped.
fn writer() -> (mpsc::Sender<String>, Receiver<()>) {
    let (out, mut pieces) = mpsc::channel::<String>(DRAWN);
    let (is_open, written) = channel();
    std::thread::spawn(move || {
        // Its drop disconnects `written`, which signals that all output is written.
        let _is_open: Sender<()> = is_open;
        while let Some(piece) = pieces.blocking_recv() {
            let mut out = io::stdout().lock();
            let is_lent = BEFORE.lock().unwrap_or_else(PoisonError::into_inner).is_some();
            if !is_lent || out.write_all(piece.as_bytes()).and_then(|()| out.flush()).is_err() {
                return;
            }
        }
    });
    (out, written)
}

/// Reads typed input on a thread of its own, which ends with the process or when the receiver is dropped. The channel
/// closes when the terminal is gone.
pub fn keys() -> mpsc::Receiver<Vec<u8>> {
    let (keys, typed) = mpsc::channel(TYPED);
    std::thread::spawn(move || {
        let mut buffer = [0; PIECE];
        loop {
            match io::stdin().lock().read(&mut buffer) {
                Ok(0) => return,
                Ok(count) => {
                    if keys.blocking_send(buffer[..count].to_vec()).is_err() {
                        return;
                    }
                }
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => return,
            }
        }
    });
    typed
}
