//! Detects the layers of confinement that this host can enforce.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use landlock::{
    AccessFs, AccessNet, CompatLevel, Compatible, Erratum, RestrictSelfAttr, Ruleset, RulesetAttr,
    RulesetCreatedAttr, Scope,
};
use rustix::thread::CapabilitySet;
use serde::{Deserialize, Serialize};

use crate::controller::Controller;

/// Layers of confinement that this host can enforce for the user of the calling process.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Support {
    /// The Landlock ABI that both the kernel and this release know; 0 for none.
    pub landlock_abi: u32,
    /// The mask of Landlock's fixed errata.
    pub landlock_errata: u32,
    /// True if system calls can be filtered.
    pub seccomp: bool,
    /// Mount point of cgroup v2.
    pub cgroup: Option<PathBuf>,
    /// The controllers that the cgroups of runs have.
    #[serde(default)]
    pub controllers: BTreeSet<Controller>,
    /// True if the settings of the host do not forbid user namespaces.
    pub user_namespaces: bool,
    /// True if a run can have a file system view of its own.
    pub view: View,
    /// The caller's effective user id.
    pub uid: u32,
}

/// Means by which a run gets a file system view of its own.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum View {
    /// Built with the caller's privileges.
    Privileged,
    /// Built inside a user namespace of the run.
    UserNamespace,
    /// A view is not possible.
    Unavailable { why: String },
}

/// Address by which confined workers reach the board.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BoardKind {
    Socket,
    /// A TCP port on the loopback address.
    Port,
}

impl Support {
    /// Examines the host without restricting the caller. The result for a view is only an expectation from the
    /// settings; [`crate::probe_view`] tests a view, and needs a process of its own.
    pub fn detect() -> Self {
        let uid = rustix::process::geteuid().as_raw();
        let user_namespaces = user_namespaces(Path::new("/proc"));
        Self {
            landlock_abi: landlock_abi(),
            landlock_errata: Erratum::current().bits(),
            seccomp: rustix::thread::secure_computing_mode().is_ok(),
            cgroup: cgroup_mount(),
            controllers: BTreeSet::new(),
            user_namespaces,
            view: view(uid, user_namespaces),
            uid,
        }
    }

    /// Returns this host as if its kernel had at most this Landlock ABI.
    #[must_use]
    pub fn with_abi(mut self, abi: u32) -> Self {
        self.landlock_abi = self.landlock_abi.min(abi);
        self
    }

    /// Returns this host with the controllers that the caller enables for the cgroups of runs.
    #[must_use]
    pub fn with_controllers(self, controllers: BTreeSet<Controller>) -> Self {
        Self { controllers, ..self }
    }

    /// Returns this host without a file system view, for instance after a failed probe.
    #[must_use]
    pub fn without_view(mut self, why: impl Into<String>) -> Self {
        self.view = View::Unavailable { why: why.into() };
        self
    }

    /// Returns the kind of address by which confined workers reach the board: a socket if they can be kept from all
    /// other sockets, else a port.
    pub fn board_access_kind(&self) -> BoardKind {
        if self.hides_sockets(self.has_view()) { BoardKind::Socket } else { BoardKind::Port }
    }

    pub(crate) fn has_view(&self) -> bool {
        match self.view {
            View::Privileged | View::UserNamespace => true,
            View::Unavailable { .. } => false,
        }
    }

    /// Returns true if a worker that may create Unix sockets cannot reach the sockets of other processes: Landlock
    /// scopes abstract sockets from ABI 6 on. It restricts sockets with a path from ABI 9 on; a view does not contain
    /// them.
    pub(crate) fn hides_sockets(&self, view: bool) -> bool {
        self.landlock_abi >= 6 && (view || self.landlock_abi >= 9)
    }
}

/// Returns the highest Landlock ABI that both the kernel and the library know. The rights of each version are requested
/// in turn. Nothing is restricted, because no ruleset is enforced.
fn landlock_abi() -> u32 {
    let hard = || Ruleset::default().set_compatibility(CompatLevel::HardRequirement);
    let created = || hard().handle_access(AccessFs::Execute).and_then(Ruleset::create);
    let steps: [&dyn Fn() -> bool; 9] = [
        &|| created().is_ok(),
        &|| hard().handle_access(AccessFs::Refer).is_ok(),
        &|| hard().handle_access(AccessFs::Truncate).is_ok(),
        &|| hard().handle_access(AccessNet::ConnectTcp).is_ok(),
        &|| hard().handle_access(AccessFs::IoctlDev).is_ok(),
        &|| hard().scope(Scope::Signal).is_ok(),
        &|| created().and_then(|ruleset| ruleset.log_new_exec(true)).is_ok(),
        &|| created().and_then(|ruleset| ruleset.all_threads(true)).is_ok(),
        &|| hard().handle_access(AccessFs::ResolveUnix).is_ok(),
    ];
    steps.iter().take_while(|step| step()).map(|_| 1).sum()
}

/// Returns true if the settings in `/proc` permit users other than root to create a user namespace
/// (`user_namespaces(7)`). A setting that this kernel does not have forbids nothing.
fn user_namespaces(proc: &Path) -> bool {
    let setting =
        |name: &str| std::fs::read_to_string(proc.join(name)).ok().map(|text| text.trim().to_owned());
    proc.join("self/ns/user").exists()
        && setting("sys/user/max_user_namespaces").is_none_or(|text| text != "0")
        && setting("sys/kernel/unprivileged_userns_clone").is_none_or(|text| text != "0")
        && setting("sys/kernel/apparmor_restrict_unprivileged_userns").is_none_or(|text| text == "0")
}

fn view(uid: u32, user_namespaces: bool) -> View {
    if uid == 0 {
        let admin = rustix::thread::capabilities(None)
            .is_ok_and(|sets| sets.effective.contains(CapabilitySet::SYS_ADMIN | CapabilitySet::SYS_CHROOT));
        return if admin {
            View::Privileged
        } else {
            View::Unavailable { why: "root lacks CAP_SYS_ADMIN".to_owned() }
        };
    }
    if user_namespaces {
        View::UserNamespace
    } else {
        View::Unavailable { why: "this host does not let users make user namespaces".to_owned() }
    }
}

fn cgroup_mount() -> Option<PathBuf> {
    let places = ["/sys/fs/cgroup", "/sys/fs/cgroup/unified"];
    places.into_iter().map(PathBuf::from).find(|place| place.join("cgroup.controllers").exists())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host(abi: u32, view: View) -> Support {
        Support {
            landlock_abi: abi,
            landlock_errata: 0,
            seccomp: true,
            cgroup: None,
            controllers: BTreeSet::new(),
            user_namespaces: true,
            view,
            uid: 1000,
        }
    }

    #[test]
    fn the_board_is_a_socket_only_where_foreign_sockets_are_out_of_reach() {
        let none = || View::Unavailable { why: String::new() };
        assert_eq!(host(7, View::UserNamespace).board_access_kind(), BoardKind::Socket);
        assert_eq!(host(7, none()).board_access_kind(), BoardKind::Port);
        assert_eq!(host(9, none()).board_access_kind(), BoardKind::Socket);
        assert_eq!(host(5, View::UserNamespace).board_access_kind(), BoardKind::Port);
    }

    #[test]
    fn detection_restricts_nothing() {
        let before = std::fs::read("/proc/self/status").is_ok();
        assert_eq!(Support::detect(), Support::detect());
        assert_eq!(std::fs::read("/proc/self/status").is_ok(), before);
    }

    #[test]
    fn the_cgroups_that_are_found_are_those_of_version_2() {
        let mounts = std::fs::read_to_string("/proc/self/mounts").unwrap();
        let usual = |place: &&str| ["/sys/fs/cgroup", "/sys/fs/cgroup/unified"].contains(place);
        let of_line = |line: &'static str| line.split(' ').nth(1).filter(|_| line.contains(" cgroup2 "));
        let mounts: &'static str = mounts.leak();
        let mounted = mounts.lines().filter_map(of_line).find(usual);
        assert_eq!(cgroup_mount(), mounted.map(PathBuf::from));
    }

    #[test]
    fn any_setting_that_is_there_can_keep_users_from_making_user_namespaces() {
        let proc = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| {
            let path = proc.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        assert!(!user_namespaces(proc.path()), "a kernel without them");
        write("self/ns/user", "");
        assert!(user_namespaces(proc.path()), "a kernel without any setting");
        for (setting, off, on) in [
            ("sys/user/max_user_namespaces", "0\n", "48182\n"),
            ("sys/kernel/unprivileged_userns_clone", "0\n", "1\n"),
            ("sys/kernel/apparmor_restrict_unprivileged_userns", "1\n", "0\n"),
        ] {
            write(setting, off);
            assert!(!user_namespaces(proc.path()), "{setting}");
            write(setting, on);
            assert!(user_namespaces(proc.path()), "{setting}");
        }
    }
}
