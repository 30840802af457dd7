//! Modes of a daemon: a service, one pass, or the end of a dead daemon's runs.

/// Time for which a daemon runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DaemonMode {
    /// Runs until it is stopped.
    Forever,
    /// Runs until no task is left to start, and starts at most this many.
    UntilIdle(Option<usize>),
    /// Runs until the runs of a dead daemon have ended; starts none.
    Ending,
}
