//! Faults that are planted to test that the simulator finds them.

use super::fault::Invariant;

/// A fault in the simulated host; the rules are the real ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Plant {
    /// A claim is released while its worker may live.
    ReleaseWithoutProof,
    /// A starting daemon treats live runs as dead.
    ForgetTheLiving,
    /// Two workers are started for one run.
    StartTwice,
    /// A comment is acknowledged without being written.
    DropAcknowledged,
    /// After a crash, an older state of the board is used.
    GoBack,
    /// The exit of an earlier attempt is read for a later one.
    ExitOfAnotherAttempt,
    /// A worker whose run is over writes with a person's rights.
    WriteAfterTheEnd,
    /// A task falsely claims to wait for a slot.
    LieAboutWhy,
    /// The owner loop misses some commits.
    LoseCommits,
    /// The owner loop misses some ends.
    LoseEnds,
    /// The timer is not armed.
    LoseTimer,
}

impl Plant {
    pub(super) const ALL: [(Plant, &'static [Invariant]); 11] = [
        (Plant::ReleaseWithoutProof, &[Invariant::ClaimsByProof, Invariant::NothingTwice]),
        (Plant::ForgetTheLiving, &[Invariant::ClaimsByProof, Invariant::NothingTwice]),
        (Plant::StartTwice, &[Invariant::NothingTwice]),
        (Plant::DropAcknowledged, &[Invariant::NothingLost]),
        (Plant::GoBack, &[Invariant::NothingLost]),
        (Plant::ExitOfAnotherAttempt, &[Invariant::NothingTwice]),
        (Plant::WriteAfterTheEnd, &[Invariant::FencedByRun]),
        (Plant::LieAboutWhy, &[Invariant::TrueWhy]),
        (Plant::LoseCommits, &[Invariant::NoStarvation, Invariant::TrueWhy]),
        (Plant::LoseEnds, &[Invariant::NoStarvation, Invariant::TrueWhy]),
        (Plant::LoseTimer, &[Invariant::NoStarvation, Invariant::TrueWhy]),
    ];
}
