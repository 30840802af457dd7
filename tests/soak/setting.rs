//! The four settings: whose daemon it is, and whether its runs have cgroups.

use std::fs;
use std::os::unix::fs::chown;
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::Command;

use crate::harness::{Fleet, User, cgroup, skip};

/// User of the daemon, and the presence of cgroups for its runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Setting {
    RootWithCgroups,
    RootWithout,
    UserWithCgroups,
    UserWithout,
}

impl Setting {
    pub(super) const ALL: [Setting; 4] =
        [Setting::RootWithCgroups, Setting::RootWithout, Setting::UserWithCgroups, Setting::UserWithout];

    pub(super) fn name(self) -> &'static str {
        match self {
            Setting::RootWithCgroups => "root-cgroups",
            Setting::RootWithout => "root-no-cgroups",
            Setting::UserWithCgroups => "user-cgroups",
            Setting::UserWithout => "user-no-cgroups",
        }
    }

    pub(super) fn user(self) -> User {
        match self {
            Setting::RootWithCgroups | Setting::RootWithout => User::Root,
            Setting::UserWithCgroups | Setting::UserWithout => User::ordinary(),
        }
    }

    pub(super) fn has_cgroups(self) -> bool {
        matches!(self, Setting::RootWithCgroups | Setting::UserWithCgroups)
    }

    /// Returns true if this host provides it; otherwise prints a skip.
    pub(super) fn is_possible(self) -> bool {
        let is_root = User::current() == User::Root;
        if !is_root && self != Setting::UserWithout {
            skip(&format!("soak in the setting {}: needs root", self.name()));
            return false;
        }
        if self.has_cgroups() && mount_of_cgroups().is_none() {
            skip(&format!("soak in the setting {}: no cgroup2 is mounted", self.name()));
            return false;
        }
        true
    }

    /// Describes the host for a reader of the figures.
    pub(super) fn described(self) -> String {
        let user = if self.user() == User::Root {
            "each worker has a uid of its own"
        } else {
            "workers share the uid of their daemon"
        };
        let groups = match mount_of_cgroups().filter(|_| self.has_cgroups()) {
            Some(mount) => {
                let controllers = fs::read_to_string(mount.join("cgroup.controllers")).unwrap_or_default();
                let controllers = controllers.trim();
                let controllers = if controllers.is_empty() { "without controllers" } else { controllers };
                format!("cgroup2 at {} ({controllers})", mount.display())
            }
            None => "no cgroups: pid namespaces hold runs together".to_owned(),
        };
        format!("{user}; {groups}")
    }

    /// The command that becomes the daemon of a fleet in this setting, with its place for groups.
    pub(super) fn daemon(self, fleet: &Fleet, place: Option<&SettingPlace>) -> Command {
        let mut command = match (self, mount_of_cgroups()) {
            (Setting::RootWithout, Some(mount)) => {
                let mut command = Command::new("unshare");
                let hide = "umount -l \"$2\" && exec \"$0\" --root \"$1\" daemon";
                command.args(["-m", "sh", "-c", hide]).arg(fleet.binary()).arg(fleet.root()).arg(mount);
                fleet.dress(&mut command);
                command
            }
            _ => fleet.command(["daemon"]),
        };
        if let (Setting::UserWithCgroups, Some(place), Some(id)) = (self, place, self.user().id()) {
            let join = "echo $$ > \"$1\" && exec setpriv --reuid \"$2\" --regid \"$2\" --clear-groups \"$0\" --root \"$3\" daemon";
            let mut joins = Command::new("sh");
            joins.args(["-c", join]).arg(fleet.binary()).arg(place.dir.join("cgroup.procs"));
            joins.arg(id.to_string()).arg(fleet.root());
            fleet.dress(&mut joins);
            // Nobody but root moves a process into a group that others do not have in common with it.
            joins.uid(0).gid(0);
            command = joins;
        }
        command
    }
}

fn mount_of_cgroups() -> Option<PathBuf> {
    let mounts = fs::read_to_string("/proc/self/mountinfo").ok()?;
    let mount = mounts.lines().find(|line| line.contains(" - cgroup2 "))?.split(' ').nth(4)?;
    Some(PathBuf::from(mount))
}

/// A group that an ordinary user may make groups in, as a service manager delegates it.
#[derive(Debug)]
pub(super) struct SettingPlace {
    dir: PathBuf,
}

impl SettingPlace {
    pub(super) fn of(setting: Setting, fleet: &Fleet) -> Option<Self> {
        let (Setting::UserWithCgroups, Some(id)) = (setting, setting.user().id()) else { return None };
        let name = format!("soak-{}", std::process::id());
        let dir = cgroup(&fleet.root())?.with_file_name(name);
        fs::create_dir(&dir).unwrap();
        for path in
            ["", "cgroup.procs", "cgroup.threads", "cgroup.subtree_control"].map(|name| dir.join(name))
        {
            chown(path, Some(id), Some(id)).unwrap();
        }
        Some(SettingPlace { dir })
    }

    /// Returns the directory in which the daemon of a fleet keeps the cgroups of its runs.
    pub(super) fn groups(place: Option<&SettingPlace>, fleet: &Fleet) -> Option<PathBuf> {
        let usual = cgroup(&fleet.root())?;
        Some(match place {
            Some(place) => place.dir.join(usual.file_name()?),
            None => usual,
        })
    }
}

impl Drop for SettingPlace {
    fn drop(&mut self) {
        // The daemon has removed its own; what it left is a fault that was seen before.
        drop(fs::remove_dir(&self.dir));
    }
}
