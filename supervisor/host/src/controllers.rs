//! Delegates the controllers of cgroup v2 from the daemon's group to the groups of runs, where they enforce the limits of
//! runs.
//!
//! A group that delegates controllers must not contain processes itself (cgroup-v2.rst, "No Internal Process Constraint"),
//! so the daemon moves into a leaf of its group:
//!
//! ```text
//! supervisor.service                 delegated by systemd with its controllers (Delegate=yes)
//! ├── daemon or main                 the daemon and its jobs; cpu.weight
//! └── supervisor-<root>
//!     └── <run>
//!         ├── shim
//!         └── work                   memory.max, cpu.max, pids.max
//! ```
//!
//! systemd starts the daemon in the leaf `daemon` (`DelegateSubgroup=daemon`, since version 254). An older systemd starts
//! the daemon in the group of the unit, and the daemon moves itself into `main`. Such a unit hands the controllers back
//! after the end of the daemon (`handback.rs`); otherwise systemd could not start the next daemon beside live workers. For a
//! unit that does neither, the daemon leaves the group unchanged, and limits are not enforced.
//!
//! See decision 0031.

use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};

use policies::Controller;

/// Leaf that systemd makes for the daemon.
pub(crate) const GIVEN_LEAF: &str = "daemon";
/// Leaf that the daemon makes for itself.
const OWN_LEAF: &str = "main";
/// Entry in the environment by which a unit declares that it hands the controllers back between two daemons.
const HANDBACK: &str = "SUPERVISOR_HANDBACK=yes";
/// CPU weight of the daemon; all runs together have 100. The daemon needs little time, and all callers wait for it.
const WEIGHT: u32 = 1000;

/// Group in which a daemon was started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unit {
    dir: PathBuf,
    stands: Stands,
    between: Between,
}

/// State of the controllers between two daemons.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Between {
    /// The unit hands them back, so that the next daemon can be started in its group.
    HandedBack,
    /// They stay delegated.
    Kept,
}

/// Position of this process in its group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stands {
    /// In the group itself.
    Within,
    /// In the leaf of this name.
    InLeaf(&'static str),
    /// In the root of the hierarchy, which may contain processes.
    AtTop,
}

/// Controllers that runs have, and the reason why others are missing; none if all are there.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Handed {
    pub controllers: BTreeSet<Controller>,
    pub gap: Option<String>,
}

impl Unit {
    /// Finds the group of a process: `group` is its path below `mount`, and `environment` the environment it was
    /// started with (`proc_pid_environ(5)`).
    pub fn locate(mount: &Path, group: &str, environment: &[u8]) -> Self {
        let group_dir = mount.join(group.trim_start_matches('/'));
        let hands_back = environment.split(|byte| *byte == 0).any(|entry| entry == HANDBACK.as_bytes());
        let between = if hands_back { Between::HandedBack } else { Between::Kept };
        let is = |leaf: &&str| group_dir.file_name().is_some_and(|name| name == *leaf);
        match (group_dir.parent(), [GIVEN_LEAF, OWN_LEAF].into_iter().find(is)) {
            (Some(unit), Some(leaf))
                if unit.join("cgroup.type").exists() && processes(unit).is_ok_and(|all| all.is_empty()) =>
            {
                Unit { dir: unit.to_owned(), stands: Stands::InLeaf(leaf), between }
            }
            _ => {
                // Every group except the root has a type (cgroup-v2.rst, "Core Interface Files").
                let stands =
                    if group_dir.join("cgroup.type").exists() { Stands::Within } else { Stands::AtTop };
                Unit { dir: group_dir, stands, between }
            }
        }
    }

    /// Returns the controllers that runs have, for another process than the daemon: the delegated ones, or if none are
    /// delegated, the ones that a daemon would delegate.
    pub fn handed(&self) -> Handed {
        match listed(&self.dir.join("cgroup.subtree_control")) {
            Ok(handed) if !handed.is_empty() => Handed { gap: lacking(&handed), controllers: handed },
            Ok(_) => self.delegable(),
            Err(why) => Handed { gap: Some(why), ..Handed::default() },
        }
    }

    /// Returns the directory of the group.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Returns the controllers that runs of a daemon in this group would have. Changes nothing.
    pub fn delegable(&self) -> Handed {
        let given = match self.given() {
            Ok(given) => given,
            Err(why) => return Handed { gap: Some(why), ..Handed::default() },
        };
        match self.obstacle() {
            Some(why) => Handed { gap: Some(why), ..Handed::default() },
            None => Handed { gap: lacking(&given), controllers: given },
        }
    }

    /// Delegates the controllers of the group. Moves this process into a leaf first if it is in the group itself.
    pub(crate) fn hand_on(&self) -> Handed {
        let handed = self.delegable();
        if handed.controllers.is_empty() {
            return handed;
        }
        let fail = |act: &str, e: &io::Error| Handed {
            gap: Some(format!("{}: failed to {act}: {e}", self.dir.display())),
            ..Handed::default()
        };
        if self.stands == Stands::Within
            && let Err(e) = make(&self.dir.join(OWN_LEAF)).and_then(|()| enter(&self.dir.join(OWN_LEAF)))
        {
            return fail("move the daemon into a leaf", &e);
        }
        match enable(&self.dir, &handed.controllers) {
            Ok(()) => {
                self.go_first();
                handed
            }
            Err(e) => {
                // The move is undone, so that a failure leaves the group as it was.
                if self.stands == Stands::Within && enter(&self.dir).is_ok() {
                    drop(std::fs::remove_dir(self.dir.join(OWN_LEAF)));
                }
                fail("hand the controllers on", &e)
            }
        }
    }

    /// Sets the CPU weight of the daemon.
    fn go_first(&self) {
        let leaf = match self.stands {
            Stands::AtTop => return,
            Stands::Within => OWN_LEAF,
            Stands::InLeaf(leaf) => leaf,
        };
        let weight = self.dir.join(leaf).join("cpu.weight");
        // The file exists only in a leaf of a group with the cpu controller.
        if weight.exists()
            && let Err(error) = std::fs::write(&weight, WEIGHT.to_string())
        {
            tracing::warn!(path = %weight.display(), %error, "cpu_weight_not_set");
        }
    }

    /// Returns the controllers of the group.
    fn given(&self) -> Result<BTreeSet<Controller>, String> {
        let given = listed(&self.dir.join("cgroup.controllers"))?;
        if given.is_empty() {
            return Err(format!("no controller was handed on to {}", self.dir.display()));
        }
        Ok(given)
    }

    /// Returns the reason why the group must stay unchanged: other processes are in it, or the unit would not start again.
    fn obstacle(&self) -> Option<String> {
        if self.stands != Stands::Within {
            return None;
        }
        let is_service = self.dir.extension().is_some_and(|kind| kind == "service");
        if is_service && self.between == Between::Kept {
            return Some(format!(
                "the unit of {} gives the daemon no leaf (DelegateSubgroup=daemon, systemd 254 or later) and does not \
                 hand controllers back (ExecStopPost=supervisor __handback, with {HANDBACK}); install the unit of this \
                 release",
                self.dir.display()
            ));
        }
        let own_pid = i32::try_from(std::process::id()).ok();
        let others =
            processes(&self.dir).unwrap_or_default().into_iter().filter(|pid| Some(*pid) != own_pid).count();
        (others > 0).then(|| {
            format!(
                "{} has other processes ({others}); run the daemon as a service, or with: systemd-run --scope -p \
                 Delegate=yes supervisor daemon",
                self.dir.display()
            )
        })
    }
}

/// Creates a group if it is missing.
pub fn make(dir: &Path) -> io::Result<()> {
    match std::fs::create_dir(dir) {
        Err(e) if e.kind() != io::ErrorKind::AlreadyExists => Err(e),
        _ => Ok(()),
    }
}

/// Enables controllers for the groups beneath a group.
pub fn enable(group: &Path, controllers: &BTreeSet<Controller>) -> io::Result<()> {
    if controllers.is_empty() {
        return Ok(());
    }
    let words: Vec<String> =
        controllers.iter().map(|controller| format!("+{}", controller.as_str())).collect();
    std::fs::write(group.join("cgroup.subtree_control"), words.join(" "))
}

/// Returns the controllers that a file of a group lists.
pub fn listed(path: &Path) -> Result<BTreeSet<Controller>, String> {
    let text = std::fs::read_to_string(path).map_err(|e| format!("{}: {e}", path.display()))?;
    let has = |one: &Controller| text.split_whitespace().any(|word| word == one.as_str());
    Ok(Controller::ALL.into_iter().filter(has).collect())
}

fn lacking(given: &BTreeSet<Controller>) -> Option<String> {
    let missing: Vec<&str> =
        Controller::ALL.into_iter().filter(|one| !given.contains(one)).map(Controller::as_str).collect();
    (!missing.is_empty()).then(|| format!("not handed on to this group: {}", missing.join(", ")))
}

fn enter(group: &Path) -> io::Result<()> {
    std::fs::write(group.join("cgroup.procs"), std::process::id().to_string())
}

fn processes(group: &Path) -> io::Result<Vec<i32>> {
    let text = std::fs::read_to_string(group.join("cgroup.procs"))?;
    Ok(text.lines().filter_map(|line| line.parse().ok()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Makes a directory that looks like a group.
    fn group(dir: &Path, controllers: &str, procs: &str) {
        std::fs::create_dir_all(dir).unwrap();
        for (file, text) in [
            ("cgroup.controllers", controllers),
            ("cgroup.procs", procs),
            ("cgroup.type", "domain\n"),
            ("cgroup.subtree_control", ""),
            ("cpu.weight", "100\n"),
        ] {
            std::fs::write(dir.join(file), text).unwrap();
        }
    }

    fn all() -> BTreeSet<Controller> {
        Controller::ALL.into_iter().collect()
    }

    #[test]
    fn a_daemon_alone_in_its_group_moves_into_a_leaf_and_hands_on_what_it_has() {
        let mount = tempfile::tempdir().unwrap();
        let dir = mount.path().join("unit");
        group(&dir, "cpuset cpu memory pids\n", &format!("{}\n", std::process::id()));
        let unit = Unit::locate(mount.path(), "/unit", b"");
        assert_eq!(unit.hand_on(), Handed { controllers: all(), gap: None });
        let control = std::fs::read_to_string(dir.join("cgroup.subtree_control")).unwrap();
        assert_eq!(control, "+cpu +memory +pids");
        let leaf = std::fs::read_to_string(dir.join("main/cgroup.procs")).unwrap();
        assert_eq!(leaf, std::process::id().to_string());
    }

    #[test]
    fn a_group_with_other_processes_is_left_as_it_is() {
        let mount = tempfile::tempdir().unwrap();
        let dir = mount.path().join("unit");
        group(&dir, "memory pids\n", &format!("1\n{}\n", std::process::id()));
        let handed = Unit::locate(mount.path(), "/unit", b"").hand_on();
        assert!(handed.controllers.is_empty() && handed.gap.unwrap().contains("other processes (1)"));
        assert!(!dir.join("main").exists());
    }

    #[test]
    fn a_service_that_systemd_could_not_restart_is_left_as_it_is() {
        let mount = tempfile::tempdir().unwrap();
        let dir = mount.path().join("supervisor.service");
        group(&dir, "cpu memory pids\n", &format!("{}\n", std::process::id()));
        let handed = Unit::locate(mount.path(), "/supervisor.service", b"LANG=C\0").hand_on();
        assert!(handed.gap.unwrap().contains("DelegateSubgroup=daemon"));
        assert!(!dir.join("main").exists());
        let handed =
            Unit::locate(mount.path(), "/supervisor.service", b"LANG=C\0SUPERVISOR_HANDBACK=yes\0").hand_on();
        assert_eq!((handed.controllers, handed.gap), (all(), None));
        assert!(dir.join("main").exists());
    }

    #[test]
    fn what_is_not_handed_on_is_named() {
        let mount = tempfile::tempdir().unwrap();
        group(&mount.path().join("unit"), "memory pids\n", "");
        let handed = Unit::locate(mount.path(), "/unit", b"").delegable();
        assert_eq!(handed.gap.as_deref(), Some("not handed on to this group: cpu"));
        group(&mount.path().join("bare"), "\n", "");
        assert!(Unit::locate(mount.path(), "/bare", b"").delegable().gap.unwrap().contains("no controller"));
    }

    #[test]
    fn a_daemon_that_was_started_in_the_leaf_uses_the_group_above() {
        let mount = tempfile::tempdir().unwrap();
        group(&mount.path().join("unit"), "cpu memory pids\n", "");
        group(&mount.path().join("unit/daemon"), "cpu memory pids\n", "7\n8\n");
        let unit = Unit::locate(mount.path(), "/unit/daemon", b"");
        assert_eq!((unit.dir(), unit.hand_on().controllers), (&*mount.path().join("unit"), all()));
        let weight =
            |group: &str| std::fs::read_to_string(mount.path().join(group).join("cpu.weight")).unwrap();
        assert_eq!((weight("unit/daemon").as_str(), weight("unit").as_str()), ("1000", "100\n"));
    }
}
