//! Whose a connection is, and how many of them there may be.

use kernel::{BoardId, RunId};

/// Whose a connection is, as far as the kernel knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Group {
    /// All of one user: a worker that has a uid of its own.
    User(u32),
    /// All of one process: a worker under the daemon's own uid, until it has shown its token.
    Process(i32),
    /// All of one run: they came through its door, or have shown its token.
    Run(BoardId, RunId),
    /// Those of whom nothing is known yet: they came over loopback.
    Anyone,
}

/// How many connections a door has at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Bounds {
    pub(super) all: usize,
    /// Of one group.
    pub(super) each: usize,
    /// Of one run, once it is known.
    pub(super) run: usize,
    /// How many one group may open in a second.
    pub(super) rate: u32,
}

/// A bound that was met.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Bound {
    /// That of one group.
    Each(usize),
    /// That of the door.
    All(usize),
    /// That of one group in a second.
    Rate(u32),
}

impl Bound {
    /// Its name in an event of the run that has met it.
    pub(super) fn key(self) -> &'static str {
        match self {
            Bound::Each(_) => "connections_per_worker",
            Bound::All(_) => "connections",
            Bound::Rate(_) => "connections_per_second_per_worker",
        }
    }
}

impl std::fmt::Display for Bound {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Bound::Each(most) => write!(f, "{most} connections are open, the limit of one worker"),
            Bound::All(most) => write!(f, "{most} connections are open, the limit of all workers"),
            Bound::Rate(rate) => write!(f, "more than {rate} connections a second were opened for too long"),
        }
    }
}
