//! Signals of the shim as descriptors for poll(2).

use std::io::{self, PipeReader, Read};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use signal_hook::consts::{SIGCHLD, SIGHUP, SIGINT, SIGTERM, SIGUSR1};
use signal_hook::low_level::pipe;

use crate::rundir::Conversation;

/// The signals that the shim acts on.
#[derive(Debug)]
pub(crate) struct Signals {
    terminate: UnixStream,
    child: UnixStream,
    message: UnixStream,
    _ignored: UnixStream,
}

impl Signals {
    /// Registers the handlers. SIGHUP and SIGINT are caught and ignored, because they are no request to a shim to end.
    pub(crate) fn register() -> io::Result<Self> {
        let (ignored, sink) = UnixStream::pair()?;
        pipe::register(SIGHUP, sink.try_clone()?)?;
        pipe::register(SIGINT, sink)?;
        let message = register(SIGUSR1)?;
        Ok(Self { terminate: register(SIGTERM)?, child: child_pipe()?, message, _ignored: ignored })
    }

    /// Returns true if SIGTERM came since the last call.
    pub(crate) fn take_terminate(&self) -> bool {
        drain(&self.terminate)
    }

    /// Returns true if SIGUSR1 came since the last call: there is a new message for the agent.
    pub(crate) fn take_message(&self) -> bool {
        drain(&self.message)
    }

    /// Discards the SIGCHLDs so far. The caller reaps after this call.
    pub(crate) fn clear_child(&self) {
        drain(&self.child);
    }

    /// Returns the descriptors to wait for.
    pub(crate) fn fds(&self) -> [BorrowedFd<'_>; 3] {
        [self.terminate.as_fd(), self.child.as_fd(), self.message.as_fd()]
    }
}

/// Signals by which a person ends a command at a terminal, and the signals of its processes.
#[derive(Debug)]
pub(crate) struct Attention {
    end: UnixStream,
    child: UnixStream,
}

impl Attention {
    /// Registers the handlers.
    pub(crate) fn register() -> io::Result<Self> {
        let (end, sink) = UnixStream::pair()?;
        end.set_nonblocking(true)?;
        for signal in [SIGHUP, SIGINT, SIGTERM] {
            pipe::register(signal, sink.try_clone()?)?;
        }
        Ok(Self { end, child: child_pipe()? })
    }

    /// Returns true if a signal asked the command to end since the last call.
    pub(crate) fn take_end(&self) -> bool {
        drain(&self.end)
    }

    /// Discards the SIGCHLDs so far. The caller reaps after this call.
    pub(crate) fn clear_child(&self) {
        drain(&self.child);
    }

    /// Returns the descriptors to wait for.
    pub(crate) fn fds(&self) -> [BorrowedFd<'_>; 2] {
        [self.end.as_fd(), self.child.as_fd()]
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

/// Signals that a relay passes on to its agent, as a pipe that each signal makes readable and a flag for each signal. A
/// pipe is no socket, which a policy may deny. A stop of the run signals the agent itself, and not the relay.
#[derive(Debug)]
pub(crate) struct RelaySignals {
    news: PipeReader,
    came: Vec<(i32, Arc<AtomicBool>)>,
}

impl RelaySignals {
    /// Registers the handlers. A program that this process executes does not inherit them.
    pub(crate) fn register() -> io::Result<Self> {
        let (news, write) = io::pipe()?;
        rustix::io::ioctl_fionbio(&news, true)?;
        let mut came = Vec::new();
        for signal in Conversation::SIGNALS {
            let flag = Arc::new(AtomicBool::new(false));
            signal_hook::flag::register(signal, Arc::clone(&flag))?;
            // The pipe is registered after the flag, so a reader that the pipe wakes finds the flag set.
            pipe::register(signal, write.try_clone()?)?;
            came.push((signal, flag));
        }
        pipe::register(SIGCHLD, write)?;
        Ok(Self { news, came })
    }

    /// Returns the signals to pass on that came since the last call. SIGCHLD is discarded; the caller reaps after this
    /// call.
    pub(crate) fn take(&self) -> Vec<i32> {
        drain(&self.news);
        let came = self.came.iter().filter(|(_, flag)| flag.swap(false, Ordering::Relaxed));
        came.map(|(signal, _)| *signal).collect()
    }

    /// Returns the descriptors to wait for.
    pub(crate) fn fd(&self) -> BorrowedFd<'_> {
        self.news.as_fd()
    }
}

/// Empties a pipe. Returns true if it had any bytes.
pub(crate) fn drain(mut pipe: impl Read) -> bool {
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
