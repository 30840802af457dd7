//! This program as a worker: it prints the time of its first instruction, or sleeps.

use std::io::Write as _;
use std::process::ExitCode;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Role of a re-executed bench.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Role {
    /// Prints the real-time clock, which is read first of all.
    Stamp,
    /// Sleeps until it is killed.
    Sleep,
}

impl Role {
    /// Parses a role on the command line.
    pub(crate) fn named(word: &str) -> Option<Self> {
        match word {
            "__stamp" => Some(Role::Stamp),
            "__sleep" => Some(Role::Sleep),
            _ => None,
        }
    }

    /// Plays the role.
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

/// Reads the real-time clock, which worker and bench share.
pub(crate) fn clock() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}
