//! Lends the person's terminal to a worker: each key is passed on unchanged, and the worker's drawing goes to the
//! terminal. The terminal is restored however this process ends, except by SIGKILL.

use std::io::{self, Read as _, Write as _};
use std::sync::Once;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::Duration;

use ratatui::crossterm::terminal::{disable_raw_mode, enable_raw_mode, is_raw_mode_enabled};
use rustix::stdio::stdout;
use rustix::termios::tcgetwinsize;
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
        enable_raw_mode().map_err(failed)?;
        let (out, written) = writer();
        Ok(Lent { drawn: Drawn::default(), out: Some(out), written })
    }

    /// Takes the terminal again, after others have used it.
    pub fn resume() {
        if is_lent() {
            // Raw mode is left first. Otherwise crossterm takes it to be set.
            disable_raw_mode().and_then(|()| enable_raw_mode()).ok();
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

/// Returns true while the terminal is lent.
fn is_lent() -> bool {
    is_raw_mode_enabled().unwrap_or(false)
}

/// Restores the terminal, once. The modes come first, so that at least the keys work on a terminal that accepts no
/// output.
fn give_back(is_full_screen: bool) {
    if !is_lent() {
        return;
    }
    disable_raw_mode().ok();
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
            if !is_lent() || out.write_all(piece.as_bytes()).and_then(|()| out.flush()).is_err() {
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
