//! Groups of connections, and limits on their number.

use kernel::{BoardId, RunId};

/// Group of a connection, as far as the kernel knows its owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum ConnectionGroup {
    /// Connections of one user: a worker with a uid of its own.
    User(u32),
    /// Connections of one process: a worker under the daemon's uid, before it has presented its token.
    Process(i32),
    /// Connections of one run: they came through its socket, or have presented its token.
    Run(BoardId, RunId),
    /// Connections of unknown owners: they came over loopback.
    Anyone,
}

/// Limits on the concurrent connections of a listener.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ConnectionLimits {
    pub(super) all: usize,
    /// Limit on one group.
    pub(super) each: usize,
    /// Limit on one run, once it is known.
    pub(super) run: usize,
    /// Limit on new connections of one group per second.
    pub(super) rate: u32,
}

/// Limit that a new connection would exceed, with its value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum ConnectionLimit {
    /// Limit on one group.
    Each(usize),
    /// Limit on the listener.
    All(usize),
    /// Limit on the rate of one group.
    Rate(u32),
}

impl ConnectionLimit {
    /// Returns its name in an event of the run.
    pub(super) fn key(self) -> &'static str {
        match self {
            ConnectionLimit::Each(_) => "connections_per_worker",
            ConnectionLimit::All(_) => "connections",
            ConnectionLimit::Rate(_) => "connections_per_second_per_worker",
        }
    }
}

impl std::fmt::Display for ConnectionLimit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            ConnectionLimit::Each(most) => write!(f, "{most} connections are open, the limit of one worker"),
            ConnectionLimit::All(most) => write!(f, "{most} connections are open, the limit of all workers"),
            ConnectionLimit::Rate(rate) => {
                write!(f, "more than {rate} connections a second were opened for too long")
            }
        }
    }
}
