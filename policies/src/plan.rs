//! From a policy to a plan: everything that can fail, before the first restriction.

use std::path::{Path, PathBuf};

use seccompiler::BpfProgram;

use crate::cgroup::Cgroup;
use crate::files::{Access, Device, Granted, Shm};
use crate::limits::{Counting, Limits};
use crate::mounts::{self, Extras};
use crate::network::{Filtered, Reach};
use crate::paths::{Opened, PathError};
use crate::policy::Policy;
use crate::process::{MountNamespace, Seccomp};
use crate::report::{Layer, LayerReport};
use crate::ruleset::{Rules, RulesetError};
use crate::support::{Support, View};
use crate::surroundings::{BoardAccess, Identity, Surroundings};
use crate::syscalls::{self, FilterError, UnixSockets};

/// Why a policy cannot be applied to a run on this host.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PlanError {
    /// The run would be root.
    #[error("choose the user: a worker is never root; give the run a user of its own")]
    Root,
    /// An ordinary user cannot become another one.
    #[error("choose the user: user {caller} cannot become user {wanted}; only root can")]
    Foreign {
        /// Who asks.
        caller: u32,
        /// Who is asked for.
        wanted: u32,
    },
    /// Landlock is too old for the policy.
    #[error(
        "rule files: the policy {policy} needs Landlock ABI {needed} and this host has {found}; a newer kernel, or \
         compatibility = \"best_effort\" in the policy"
    )]
    Abi {
        /// The policy.
        policy: String,
        /// What it needs.
        needed: u32,
        /// What there is.
        found: u32,
    },
    /// System calls cannot be filtered.
    #[error("filter system calls: this kernel has no seccomp")]
    Seccomp,
    /// The policy requires a mount namespace.
    #[error("make the file system view: the policy {policy} requires one: {why}")]
    View {
        /// The policy.
        policy: String,
        /// Why it cannot be had.
        why: String,
    },
    /// Unix sockets are denied, and the board is one.
    #[error(
        "reach the board at {}: without a file system view or Landlock ABI 9 this policy denies Unix sockets; serve \
         the board on a loopback port",
        .path.display()
    )]
    BoardSocket {
        /// The socket.
        path: PathBuf,
    },
    /// A path cannot be granted.
    #[error(transparent)]
    Path(#[from] PathError),
    /// The cgroup cannot be joined.
    #[error("open the cgroup {}: {source}", .path.display())]
    Cgroup {
        /// The directory.
        path: PathBuf,
        /// What the kernel says.
        source: std::io::Error,
    },
    /// The Landlock ruleset cannot be made.
    #[error(transparent)]
    Ruleset(#[from] RulesetError),
    /// The filter cannot be made.
    #[error(transparent)]
    Filter(#[from] FilterError),
}

/// A policy made ready for one run: it only remains to apply it.
#[derive(Debug)]
#[must_use = "nothing is confined until the plan is applied"]
pub struct Plan {
    pub(crate) policy: String,
    pub(crate) abi: u32,
    pub(crate) cgroup: Option<Cgroup>,
    pub(crate) view: Option<mounts::Plan>,
    pub(crate) workspace: Opened,
    pub(crate) limits: Limits,
    pub(crate) counting: Counting,
    pub(crate) identity: Option<Identity>,
    pub(crate) parent: i32,
    pub(crate) rules: Option<Rules>,
    pub(crate) late: Vec<(PathBuf, Access)>,
    pub(crate) filter: Option<BpfProgram>,
    pub(crate) layers: Vec<LayerReport>,
}

impl Policy {
    /// Checks and opens everything that the run needs, without restricting the caller.
    ///
    /// # Errors
    /// Names the step that is not possible on this host, and where there is one the path.
    pub fn plan(&self, around: &Surroundings, host: &Support) -> Result<Plan, PlanError> {
        check_user(around, host)?;
        let confined = self.is_confined();
        let abi = self.abi(host)?;
        let (cgroup, cgroup_report) = open_cgroup(around, &self.limits)?;
        let workspace = Opened::real(&around.workspace)?.directory()?;
        let mut granted = if confined { self.filesystem.open(around)? } else { Granted::default() };
        if confined {
            granted.paths.extend(self.filesystem.open_devices()?);
        }
        let (view, view_report) = self.view(around, host, &granted)?;
        let hides = host.clone().with_abi(abi).hides_sockets(view.is_some());
        let filtered = self.filtered(host)?;
        let unix = if !confined || hides { UnixSockets::Allowed } else { UnixSockets::PairsOnly };
        if let (UnixSockets::PairsOnly, BoardAccess::Socket(path)) = (unix, &around.board) {
            return Err(PlanError::BoardSocket { path: path.clone() });
        }
        let reach = if confined { self.network.reach(&around.board) } else { Reach::everything() };
        let late = self.late(view.is_some());
        let rules = if confined && abi > 0 {
            let mut rules = Rules::new(abi, reach.tcp.as_ref())?;
            for (opened, access) in &granted.paths {
                rules = rules.grant(opened, *access)?;
            }
            Some(rules)
        } else {
            None
        };
        let filter =
            if filtered == Filtered::Yes { syscalls::compile(&self.process, &reach, unix)? } else { None };
        let counting = match (&view, around.identity) {
            (Some(view), _) if view.makes_user_namespace() => Counting::Alone,
            (_, Some(identity)) if identity.uid != host.uid => Counting::Alone,
            _ => Counting::Shared,
        };
        let mut layers = vec![cgroup_report, view_report];
        layers.push(self.limits_report(counting));
        layers.push(uid_report(around, host, view.is_some()));
        layers.extend(self.ruled_reports(abi, &reach, filtered, view.is_some()));
        layers.push(unix_report(confined, abi, view.is_some(), unix, filtered));
        layers.push(self.filter_report(filtered));
        Ok(Plan {
            policy: self.name.clone(),
            abi,
            cgroup,
            view,
            workspace,
            limits: self.limits.clone(),
            counting,
            identity: around.identity,
            parent: around.parent,
            rules,
            late,
            filter,
            layers,
        })
    }

    /// Returns the ABI to use, or refuses where the policy needs a later one.
    fn abi(&self, host: &Support) -> Result<u32, PlanError> {
        let found = host.landlock_abi;
        if !self.is_confined() {
            return Ok(found);
        }
        // Without a right to truncate, or rights at all, a policy of files is none.
        let needed = self.min_abi.max(3);
        if self.is_hard() && found < needed {
            return Err(PlanError::Abi { policy: self.name.clone(), needed, found });
        }
        Ok(found)
    }

    fn filtered(&self, host: &Support) -> Result<Filtered, PlanError> {
        if !self.is_confined() || self.process.seccomp == Seccomp::Off {
            return Ok(Filtered::No);
        }
        match (host.seccomp, self.is_hard()) {
            (true, _) => Ok(Filtered::Yes),
            (false, true) => Err(PlanError::Seccomp),
            (false, false) => Ok(Filtered::No),
        }
    }

    fn view(
        &self,
        around: &Surroundings,
        host: &Support,
        granted: &Granted,
    ) -> Result<(Option<mounts::Plan>, LayerReport), PlanError> {
        let layer = Layer::Mounts;
        if !self.is_confined() || self.process.mount_namespace == MountNamespace::Off {
            return Ok((None, LayerReport::absent(layer, "the policy asks for none")));
        }
        if granted.paths.iter().any(|(opened, _)| opened.path == Path::new("/")) {
            return Ok((None, LayerReport::absent(layer, "the policy grants the whole file system")));
        }
        let paths = granted.paths.iter().map(|(opened, access)| (opened, *access));
        let extras = Extras {
            shm: self.filesystem.shm == Shm::Private,
            terminals: self.filesystem.devices.contains(&Device::Ptmx),
        };
        let tmp = Opened::real(&around.tmp)?;
        let plan = mounts::Plan::new(&host.view, paths, &granted.links, extras, Some(&tmp))?;
        match (&host.view, self.process.mount_namespace) {
            (View::Unavailable { why }, MountNamespace::Require) => {
                Err(PlanError::View { policy: self.name.clone(), why: why.clone() })
            }
            (View::Unavailable { why }, _) => {
                let why = format!(
                    "{why}: metadata of files of the same user stays visible, no /dev/shm, no terminals"
                );
                Ok((None, LayerReport::absent(layer, why)))
            }
            (View::Privileged | View::UserNamespace, _) => Ok((plan, LayerReport::enforced(layer))),
        }
    }

    /// Returns what exists only once the view does.
    fn late(&self, view: bool) -> Vec<(PathBuf, Access)> {
        let mut late = Vec::new();
        if view && self.filesystem.shm == Shm::Private {
            late.push((PathBuf::from("/dev/shm"), Access::Write));
        }
        if view && self.filesystem.devices.contains(&Device::Ptmx) {
            late.push((PathBuf::from("/dev/pts"), Access::Device));
        }
        late
    }

    fn limits_report(&self, counting: Counting) -> LayerReport {
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

    fn ruled_reports(&self, abi: u32, reach: &Reach, filtered: Filtered, view: bool) -> Vec<LayerReport> {
        if !self.is_confined() {
            let none = |layer| LayerReport::absent(layer, "the policy asks for none");
            return vec![none(Layer::Files), none(Layer::Network), none(Layer::Scopes)];
        }
        let mut gaps = Vec::new();
        if abi < 3 {
            gaps.push("files can be truncated below Landlock ABI 3".to_owned());
        }
        if abi < 5 {
            gaps.push("device controls are not ruled below Landlock ABI 5".to_owned());
        }
        let files = match (abi, view) {
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

    fn filter_report(&self, filtered: Filtered) -> LayerReport {
        match filtered {
            Filtered::Yes => LayerReport::enforced(Layer::Syscalls),
            Filtered::No if self.is_confined() && self.process.seccomp != Seccomp::Off => {
                LayerReport::absent(Layer::Syscalls, "this kernel has no seccomp")
            }
            Filtered::No => LayerReport::absent(Layer::Syscalls, "the policy asks for none"),
        }
    }
}

fn check_user(around: &Surroundings, host: &Support) -> Result<(), PlanError> {
    match around.identity {
        None if host.uid == 0 => Err(PlanError::Root),
        Some(identity) if identity.uid == 0 || identity.gid == 0 => Err(PlanError::Root),
        Some(identity) if host.uid != 0 && identity.uid != host.uid => {
            Err(PlanError::Foreign { caller: host.uid, wanted: identity.uid })
        }
        Some(_) | None => Ok(()),
    }
}

fn open_cgroup(around: &Surroundings, limits: &Limits) -> Result<(Option<Cgroup>, LayerReport), PlanError> {
    let Some(path) = &around.work_cgroup else {
        return Ok((None, LayerReport::absent(Layer::Cgroup, "this run has none")));
    };
    let (cgroup, report) =
        Cgroup::open(path, limits).map_err(|source| PlanError::Cgroup { path: path.clone(), source })?;
    Ok((Some(cgroup), report))
}

fn uid_report(around: &Surroundings, host: &Support, view: bool) -> LayerReport {
    match around.identity {
        Some(identity) if identity.uid != host.uid => {
            LayerReport::enforced_by(Layer::Uid, identity.uid.to_string())
        }
        Some(_) | None if view => {
            LayerReport::partial(Layer::Uid, "shared: processes of the same user can be reniced")
        }
        Some(_) | None => LayerReport::partial(
            Layer::Uid,
            "shared: files of the same user can be stat'ed, watched and chmod'ed, its processes reniced",
        ),
    }
}

fn unix_report(confined: bool, abi: u32, view: bool, unix: UnixSockets, filtered: Filtered) -> LayerReport {
    let layer = Layer::UnixSockets;
    match unix {
        _ if !confined => LayerReport::absent(layer, "the policy asks for none"),
        UnixSockets::Allowed if abi >= 9 => LayerReport::enforced_by(layer, "landlock"),
        UnixSockets::Allowed if view => LayerReport::enforced_by(layer, "mount namespace"),
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
    use super::*;
    use crate::report::State;

    /// A host of an ordinary user, and a run with its directories on it.
    struct Bench {
        dir: tempfile::TempDir,
        host: Support,
        around: Surroundings,
    }

    fn bench() -> Bench {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        for name in ["ws", "home", "tmp", "board"] {
            std::fs::create_dir(at(name)).unwrap();
        }
        let around = Surroundings {
            workspace: at("ws"),
            home: at("home"),
            tmp: at("tmp"),
            read: vec![],
            execute: vec![],
            write: vec![],
            identity: None,
            work_cgroup: None,
            board: BoardAccess::None,
            parent: 1,
        };
        let host = Support { uid: 1000, view: View::UserNamespace, seccomp: true, ..Support::detect() };
        Bench { dir, host, around }
    }

    fn policy(text: &str) -> Policy {
        let text = format!("version = 1\nextends = 'default'\n{text}");
        Policy::from_toml(&text, Path::new("test.toml")).unwrap()
    }

    fn layer(plan: &Plan, layer: Layer) -> &LayerReport {
        plan.layers.iter().find(|entry| entry.layer == layer).unwrap()
    }

    #[test]
    fn a_worker_is_never_root() {
        let Bench { host, around, .. } = bench();
        let root = Support { uid: 0, ..host.clone() };
        assert!(matches!(policy("").plan(&around, &root), Err(PlanError::Root)));
        for identity in [Identity { uid: 0, gid: 5 }, Identity { uid: 5, gid: 0 }] {
            let around = Surroundings { identity: Some(identity), ..around.clone() };
            assert!(matches!(policy("").plan(&around, &root), Err(PlanError::Root)));
        }
    }

    #[test]
    fn an_ordinary_user_becomes_nobody_else() {
        let Bench { host, around, .. } = bench();
        let around = Surroundings { identity: Some(Identity { uid: 1001, gid: 1001 }), ..around };
        assert!(matches!(
            policy("").plan(&around, &host),
            Err(PlanError::Foreign { caller: 1000, wanted: 1001 })
        ));
    }

    #[test]
    fn an_old_landlock_fails_closed_unless_the_policy_says_otherwise() {
        let bench = bench();
        for abi in 0..=5 {
            let host = bench.host.clone().with_abi(abi);
            let error = policy("").plan(&bench.around, &host).unwrap_err();
            assert!(matches!(error, PlanError::Abi { needed: 6, found, .. } if found == abi), "{error}");
            let plan = policy("compatibility = 'best_effort'").plan(&bench.around, &host).unwrap();
            assert_eq!(layer(&plan, Layer::Scopes).state, State::Absent);
            assert_eq!(layer(&plan, Layer::Network).state, State::Enforced, "no socket can be made");
            let files = if abi == 5 { State::Enforced } else { State::Partial };
            assert_eq!(layer(&plan, Layer::Files).state, files, "abi {abi}");
            assert_eq!(layer(&plan, Layer::UnixSockets).why.as_deref(), Some("none can be made"));
        }
    }

    #[test]
    fn a_policy_of_files_needs_the_right_to_truncate_however_low_its_floor() {
        let bench = bench();
        let error = policy("min_abi = 1").plan(&bench.around, &bench.host.clone().with_abi(2)).unwrap_err();
        assert!(matches!(error, PlanError::Abi { needed: 3, .. }), "{error}");
    }

    #[test]
    fn open_ports_below_abi_4_are_said_to_be_unruled() {
        let bench = bench();
        let policy = policy("compatibility = 'best_effort'\n[network]\nmode = 'ports'\nconnect_tcp = [443]");
        let plan = policy.plan(&bench.around, &bench.host.clone().with_abi(3)).unwrap();
        assert!(layer(&plan, Layer::Network).why.as_deref().unwrap().contains("any port is open"));
    }

    #[test]
    fn a_host_without_seccomp_is_refused_or_reported() {
        let Bench { dir: _dir, host, around } = bench();
        let host = Support { seccomp: false, ..host };
        assert!(matches!(policy("").plan(&around, &host), Err(PlanError::Seccomp)));
        let plan = policy("compatibility = 'best_effort'").plan(&around, &host).unwrap();
        assert_eq!(layer(&plan, Layer::Syscalls).state, State::Absent);
        let without = host.without_view("no");
        let plan = policy("compatibility = 'best_effort'").plan(&around, &without).unwrap();
        assert_eq!(layer(&plan, Layer::UnixSockets).state, State::Absent);
    }

    #[test]
    fn without_a_view_the_board_is_a_port() {
        let Bench { dir, host, around } = bench();
        let host = host.without_view("switched off");
        let socket = BoardAccess::Socket(dir.path().join("board/worker.sock"));
        let error = policy("").plan(&Surroundings { board: socket, ..around.clone() }, &host).unwrap_err();
        assert!(error.to_string().contains("serve the board on a loopback port"), "{error}");
        let plan =
            policy("").plan(&Surroundings { board: BoardAccess::Port(4711), ..around }, &host).unwrap();
        assert_eq!(layer(&plan, Layer::UnixSockets).why.as_deref(), Some("none can be made"));
        assert_eq!(layer(&plan, Layer::Mounts).state, State::Absent);
    }

    #[test]
    fn a_required_view_that_cannot_be_had_is_an_error() {
        let bench = bench();
        let host = bench.host.without_view("not here");
        let error = policy("[process]\nmount_namespace = 'require'").plan(&bench.around, &host).unwrap_err();
        assert!(error.to_string().contains("not here"), "{error}");
    }

    #[test]
    fn a_missing_path_is_an_error_unless_it_is_optional() {
        let bench = bench();
        let error = policy("[filesystem]\nro = ['/no/such']").plan(&bench.around, &bench.host).unwrap_err();
        assert!(error.to_string().starts_with("open /no/such:"), "{error}");
        let optional = policy("[filesystem]\nro = [{ path = '/no/such', optional = true }]");
        assert!(optional.plan(&bench.around, &bench.host).is_ok());
    }

    #[test]
    fn a_link_that_a_worker_planted_is_never_followed() {
        let bench = bench();
        let cache = bench.around.workspace.join("cache");
        std::os::unix::fs::symlink("/etc", &cache).unwrap();
        let words = ["{workspace}/cache".to_owned(), cache.display().to_string()];
        for word in words {
            let error = policy(&format!("[filesystem]\nrw = ['{word}']"))
                .plan(&bench.around, &bench.host)
                .unwrap_err();
            assert!(
                matches!(error, PlanError::Path(PathError::Linked { .. } | PathError::Planted { .. })),
                "{error}"
            );
        }
        let around = Surroundings { write: vec![cache], ..bench.around };
        assert!(matches!(
            policy("").plan(&around, &bench.host),
            Err(PlanError::Path(PathError::Linked { .. }))
        ));
    }

    #[test]
    fn a_cgroup_that_cannot_be_joined_is_an_error_and_a_missing_control_a_gap() {
        let bench = bench();
        let cgroup = bench.dir.path().join("cgroup");
        let around = Surroundings { work_cgroup: Some(cgroup.clone()), ..bench.around };
        assert!(matches!(policy("").plan(&around, &bench.host), Err(PlanError::Cgroup { .. })));
        std::fs::create_dir(&cgroup).unwrap();
        std::fs::write(cgroup.join("cgroup.procs"), "").unwrap();
        let plan = policy("").plan(&around, &bench.host).unwrap();
        assert!(layer(&plan, Layer::Cgroup).why.as_deref().unwrap().starts_with("pids.max:"));
    }

    #[test]
    fn a_policy_that_grants_everything_has_no_view() {
        let bench = bench();
        let plan = policy("[filesystem]\nro = ['/']").plan(&bench.around, &bench.host).unwrap();
        assert!(plan.view.is_none());
    }

    #[test]
    fn what_stays_open_for_a_shared_user_is_said() {
        let bench = bench();
        let plan = policy("").plan(&bench.around, &bench.host).unwrap();
        assert!(layer(&plan, Layer::Uid).why.as_deref().unwrap().starts_with("shared"));
        let plan = policy("").plan(&bench.around, &bench.host.without_view("no")).unwrap();
        assert!(layer(&plan, Layer::Uid).why.as_deref().unwrap().contains("chmod"));
        assert!(layer(&plan, Layer::Limits).why.as_deref().unwrap().contains("not set"));
    }
}
