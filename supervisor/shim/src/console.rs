//! The terminal of a run. The shim has its master and the worker its slave. Typed bytes come by the FIFO `keys`.
//!
//! The shim keeps a descriptor of the slave, so that a worker can close its terminal and open it again. If a worker
//! does not read, one frame waits here, and the FIFO holds what it has room for. Further bytes are refused to the
//! typing client.
//!
//! See decision 0190.

use std::fs::{File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt as _;

use nix::fcntl::{FcntlArg, FdFlag, fcntl};
use nix::pty::{OpenptyResult, Winsize, openpty};
use nix::sys::stat::Mode;
use nix::unistd::mkfifo;
use rustix::fs::{Gid, Uid};
use rustix::termios::{Winsize as Size, tcsetwinsize};

use crate::rundir::{Keyed, RunDir, TerminalSize};

/// The shim's end of a terminal.
#[derive(Debug)]
pub(crate) struct Console {
    master: File,
    slave: File,
    keys: File,
    /// Incomplete frame read from the FIFO.
    read: Vec<u8>,
    /// Typed bytes that wait for room in the worker's input.
    typed: Vec<u8>,
    /// True once the terminal takes no more input.
    is_gone: bool,
}

impl Console {
    /// Makes a terminal of a size. It belongs to the worker's user if that is not the shim's, because the worker opens
    /// it as `/dev/stdout`.
    pub(crate) fn open(run: &RunDir, size: TerminalSize, owner: Option<(u32, u32)>) -> io::Result<Self> {
        let TerminalSize { rows, columns } = size;
        let size = Winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
        let OpenptyResult { master, slave } = openpty(Some(&size), None)?;
        // openpty(3) sets neither flag. This process has one thread, so nothing is spawned in between.
        for fd in [&master, &slave] {
            fcntl(fd, FcntlArg::F_SETFD(FdFlag::FD_CLOEXEC))?;
        }
        rustix::io::ioctl_fionbio(&master, true)?;
        if let Some((uid, gid)) = owner {
            rustix::fs::fchown(&slave, Some(Uid::from_raw(uid)), Some(Gid::from_raw(gid))).ok();
        }
        let path = run.keys_path();
        mkfifo(&path, Mode::S_IRUSR | Mode::S_IWUSR)?;
        // Opened for writing as well, so that reads see no end of file while no client writes (fifo(7)).
        let nonblocking = rustix::fs::OFlags::NONBLOCK.bits().cast_signed();
        let keys = OpenOptions::new().read(true).write(true).custom_flags(nonblocking).open(path)?;
        let (master, slave) = (File::from(master), File::from(slave));
        Ok(Console { master, slave, keys, read: Vec::new(), typed: Vec::new(), is_gone: false })
    }

    /// Returns another descriptor of the worker's end.
    pub(crate) fn slave(&self) -> io::Result<OwnedFd> {
        self.slave.as_fd().try_clone_to_owned()
    }

    /// Returns another descriptor of the shim's end, to read the worker's output.
    pub(crate) fn output(&self) -> io::Result<OwnedFd> {
        self.master.as_fd().try_clone_to_owned()
    }

    /// Writes typed bytes to the terminal, as far as there is room.
    pub(crate) fn attend(&mut self) {
        self.pass_on();
        if !self.wants_keys() {
            return;
        }
        let mut buffer = [0; Keyed::BYTES];
        match self.keys.read(&mut buffer) {
            Ok(count) => self.read.extend_from_slice(&buffer[..count]),
            Err(_) => return,
        }
        while let Some(keyed) = Keyed::take(&mut self.read) {
            match keyed {
                Keyed::Text(bytes) => self.typed.extend(bytes),
                // The kernel tells the programs at the terminal with SIGWINCH.
                Keyed::Size(TerminalSize { rows, columns }) => {
                    let size = Size { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
                    tcsetwinsize(&self.master, size).ok();
                }
            }
        }
        self.pass_on();
    }

    /// Returns the descriptor to read from, while there is room for more input.
    pub(crate) fn source(&self) -> Option<BorrowedFd<'_>> {
        self.wants_keys().then(|| self.keys.as_fd())
    }

    /// Returns the descriptor to write to, while typed bytes wait for room in it.
    pub(crate) fn sink(&self) -> Option<BorrowedFd<'_>> {
        (!self.typed.is_empty() && !self.is_gone).then(|| self.master.as_fd())
    }

    fn wants_keys(&self) -> bool {
        self.typed.is_empty() && !self.is_gone
    }

    fn pass_on(&mut self) {
        while !self.typed.is_empty() && !self.is_gone {
            match self.master.write(&self.typed) {
                // A full line discipline takes nothing.
                Ok(0) => return,
                Ok(count) => drop(self.typed.drain(..count)),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                // Its session has ended, and the run with it.
                Err(_) => self.is_gone = true,
            }
        }
    }
}
