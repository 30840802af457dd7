//! How far a daemon goes: the service, or one pass.

/// How far a daemon goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Extent {
    /// Until it is stopped.
    Forever,
    /// Until nothing is left to do; at most this many tasks are started.
    UntilIdle(Option<usize>),
}
