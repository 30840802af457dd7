//! Faults that are planted to see that the simulator finds them.

use super::fault::Invariant;

/// A fault in what stands around the rules: the rules themselves are the production's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Plant {
    /// A claim is released though nobody knows whether its worker is gone.
    ReleaseWithoutProof,
    /// A daemon that starts takes living runs for dead ones.
    ForgetTheLiving,
    /// Two workers are started for one run.
    StartTwice,
    /// A comment is acknowledged that was not written.
    DropAcknowledged,
    /// After a crash an older state of the board is used.
    GoBack,
    /// The exit of an earlier attempt is read as that of a later one.
    ExitOfAnotherAttempt,
    /// A worker whose run is over writes with a person's right.
    WriteAfterTheEnd,
    /// A task says that it waits for a slot.
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
