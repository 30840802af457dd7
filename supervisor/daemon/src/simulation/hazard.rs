//! Kinds of faults that a simulated world injects. A failing history is repeated with each kind switched off in turn, which
//! shows the kinds that the failure needs.

use std::collections::BTreeSet;

/// Kind of fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Hazard {
    /// Daemons die.
    Deaths,
    /// Hosts reboot.
    Reboots,
    /// Daemons are asked to stop.
    Stops,
    FullDisk,
    /// The real-time clock is set to another time.
    Clock,
    /// The configuration changes.
    Settings,
    /// Shims and workers are killed, and run directories vanish.
    Kills,
    FailedStarts,
    /// Workers write to the board.
    Workers,
    /// Requests to stop do not reach shims.
    LostRequests,
}

impl Hazard {
    pub(super) const ALL: [Hazard; 10] = [
        Hazard::Deaths,
        Hazard::Reboots,
        Hazard::Stops,
        Hazard::FullDisk,
        Hazard::Clock,
        Hazard::Settings,
        Hazard::Kills,
        Hazard::FailedStarts,
        Hazard::Workers,
        Hazard::LostRequests,
    ];
}

/// Kinds of faults that a world injects.
pub(super) type Hazards = BTreeSet<Hazard>;

/// Returns all kinds.
pub(super) fn all() -> Hazards {
    Hazard::ALL.into()
}
