//! How far a daemon goes: the service, one pass, or the end of what another daemon has left.

/// How far a daemon goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Extent {
    /// Until it is stopped.
    Forever,
    /// Until nothing is left to do; at most this many tasks are started.
    UntilIdle(Option<usize>),
    /// Until what an earlier daemon left has ended; nothing is started.
    Ending,
}
