//! The ways in which a daemon stops, and how a run's stop is told to its shim.

use kernel::StopReason;
use serde::{Deserialize, Serialize};

/// How the daemon is to stop.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub(crate) enum StopMode {
    /// Leaves workers running under their shims; the next daemon adopts them.
    Leave,
    /// Starts nothing more and waits for workers, up to the configured limit; then as `Preempt`.
    Drain,
    /// Ends workers with TERM, grace and KILL; their tasks go back to ready.
    Preempt,
    /// Ends workers at once.
    Kill,
}

impl StopMode {
    /// What `status` says while it stops this way.
    pub(super) fn word(self) -> &'static str {
        match self {
            StopMode::Leave => "leaving workers to the next daemon",
            StopMode::Drain => "draining: waits for workers, starts none",
            StopMode::Preempt => "ending workers",
            StopMode::Kill => "killing workers",
        }
    }
}

/// How pressing a stop is: a later one may be sharper than the last, never softer.
pub(super) fn urgency(reason: StopReason) -> u8 {
    match reason {
        StopReason::Verdict => 0,
        StopReason::Reclaimed | StopReason::Cancelled | StopReason::Preempted | StopReason::Stalled => 1,
        StopReason::Kill => 2,
    }
}

/// The shim's word for a reason. A stalled run is ended like one that is taken back; the board knows the difference.
pub(super) fn shim_reason(reason: StopReason) -> crate::rundir::StopReason {
    use crate::rundir::StopReason as Shim;
    match reason {
        StopReason::Verdict => Shim::Verdict,
        StopReason::Reclaimed | StopReason::Stalled => Shim::Reclaimed,
        StopReason::Cancelled => Shim::Cancelled,
        StopReason::Preempted => Shim::Preempted,
        StopReason::Kill => Shim::Kill,
    }
}
