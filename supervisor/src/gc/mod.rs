//! What tasks leave on the host, and how it goes: only what this program made, and nothing that is in use.
//!
//! Whatever lies in a directory that a worker could write is measured and removed by a helper under that worker's uid.

mod logs;
mod scratch;

pub(crate) use logs::remove_all as remove_logs;
pub(crate) use scratch::{Owner, Scratch};

use workspace::Size;

/// Whether things go, or are only looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Deed {
    /// Nothing is changed.
    Look,
    /// What may go goes.
    Remove,
}

/// What becomes of one thing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    /// There is nothing.
    Absent,
    /// It goes, and this is what it holds.
    Gone(Size),
    /// It stays: it is not this program's to remove.
    Foreign(String),
    /// It stays, although it should go: it is in use, or the host refuses.
    Stuck(String),
}
