//! This program as a worker: it stamps its first instruction, or does nothing for long.

use std::io::Write as _;
use std::process::ExitCode;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// What a re-executed bench does.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Role {
    /// Prints the real-time clock, read before anything else.
    Stamp,
    /// Sleeps until it is ended.
    Sleep,
}

impl Role {
    /// The role of a word on the command line.
    pub(crate) fn named(word: &str) -> Option<Self> {
        match word {
            "__stamp" => Some(Role::Stamp),
            "__sleep" => Some(Role::Sleep),
            _ => None,
        }
    }

    /// Plays it.
    pub(crate) fn play(self) -> ExitCode {
        let now = clock();
        match self {
            Role::Stamp => match writeln!(std::io::stdout(), "{}", now.as_nanos()) {
                Ok(()) => ExitCode::SUCCESS,
                Err(_) => ExitCode::FAILURE,
            },
            Role::Sleep => loop {
                std::thread::sleep(Duration::from_hours(1));
            },
        }
    }
}

/// The real-time clock, which worker and bench share.
pub(crate) fn clock() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}
