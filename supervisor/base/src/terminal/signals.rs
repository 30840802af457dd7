//! Signals that a full-screen view handles so that it can restore the terminal first.

use nix::sys::signal::Signal as Number;
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::failure::Failure;

/// Base of the exit code for a command that a signal ended: shells add the signal's number to it.
const BY_SIGNAL: u8 = 128;

/// Effect of a signal on a view.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signalled {
    /// Ends the view with this exit code.
    End(u8),
    /// Stops the process as a job of the shell.
    Stop,
    /// Continues the view: others may have used the terminal meanwhile.
    Continue,
}

/// Handlers of the signals, from their registration on.
#[derive(Debug)]
pub struct Signals {
    terminate: Signal,
    hangup: Signal,
    interrupt: Signal,
    stop: Signal,
    go_on: Signal,
}

impl Signals {
    pub fn listen() -> Result<Self, Failure> {
        let listen = |number: Number| {
            signal(SignalKind::from_raw(number as i32))
                .map_err(|e| Failure::failed(format!("{number} cannot be listened to: {e}")))
        };
        Ok(Signals {
            terminate: listen(Number::SIGTERM)?,
            hangup: listen(Number::SIGHUP)?,
            interrupt: listen(Number::SIGINT)?,
            stop: listen(Number::SIGTSTP)?,
            go_on: listen(Number::SIGCONT)?,
        })
    }

    /// Waits for the next signal. Cancel-safe: a signal that was not taken stays pending.
    pub async fn next(&mut self) -> Signalled {
        let ended =
            |number: Number| Signalled::End(u8::try_from(number as i32).map_or(u8::MAX, |n| BY_SIGNAL + n));
        tokio::select! {
            _ = self.terminate.recv() => ended(Number::SIGTERM),
            _ = self.hangup.recv() => ended(Number::SIGHUP),
            _ = self.interrupt.recv() => ended(Number::SIGINT),
            _ = self.stop.recv() => Signalled::Stop,
            _ = self.go_on.recv() => Signalled::Continue,
        }
    }
}
