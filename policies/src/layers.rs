//! What a report says of each layer, given the policy and the host.

use crate::files::Proc;
use crate::limits::Counting;
use crate::network::{Filtered, Reach};
use crate::policy::Policy;
use crate::process::Seccomp;
use crate::report::{Layer, LayerReport};
use crate::support::Support;
use crate::surroundings::Surroundings;
use crate::syscalls::UnixSockets;

impl Policy {
    pub(crate) fn limits_report(&self, counting: Counting) -> LayerReport {
        if counting == Counting::Shared && self.limits.pids.is_some() {
            LayerReport::partial(
                Layer::Limits,
                "pids: not set, because every process of the user would count",
            )
        } else if self.limits.pids.is_some() {
            LayerReport::enforced_by(Layer::Limits, "pids: counts every process of the run's user")
        } else {
            LayerReport::enforced(Layer::Limits)
        }
    }

    pub(crate) fn ruled_reports(
        &self,
        abi: u32,
        reach: &Reach,
        filtered: Filtered,
        view: bool,
    ) -> Vec<LayerReport> {
        if !self.is_confined() {
            let none = |layer| LayerReport::absent(layer, "the policy asks for none");
            return vec![none(Layer::Files), none(Layer::Network), none(Layer::Scopes)];
        }
        let mut gaps = Vec::new();
        if abi < 3 {
            gaps.push("files can be truncated below Landlock ABI 3".to_owned());
        }
        if abi < 5 {
            gaps.push("device controls are not restricted below Landlock ABI 5".to_owned());
        }
        let files = match (abi, view) {
            (0, true) if self.leads_out(abi).is_some() => LayerReport::absent(
                Layer::Files,
                "no Landlock, and /proc/<pid>/root leads out of the mount namespace",
            ),
            (0, true) => {
                LayerReport::partial(Layer::Files, "no Landlock: only the mount namespace hides files")
            }
            (0, false) => LayerReport::absent(Layer::Files, "no Landlock"),
            (_, _) => LayerReport::unless(Layer::Files, &gaps),
        };
        let scopes = if abi >= 6 {
            LayerReport::enforced(Layer::Scopes)
        } else {
            LayerReport::absent(
                Layer::Scopes,
                "needs Landlock ABI 6: every process of the user can be signalled",
            )
        };
        vec![files, self.network.report(reach, abi, filtered), scopes]
    }

    /// Returns what leads out of a view on a host with this Landlock ABI. Landlock keeps a run from looking into processes
    /// that it does not rule; without it, `/proc/<pid>/root` of any other process of the same user is the host's root.
    pub(crate) fn leads_out(&self, abi: u32) -> Option<&'static str> {
        (abi == 0 && self.filesystem.proc == Proc::Host).then_some(
            "/proc/<pid>/root of another process of the same user leads out of the mount namespace",
        )
    }

    pub(crate) fn filter_report(&self, filtered: Filtered) -> LayerReport {
        match filtered {
            Filtered::Yes => LayerReport::enforced(Layer::Syscalls),
            Filtered::No if self.is_confined() && self.process.seccomp != Seccomp::Off => {
                LayerReport::absent(Layer::Syscalls, "this kernel has no seccomp")
            }
            Filtered::No => LayerReport::absent(Layer::Syscalls, "the policy asks for none"),
        }
    }
}

/// Says whether files that others could execute as the run's user can be made.
pub(crate) fn set_ids_report(filtered: Filtered) -> LayerReport {
    match filtered {
        Filtered::Yes => LayerReport::enforced_by(Layer::SetIds, "system call filter"),
        Filtered::No => LayerReport::absent(
            Layer::SetIds,
            "needs the system call filter: a set-user-ID file that the run leaves acts as its user",
        ),
    }
}

pub(crate) fn uid_report(around: &Surroundings, host: &Support, view: bool) -> LayerReport {
    match around.identity {
        Some(identity) if identity.uid != host.uid => {
            LayerReport::enforced_by(Layer::Uid, identity.uid.to_string())
        }
        Some(_) | None if view => LayerReport::partial(
            Layer::Uid,
            "shared: only the other layers keep the run from the user's processes and files",
        ),
        Some(_) | None => LayerReport::partial(
            Layer::Uid,
            "shared: files of the same user can be stat'ed, watched and chmod'ed",
        ),
    }
}

pub(crate) fn unix_report(
    confined: bool,
    abi: u32,
    view: bool,
    unix: UnixSockets,
    filtered: Filtered,
) -> LayerReport {
    let layer = Layer::UnixSockets;
    match unix {
        _ if !confined => LayerReport::absent(layer, "the policy asks for none"),
        UnixSockets::Allowed if abi >= 9 => LayerReport::enforced_by(layer, "landlock"),
        UnixSockets::Allowed if view => LayerReport::partial(
            layer,
            "mount namespace: a socket that is made during the run in a directory which the policy grants for reading \
             can be connected to",
        ),
        UnixSockets::PairsOnly if filtered == Filtered::Yes => {
            LayerReport::enforced_by(layer, "none can be made")
        }
        UnixSockets::Allowed | UnixSockets::PairsOnly => {
            LayerReport::absent(layer, "needs Landlock ABI 9, a mount namespace or the system call filter")
        }
    }
}
