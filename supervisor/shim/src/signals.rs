//! SIGTERM and SIGCHLD as descriptors to wait for.

use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;

use signal_hook::consts::{SIGCHLD, SIGHUP, SIGINT, SIGTERM};
use signal_hook::low_level::pipe;

/// The signals that the shim acts on.
#[derive(Debug)]
pub(crate) struct Signals {
    terminate: UnixStream,
    child: UnixStream,
    _ignored: UnixStream,
}

impl Signals {
    /// Registers the handlers. SIGHUP and SIGINT are caught and dropped: they are not the shim's way to end.
    pub(crate) fn register() -> io::Result<Self> {
        let (ignored, sink) = UnixStream::pair()?;
        pipe::register(SIGHUP, sink.try_clone()?)?;
        pipe::register(SIGINT, sink)?;
        Ok(Self { terminate: register(SIGTERM)?, child: child_pipe()?, _ignored: ignored })
    }

    /// Returns whether SIGTERM came since the last call.
    pub(crate) fn take_terminate(&self) -> bool {
        drain(&self.terminate)
    }

    /// Forgets the SIGCHLDs that came; the caller reaps after this.
    pub(crate) fn clear_child(&self) {
        drain(&self.child);
    }

    /// Returns what to wait for.
    pub(crate) fn fds(&self) -> [BorrowedFd<'_>; 2] {
        [self.terminate.as_fd(), self.child.as_fd()]
    }
}

fn register(signal: i32) -> io::Result<UnixStream> {
    let (read, write) = UnixStream::pair()?;
    read.set_nonblocking(true)?;
    pipe::register(signal, write)?;
    Ok(read)
}

/// Returns a pipe that SIGCHLD makes readable.
pub(crate) fn child_pipe() -> io::Result<UnixStream> {
    register(SIGCHLD)
}

/// Empties a pipe; returns whether there was anything in it.
pub(crate) fn drain(mut pipe: &UnixStream) -> bool {
    let mut some = false;
    let mut buffer = [0; 64];
    loop {
        match pipe.read(&mut buffer) {
            Ok(count) if count > 0 => some = true,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            _ => return some,
        }
    }
}
