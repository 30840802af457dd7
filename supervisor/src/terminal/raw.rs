//! The person's terminal while it is lent to a worker: every key comes as it is, and what the worker draws goes to it. Given back, it is as
//! it was, whatever ends this process but SIGKILL.

use std::io::{self, Read as _, Write as _};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Mutex, Once, PoisonError};
use std::time::Duration;

use rustix::stdio::{stdin, stdout};
use rustix::termios::{OptionalActions, Termios, tcgetattr, tcgetwinsize, tcsetattr};
use tokio::sync::mpsc;

use super::{AS_BEFORE, Drawn, FIRST_SCREEN};
use crate::failure::Failure;

/// How much of what is typed waits to be sent, in pieces; more waits in the terminal.
const TYPED: usize = 16;
/// The most that is read at once of what is typed.
const PIECE: usize = 1024;
/// How much waits for a terminal that takes nothing, in pieces.
const DRAWN: usize = 1;
/// How long a terminal that takes nothing is waited for when it is given back.
const LEAVING: Duration = Duration::from_secs(1);

/// Erases what a worker has drawn below the cursor, such as the foot of an input field.
const BELOW_GONE: &str = "\x1b[J";

/// How the terminal was, while it is lent.
static BEFORE: Mutex<Option<Termios>> = Mutex::new(None);

/// A terminal that is lent. Dropped, it is as it was.
#[derive(Debug)]
pub(crate) struct Lent {
    drawn: Drawn,
    /// None when it is given back.
    out: Option<mpsc::Sender<String>>,
    /// Closed when all of it is written.
    written: Receiver<()>,
}

impl Lent {
    /// Lends the terminal. A panic gives it back before it is reported.
    pub(crate) fn lend() -> Result<Self, Failure> {
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

    /// Takes the terminal anew, after others have had it.
    pub(crate) fn resume() {
        let before = BEFORE.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(mut raw) = before.clone() {
            raw.make_raw();
            tcsetattr(stdin(), OptionalActions::Now, &raw).ok();
        }
    }

    /// What of the worker's writing goes to the terminal.
    pub(crate) fn drawn(&mut self, piece: &str) -> String {
        self.drawn.of(piece)
    }

    /// Waits for room for one more piece. Cancel-safe: nothing is written by it.
    pub(crate) fn room(&self) -> impl Future<Output = Option<mpsc::OwnedPermit<String>>> + use<> {
        let out = self.out.clone();
        async move { out?.reserve_owned().await.ok() }
    }

    /// The size of the terminal in lines and columns; none where it does not say it.
    pub(crate) fn size() -> Option<(u16, u16)> {
        let size = tcgetwinsize(stdout()).ok()?;
        (size.ws_row > 0 && size.ws_col > 0).then_some((size.ws_row, size.ws_col))
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        // What the worker has drawn comes before the terminal is as it was, and none of it after that.
        self.out = None;
        match self.written.recv_timeout(LEAVING) {
            Ok(()) | Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {}
        }
        give_back(self.drawn.is_full_screen());
    }
}

/// Gives the terminal back, once. First the modes: a terminal that takes no output has its keys again at least.
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

/// Writes to the terminal, on a thread that ends with the process or when nothing comes: nothing ends a write to a terminal. A piece that
/// comes to its turn when the terminal was given back is left out.
fn writer() -> (mpsc::Sender<String>, Receiver<()>) {
    let (out, mut pieces) = mpsc::channel::<String>(DRAWN);
    let (is_open, written) = channel();
    std::thread::spawn(move || {
        // Dropped, it says that all is written.
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

/// Reads what a person types, on a thread that ends with the process or when nobody takes it. The channel closes when the terminal is gone.
pub(crate) fn keys() -> mpsc::Receiver<Vec<u8>> {
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
