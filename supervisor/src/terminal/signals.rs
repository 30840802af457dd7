//! The signals that a view on the whole terminal answers, so that the terminal is given back first.

use nix::sys::signal::Signal as Number;
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::failure::Failure;

/// What a shell adds to the number of the signal that ended a command.
const BY_SIGNAL: u8 = 128;

/// What a signal asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Signalled {
    /// To end, with this exit code.
    End(u8),
    /// To stop, as a shell's job.
    Stop,
    /// To go on: the terminal may have been used by others.
    Continue,
}

/// The signals, from now on.
#[derive(Debug)]
pub(crate) struct Signals {
    terminate: Signal,
    hangup: Signal,
    interrupt: Signal,
    stop: Signal,
    go_on: Signal,
}

impl Signals {
    pub(crate) fn listen() -> Result<Self, Failure> {
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

    /// Waits for the next one. Cancel-safe: a signal that was not taken is still there.
    pub(crate) async fn next(&mut self) -> Signalled {
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
