//! A command that fills a terminal, with what a person sees there: the bytes are put together as a terminal does.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::os::fd::AsFd as _;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Instant;

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::pty::{Winsize, openpty};
use nix::sys::signal::{Signal, kill};
use nix::sys::termios::{Termios, tcgetattr};
use nix::unistd::Pid;

use super::timeout;

/// A command and its screen.
pub(crate) struct Screen {
    terminal: File,
    /// Settings of the terminal before the command.
    before: Termios,
    child: Child,
    parser: vt100::Parser,
}

impl Screen {
    /// Starts a command on a terminal of a size.
    pub(crate) fn run(command: &mut Command, columns: u16, rows: u16) -> Self {
        let size = Winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
        let pty = openpty(&size, None).unwrap();
        let before = tcgetattr(&pty.master).unwrap();
        let end = || Stdio::from(pty.slave.try_clone().unwrap());
        let command = command.env("TERM", "xterm-256color").stdin(end()).stdout(end()).stderr(end());
        let child = command.spawn().unwrap();
        Screen {
            // The test's own end stays open, so that what is left there can be read after the end of the command.
            terminal: File::from(pty.master),
            before,
            child,
            parser: vt100::Parser::new(rows, columns, 0),
        }
    }

    /// Returns the text on the screen.
    pub(crate) fn text(&self) -> String {
        self.parser.screen().contents()
    }

    /// Waits until the screen is as it should be. The only wait there is.
    #[track_caller]
    pub(crate) fn until(&mut self, what: &str, is_so: impl Fn(&str) -> bool) {
        let start = Instant::now();
        let mut bytes = [0; 4096];
        while !is_so(&self.text()) {
            let left = timeout().saturating_sub(start.elapsed());
            assert!(!left.is_zero(), "it is not so that {what}:\n{}", self.text());
            let wait = PollTimeout::try_from(left).unwrap_or(PollTimeout::MAX);
            if poll(&mut [PollFd::new(self.terminal.as_fd(), PollFlags::POLLIN)], wait).unwrap() == 0 {
                continue;
            }
            match self.terminal.read(&mut bytes) {
                Ok(count) => self.parser.process(&bytes[..count]),
                Err(e) => panic!("the terminal is gone ({e}) before {what}:\n{}", self.text()),
            }
        }
    }

    /// Waits until a text is on the screen.
    #[track_caller]
    pub(crate) fn shows(&mut self, text: &str) {
        self.until(&format!("{text:?} is shown"), |screen| screen.contains(text));
    }

    /// Waits until a text is on the screen no more.
    #[track_caller]
    pub(crate) fn loses(&mut self, text: &str) {
        self.until(&format!("{text:?} is gone"), |screen| !screen.contains(text));
    }

    /// Types.
    pub(crate) fn press(&mut self, keys: &str) {
        self.terminal.write_all(keys.as_bytes()).unwrap();
    }

    /// Sends a signal to the command.
    pub(crate) fn signal(&self, signal: Signal) {
        kill(self.pid(), signal).unwrap();
    }

    /// The command.
    pub(crate) fn pid(&self) -> Pid {
        Pid::from_raw(i32::try_from(self.child.id()).unwrap())
    }

    /// Returns true if the unread output fills the buffer of the terminal.
    pub(crate) fn is_full(&self) -> bool {
        rustix::io::ioctl_fionread(&self.terminal).unwrap() >= 4095
    }

    /// Returns true if the terminal has the settings that it had before the command.
    pub(crate) fn is_as_before(&self) -> bool {
        let now = tcgetattr(&self.terminal).unwrap();
        let settings = |termios: &Termios| (termios.local_flags, termios.input_flags, termios.output_flags);
        settings(&now) == settings(&self.before)
    }

    /// Waits for the end of the command, and requires that it has left the terminal as it was.
    #[track_caller]
    pub(crate) fn end(mut self) -> ExitStatus {
        // A command that has more to write than a terminal takes does not end before it is read.
        let mut bytes = [0; 4096];
        while let Ok(count @ 1..) = self.terminal.read(&mut bytes) {
            self.parser.process(&bytes[..count]);
        }
        let status = self.child.wait().unwrap();
        assert!(self.is_as_before(), "the terminal is not as it was");
        let screen = self.parser.screen();
        assert!(!screen.alternate_screen() && !screen.hide_cursor() && !screen.bracketed_paste());
        status
    }
}
