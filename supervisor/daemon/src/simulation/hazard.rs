//! Kinds of faults in a simulated world. A failing history is repeated without one kind after the other, to find those
//! that it needs.

use std::collections::BTreeSet;

/// A kind of fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Hazard {
    /// Daemons die.
    Deaths,
    /// Hosts reboot.
    Reboots,
    /// Daemons are asked to stop.
    Stops,
    FullDisk,
    /// The clock is set.
    Clock,
    /// The configuration changes.
    Settings,
    /// Shims and workers are killed, and run directories vanish.
    Kills,
    FailedStarts,
    /// Workers write.
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

/// Kinds of faults in a world.
pub(super) type Hazards = BTreeSet<Hazard>;

/// Returns all kinds.
pub(super) fn all() -> Hazards {
    Hazard::ALL.into()
}
