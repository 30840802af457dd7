//! A command on a terminal of its own, typed at like a person does: a key after what it answers.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::process::{Child, Command, ExitStatus, Stdio};

use nix::pty::openpty;

/// A command and its terminal.
#[derive(Debug)]
pub(crate) struct Terminal {
    keyboard: File,
    child: Child,
    seen: String,
}

impl Terminal {
    /// Starts a command on a terminal.
    pub(crate) fn run(command: &mut Command) -> Self {
        let pty = openpty(None, None).unwrap();
        let end = || Stdio::from(pty.slave.try_clone().unwrap());
        let child = command.env("TERM", "xterm").stdin(end()).stdout(end()).stderr(end()).spawn().unwrap();
        Terminal { keyboard: File::from(pty.master), child, seen: String::new() }
    }

    /// Waits until the screen has got some text since the last wait.
    #[track_caller]
    pub(crate) fn until(&mut self, text: &str) {
        let mut bytes = [0; 1024];
        while !self.seen.contains(text) {
            // The kernel ends the read when the command and its terminal are gone.
            match self.keyboard.read(&mut bytes) {
                Ok(count) if count > 0 => self.seen.push_str(&String::from_utf8_lossy(&bytes[..count])),
                Ok(_) | Err(_) => panic!("{text:?} never came: {}", self.seen),
            }
        }
        let end = self.seen.find(text).map_or(0, |at| at + text.len());
        self.seen.drain(..end);
    }

    /// Types.
    pub(crate) fn press(&mut self, keys: &str) {
        self.keyboard.write_all(keys.as_bytes()).unwrap();
    }

    /// Waits for the end of the command.
    pub(crate) fn end(mut self) -> ExitStatus {
        self.child.wait().unwrap()
    }
}
