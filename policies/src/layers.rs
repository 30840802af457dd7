//! Entries of a report about each layer, given the policy and the host.

use crate::files::Proc;
use crate::limits::Counting;
use crate::network::{Filtered, Reach};
use crate::policy::Policy;
use crate::process::Seccomp;
use crate::report::{Layer, LayerReport};
use crate::run_context::RunContext;
use crate::support::Support;
use crate::syscalls::UnixSockets;

impl Policy {
    pub(crate) fn limits_report(&self, counting: Counting, file_max: Option<u64>) -> LayerReport {
        let pids = match (self.limits.pids, counting) {
            (None, _) => None,
            (Some(_), Counting::Shared) => {
                Some("pids: not set, because every process of the user would count")
            }
            (Some(_), Counting::Alone) => Some("pids: counts every process of the run's user"),
        };
        let files =
            self.limits.holders().files_of_each(file_max).filter(|files| Some(*files) != self.limits.files);
        let files = files.map(|files| {
            format!("files: {files} for each process, so that all leave a quarter of fs.file-max")
        });
        let parts: Vec<String> = pids.map(str::to_owned).into_iter().chain(files).collect();
        if counting == Counting::Shared && self.limits.pids.is_some() {
            LayerReport::partial(Layer::Limits, parts.join("; "))
        } else if parts.is_empty() {
            LayerReport::enforced(Layer::Limits)
        } else {
            LayerReport::enforced_by(Layer::Limits, parts.join("; "))
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

    /// Returns the holes of a view on a host with this Landlock ABI. Landlock keeps a run from looking into processes
    /// outside of its domain. Without it, `/proc/<pid>/root` of any other process of the same user is the host's root.
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

/// Reports files that others could execute as the run's user.
pub(crate) fn set_ids_report(filtered: Filtered) -> LayerReport {
    match filtered {
        Filtered::Yes => LayerReport::enforced_by(Layer::SetIds, "system call filter"),
        Filtered::No => LayerReport::absent(
            Layer::SetIds,
            "needs the system call filter: a set-user-ID file that the run leaves acts as its user",
        ),
    }
}

pub(crate) fn uid_report(context: &RunContext, host: &Support, view: bool) -> LayerReport {
    match context.identity {
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

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::report::State;
    use crate::run_context::{Identity, bare};

    fn policy(text: &str) -> Policy {
        let text = format!("version = 1\nextends = 'default'\n{text}");
        Policy::from_toml(&text, Path::new("test.toml")).unwrap()
    }

    #[test]
    fn a_limit_of_processes_counts_those_of_a_user_of_the_runs_own_alone() {
        let (with, without) = (policy("[limits]\npids = 7"), Policy::builtin("unconfined").unwrap());
        let parts = |policy: &Policy, counting| {
            let report = policy.limits_report(counting, None);
            (report.state, report.why.unwrap_or_default())
        };
        assert_eq!(parts(&with, Counting::Alone).0, State::Enforced);
        assert!(parts(&with, Counting::Alone).1.contains("counts every process"));
        assert_eq!(parts(&with, Counting::Shared).0, State::Partial);
        for counting in [Counting::Alone, Counting::Shared] {
            assert_eq!(parts(&without, counting), (State::Enforced, String::new()));
        }
    }

    #[test]
    fn what_landlock_lacks_for_files_is_said() {
        let policy = policy("");
        let reach = policy.network.reach(&crate::BoardAccess::None);
        let files = |abi| policy.ruled_reports(abi, &reach, Filtered::Yes, true).remove(0).why;
        for (abi, truncates, controls) in
            [(1, true, true), (2, true, true), (3, false, true), (4, false, true), (5, false, false)]
        {
            let why = files(abi).unwrap_or_default();
            assert_eq!(
                (why.contains("truncated"), why.contains("device controls")),
                (truncates, controls),
                "{abi}"
            );
        }
    }

    #[test]
    fn a_run_without_the_filter_is_told_whether_the_policy_or_the_kernel_is_why() {
        let why = |policy: &Policy| policy.filter_report(Filtered::No).why.unwrap();
        assert_eq!(why(&policy("")), "this kernel has no seccomp");
        assert_eq!(why(&policy("[process]\nseccomp = 'off'")), "the policy asks for none");
        assert_eq!(why(&Policy::builtin("unconfined").unwrap()), "the policy asks for none");
    }

    #[test]
    fn a_user_that_the_caller_is_too_is_shared() {
        let host = Support { uid: 1000, ..Support::detect() };
        let report = |uid: Option<u32>, view| {
            let identity = uid.map(|uid| Identity { uid, gid: 5 });
            uid_report(&RunContext { identity, ..bare(Path::new("/run")) }, &host, view)
        };
        assert_eq!(report(Some(1001), false), LayerReport::enforced_by(Layer::Uid, "1001"));
        for uid in [None, Some(1000)] {
            assert!(report(uid, true).why.unwrap().contains("only the other layers"));
            assert!(report(uid, false).why.unwrap().contains("chmod'ed"));
        }
    }

    #[test]
    fn what_holds_unix_sockets_is_named() {
        use UnixSockets::{Allowed, PairsOnly};
        let filtered = |is: bool| if is { Filtered::Yes } else { Filtered::No };
        for (confined, abi, view, unix, filter, parts) in [
            (false, 9, true, Allowed, true, "the policy asks for none"),
            (true, 9, true, Allowed, true, "landlock"),
            (true, 9, false, Allowed, true, "landlock"),
            (true, 8, true, Allowed, true, "mount namespace: a socket"),
            (true, 8, false, Allowed, true, "needs Landlock ABI 9"),
            (true, 8, false, PairsOnly, true, "none can be made"),
            (true, 8, false, PairsOnly, false, "needs Landlock ABI 9"),
        ] {
            let why = unix_report(confined, abi, view, unix, filtered(filter)).why.unwrap();
            assert!(why.starts_with(parts), "{confined} {abi} {view} {unix:?} {filter}: {why}");
        }
    }
}
