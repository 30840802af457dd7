//! What may go wrong in a simulated world. A failing history is tried again without one kind after the other, to name what it needs.

use std::collections::BTreeSet;

/// A kind of trouble.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Hazard {
    /// Daemons die.
    Deaths,
    /// Hosts go down.
    Reboots,
    /// Daemons are asked to stop.
    Stops,
    FullDisk,
    /// Somebody sets the clock.
    Clock,
    /// Other settings are read.
    Settings,
    /// Shims and workers are killed, and run directories vanish.
    Kills,
    FailedStarts,
    /// Workers write.
    Workers,
    /// Shims cannot be asked to stop.
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

/// The kinds of trouble that there are in a world.
pub(super) type Hazards = BTreeSet<Hazard>;

/// All of them.
pub(super) fn all() -> Hazards {
    Hazard::ALL.into()
}
