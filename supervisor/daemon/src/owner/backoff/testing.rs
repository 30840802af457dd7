//! Times and tasks for the tests of breakers and pauses.

use kernel::{BoardName, Timestamp};

use crate::run::key::TaskKey;

/// Returns a time, in seconds since the epoch.
pub(super) fn at(seconds: i64) -> Timestamp {
    Timestamp::from_micros(seconds * 1_000_000)
}

/// Returns a task of the default board.
pub(super) fn key(n: u32) -> TaskKey {
    TaskKey { board: BoardName::default(), task: format!("t_{n:08x}").parse().unwrap() }
}
