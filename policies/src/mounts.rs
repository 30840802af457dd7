//! A file system view that holds only what is granted, at the same absolute paths.
//!
//! The view is a mount namespace of its own: an empty tmpfs as the root, the granted paths bound into it, and the old
//! root detached. What is not there cannot be stat'ed, watched, chmod'ed or connected to.

use std::io;
use std::os::fd::{AsFd, AsRawFd};
use std::path::{Path, PathBuf};

use nix::mount::{MntFlags, MsFlags, mount, umount2};
use nix::sched::{CloneFlags, unshare};
use nix::unistd::{chdir, pivot_root};
use rustix::fs::{Mode, OFlags, StatVfsMountFlags, fstatvfs, open};

use crate::arrange::Arranged;
use crate::covers::Cover;
use crate::files::Access;
use crate::namespaces::{NamespaceError, PidNamespace, unshare_as_self};
use crate::overlays;
use crate::paths::{Kind, Link, Opened, PathError};
use crate::support::{Support, View};
use crate::user_names::Replaced;

/// Where the new root is mounted before it becomes the root; it exists on every host (hier(7)).
const STAGE: &str = "/tmp";
/// Where the old root is until it is detached.
pub(crate) const OLD: &str = "/.old";
/// Where the processes are shown.
const PROC: &str = "/proc";
/// What a run may put into its `/dev/shm`.
const SHM_OPTIONS: &str = "mode=1777,size=256m";

/// A step of making the view that failed.
#[derive(Debug, thiserror::Error)]
#[error("make the file system view: {step} {}: {source}", .path.display())]
pub struct MountError {
    step: &'static str,
    path: PathBuf,
    #[source]
    source: io::Error,
}

/// A view cannot be had here.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ProbeError {
    /// The host's settings do not permit one.
    #[error("make the file system view: {why}")]
    Unavailable {
        /// Why not.
        why: String,
    },
    /// The attempt failed.
    #[error(transparent)]
    Mount(#[from] MountError),
    /// No namespace could be made for the attempt.
    #[error(transparent)]
    Namespace(#[from] NamespaceError),
    /// A path of the attempt could not be opened.
    #[error(transparent)]
    Path(#[from] PathError),
}

/// A file system view, planned.
#[derive(Debug)]
pub(crate) struct Plan {
    how: How,
    steps: Vec<Step>,
    links: Vec<Link>,
    arranged: Vec<Arranged>,
    replaced: Vec<Replaced>,
    shm: bool,
    terminals: bool,
    processes: Processes,
    tmp: Option<Place>,
}

/// Whose privileges make the view.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum How {
    Own,
    UserNamespace,
    /// With those that the caller has in the user namespace that it was born in.
    Entered,
}

/// Whose processes `/proc` shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Processes {
    Host,
    /// Those of the caller's pid namespace, by the numbers that it knows them by.
    Own,
}

/// One mount of the view, in the order in which they are made: what comes later lies beneath or apart.
#[derive(Debug)]
enum Step {
    Bind(Place),
    Cover(Cover),
}

impl Step {
    fn path(&self) -> &Path {
        match self {
            Self::Bind(place) => &place.opened.path,
            Self::Cover(cover) => &cover.at,
        }
    }

    /// Of one path the cover comes before what is bound over it, and what is writable before what is not.
    fn rank(&self) -> u8 {
        match self {
            Self::Cover(_) => 0,
            Self::Bind(place) if place.writable => 1,
            Self::Bind(_) => 2,
        }
    }
}

/// One bound path.
#[derive(Debug)]
struct Place {
    opened: Opened,
    writable: bool,
}

/// What else a view holds.
#[derive(Debug, Clone, Default)]
pub(crate) struct Extras {
    /// What is covered beneath the granted paths.
    pub(crate) covers: Vec<Cover>,
    /// Files with another content than the host's.
    pub(crate) replaced: Vec<Replaced>,
    /// A `/dev/shm` of its own.
    pub(crate) shm: bool,
    /// A `/dev/pts` of its own, with `/dev/ptmx`.
    pub(crate) terminals: bool,
    /// The pid namespace that the caller is in, if it is not the host's.
    pub(crate) pid_namespace: Option<PidNamespace>,
}

impl Plan {
    /// Plans a view of these paths; `tmp` is also shown as `/tmp` where nothing else lies there.
    pub(crate) fn new<'a>(
        view: &View,
        granted: impl Iterator<Item = (&'a Opened, Access)>,
        links: &[Link],
        extras: Extras,
        tmp: Option<&Opened>,
    ) -> Result<Option<Self>, PathError> {
        let how = match (view, extras.pid_namespace) {
            (View::Privileged, _) => How::Own,
            (View::UserNamespace, None) => How::UserNamespace,
            (View::UserNamespace, Some(_)) => How::Entered,
            (View::Unavailable { .. }, _) => return Ok(None),
        };
        let processes = if extras.pid_namespace.is_some() { Processes::Own } else { Processes::Host };
        let mut wanted: Vec<Step> = extras.covers.into_iter().map(Step::Cover).collect();
        for (opened, access) in granted {
            wanted.push(Step::Bind(Place { opened: opened.again()?, writable: access.writes() }));
        }
        // Shorter paths first, so that a mount never hides an earlier one.
        wanted.sort_by(|a, b| a.path().cmp(b.path()).then(a.rank().cmp(&b.rank())));
        let mut steps: Vec<Step> = Vec::new();
        for step in wanted {
            let above = steps.iter().rev().find(|above| step.path().starts_with(above.path()));
            let needed = match (&step, above) {
                // What lies beneath a bound path is bound with it.
                (Step::Bind(place), Some(Step::Bind(above))) => place.writable && !above.writable,
                (Step::Bind(_), _) => true,
                // What the run may write is its own; what is not there, or covered as a whole, needs no cover.
                (Step::Cover(_), Some(Step::Bind(above))) => !above.writable,
                (Step::Cover(_), _) => false,
            };
            if needed {
                steps.push(step);
            }
        }
        let bound = |path: &Path| {
            steps.iter().any(|step| matches!(step, Step::Bind(place) if path.starts_with(&place.opened.path)))
        };
        let tmp = match tmp {
            Some(tmp) if !steps.iter().any(|step| step.path().starts_with(STAGE)) => {
                Some(Place { opened: tmp.again()?, writable: true })
            }
            _ => None,
        };
        let links = links.iter().filter(|link| !bound(&link.at)).cloned().collect();
        let replaced = extras.replaced.into_iter().filter(|file| bound(file.at)).collect();
        Ok(Some(Self {
            how,
            steps,
            links,
            arranged: Vec::new(),
            replaced,
            shm: extras.shm,
            terminals: extras.terminals,
            processes,
            tmp,
        }))
    }

    /// Adds steps that come after everything else.
    pub(crate) fn arranged(self, arranged: Vec<Arranged>) -> Self {
        Self { arranged, ..self }
    }

    /// Returns what those steps show.
    pub(crate) fn shown(&self) -> impl Iterator<Item = (&Opened, Access)> {
        self.arranged.iter().filter_map(Arranged::granted)
    }

    /// Returns the files that the run sees with another content than the host's.
    pub(crate) fn replaced(&self) -> impl Iterator<Item = &'static Path> {
        self.replaced.iter().map(|file| file.at)
    }

    /// Whether the run gets a user namespace of its own.
    pub(crate) fn makes_user_namespace(&self) -> bool {
        self.how != How::Own
    }

    /// Makes the view that of the calling process, and leaves it in the new root.
    pub(crate) fn enter(self) -> Result<(), ProbeError> {
        self.unshare()?;
        rustix::process::umask(Mode::from_raw_mode(0o022));
        mount_at("make private", None, Path::new("/"), None, MsFlags::MS_REC | MsFlags::MS_PRIVATE, None)?;
        let safe = MsFlags::MS_NOSUID | MsFlags::MS_NODEV;
        mount_at(
            "mount tmpfs at",
            Some("tmpfs"),
            Path::new(STAGE),
            Some("tmpfs"),
            safe,
            Some("mode=755,size=1m"),
        )?;
        let put_old = format!("{STAGE}{OLD}");
        at("make", Path::new(OLD), std::fs::create_dir(&put_old))?;
        at("pivot to", Path::new(STAGE), pivot_root(STAGE, put_old.as_str()).map_err(io::Error::from))?;
        at("enter", Path::new("/"), chdir("/").map_err(io::Error::from))?;
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let old = at("open", Path::new(OLD), open(OLD, flags, Mode::empty()).map_err(io::Error::from))?;
        overlays::prepare()?;
        let mut covered = Vec::new();
        for step in &self.steps {
            match step {
                Step::Bind(place) => {
                    let is_proc = place.opened.path == Path::new(PROC);
                    // Where the host masks parts of its own it permits no other one (mount_too_revealing in
                    // fs/namespace.c).
                    if is_proc && self.processes == Processes::Own && mount_proc().is_ok() {
                        continue;
                    }
                    place.bind(&old, &place.opened.path)?;
                }
                Step::Cover(cover) => covered.extend(cover.mount()?),
            }
        }
        for file in &self.replaced {
            file.mount()?;
        }
        if let Some(tmp) = &self.tmp {
            tmp.bind(&old, Path::new(STAGE))?;
        }
        self.extras()?;
        for link in &self.links {
            parents(&link.at)?;
            at("link", &link.at, std::os::unix::fs::symlink(&link.target, &link.at))?;
        }
        self.arrange(&old)?;
        drop(old);
        for path in covered {
            seal(path)?;
        }
        at("detach", Path::new(OLD), umount2(OLD, MntFlags::MNT_DETACH).map_err(io::Error::from))?;
        at("remove", Path::new(OLD), std::fs::remove_dir(OLD))?;
        Ok(seal(Path::new("/"))?)
    }

    fn unshare(&self) -> Result<(), ProbeError> {
        match self.how {
            How::Own | How::Entered => unshare_mounts()?,
            How::UserNamespace => unshare_as_self(CloneFlags::CLONE_NEWNS)?,
        }
        Ok(())
    }

    /// Takes the arranged steps, and seals the directories that they made.
    fn arrange(&self, old: impl AsFd) -> Result<(), ProbeError> {
        let safe = MsFlags::MS_NOSUID | MsFlags::MS_NODEV | MsFlags::MS_NOEXEC;
        for step in &self.arranged {
            match step {
                Arranged::Fresh { at: path, uid, gid } => {
                    at("make", path, std::fs::create_dir_all(path))?;
                    // The directory itself, whatever its name leads to by then.
                    let target = Opened::real(path)?.directory()?;
                    let name = format!("{OLD}/proc/self/fd/{}", target.as_fd().as_raw_fd());
                    let options = format!("mode=755,size=64k,uid={uid},gid={gid}");
                    mount_at("empty", Some("tmpfs"), Path::new(&name), Some("tmpfs"), safe, Some(&options))?;
                }
                Arranged::Bind { at: path, source, access } => {
                    let place = Place { opened: source.again()?, writable: access.writes() };
                    place.bind(&old, path)?;
                }
                Arranged::Link { at: path, target } => {
                    parents(path)?;
                    at("link", path, std::os::unix::fs::symlink(target, path))?;
                }
            }
        }
        for step in &self.arranged {
            if let Arranged::Fresh { at: path, .. } = step {
                let seal = MsFlags::MS_REMOUNT | MsFlags::MS_BIND | MsFlags::MS_RDONLY | safe;
                mount_at("seal", None, path, None, seal, None)?;
            }
        }
        Ok(())
    }

    fn extras(&self) -> Result<(), MountError> {
        let safe = MsFlags::MS_NOSUID | MsFlags::MS_NODEV | MsFlags::MS_NOEXEC;
        if self.shm {
            let path = Path::new("/dev/shm");
            at("make", path, std::fs::create_dir_all(path))?;
            mount_at("mount", Some("tmpfs"), path, Some("tmpfs"), safe, Some(SHM_OPTIONS))?;
        }
        if self.terminals {
            let path = Path::new("/dev/pts");
            at("make", path, std::fs::create_dir_all(path))?;
            let safe = MsFlags::MS_NOSUID | MsFlags::MS_NOEXEC;
            mount_at(
                "mount",
                Some("devpts"),
                path,
                Some("devpts"),
                safe,
                Some("newinstance,ptmxmode=0666,mode=0620"),
            )?;
            at("link", Path::new("/dev/ptmx"), std::os::unix::fs::symlink("pts/ptmx", "/dev/ptmx"))?;
        }
        if Path::new("/proc/self").exists() {
            at("make", Path::new("/dev"), std::fs::create_dir_all("/dev"))?;
            for (name, target) in [("fd", ""), ("stdin", "/0"), ("stdout", "/1"), ("stderr", "/2")] {
                let at_path = Path::new("/dev").join(name);
                at("link", &at_path, std::os::unix::fs::symlink(format!("/proc/self/fd{target}"), &at_path))?;
            }
        }
        Ok(())
    }
}

impl Place {
    /// Binds the path, found again under the old root, at `target` of the new one.
    fn bind(&self, old: impl AsFd, target: &Path) -> Result<(), ProbeError> {
        let source = self.opened.same_under(old)?;
        let rec = MsFlags::MS_BIND | MsFlags::MS_REC;
        parents(target)?;
        if !target.exists() {
            match self.opened.kind {
                Kind::Directory => at("make", target, std::fs::create_dir(target))?,
                Kind::Device | Kind::Other => at("make", target, std::fs::File::create(target).map(drop))?,
            }
        }
        // The name of an open file, so that nothing is looked up a second time.
        let name = format!("{OLD}/proc/self/fd/{}", source.as_fd().as_raw_fd());
        mount_at("bind", Some(&name), target, None, rec, None)?;
        if self.opened.path == Path::new(PROC) {
            return Ok(());
        }
        let flags = at("inspect", target, fstatvfs(&source).map_err(io::Error::from))?.f_flag;
        let mut keep = MsFlags::MS_REMOUNT | MsFlags::MS_BIND | MsFlags::MS_NOSUID;
        for (has, flag) in [
            (StatVfsMountFlags::RDONLY, MsFlags::MS_RDONLY),
            (StatVfsMountFlags::NODEV, MsFlags::MS_NODEV),
            (StatVfsMountFlags::NOEXEC, MsFlags::MS_NOEXEC),
            (StatVfsMountFlags::NOATIME, MsFlags::MS_NOATIME),
            (StatVfsMountFlags::NODIRATIME, MsFlags::MS_NODIRATIME),
            (StatVfsMountFlags::RELATIME, MsFlags::MS_RELATIME),
        ] {
            keep.set(flag, flags.contains(has));
        }
        if !self.writable {
            keep |= MsFlags::MS_RDONLY;
        }
        if self.opened.kind != Kind::Device {
            keep |= MsFlags::MS_NODEV;
        }
        mount_at("protect", None, target, None, keep, None)?;
        Ok(())
    }
}

fn unshare_mounts() -> Result<(), MountError> {
    at("unshare", Path::new("/proc/self"), unshare(CloneFlags::CLONE_NEWNS).map_err(io::Error::from))
}

/// Mounts a `/proc` of the caller's pid namespace.
fn mount_proc() -> Result<(), MountError> {
    let path = Path::new(PROC);
    at("make", path, std::fs::create_dir_all(path))?;
    let safe = MsFlags::MS_NOSUID | MsFlags::MS_NODEV | MsFlags::MS_NOEXEC;
    mount_at("mount", Some("proc"), path, Some("proc"), safe, None)
}

/// Shows the processes of the caller's pid namespace in `/proc`, and leaves all else as the host has it.
pub(crate) fn show_own_processes() -> Result<(), MountError> {
    unshare_mounts()?;
    // The host's later mounts still arrive; none of this goes back.
    let flags = MsFlags::MS_REC | MsFlags::MS_SLAVE;
    mount_at("separate", None, Path::new("/"), None, flags, None)?;
    mount_proc()
}

/// Makes a mount read-only.
pub(crate) fn seal(path: &Path) -> Result<(), MountError> {
    let flags = MsFlags::MS_REMOUNT | MsFlags::MS_BIND | MsFlags::MS_RDONLY;
    let safe = MsFlags::MS_NOSUID | MsFlags::MS_NODEV;
    mount_at("seal", None, path, None, flags | safe, None)
}

/// Makes the directories above a path.
fn parents(path: &Path) -> Result<(), MountError> {
    let Some(parent) = path.parent() else { return Ok(()) };
    at("make", parent, std::fs::create_dir_all(parent))
}

pub(crate) fn at<T>(step: &'static str, path: &Path, result: io::Result<T>) -> Result<T, MountError> {
    result.map_err(|source| MountError { step, path: path.to_owned(), source })
}

pub(crate) fn mount_at(
    step: &'static str,
    source: Option<&str>,
    target: &Path,
    kind: Option<&str>,
    flags: MsFlags,
    data: Option<&str>,
) -> Result<(), MountError> {
    at(step, target, mount(source, target, kind, flags, data).map_err(io::Error::from))
}

/// Makes a view of the host's `/usr` that of the calling process, to learn whether this host permits it. For a
/// single-threaded process that then exits.
///
/// # Errors
/// Names the step that is not permitted.
pub fn probe_view() -> Result<(), ProbeError> {
    let view = Support::detect().view;
    if let View::Unavailable { why } = view {
        return Err(ProbeError::Unavailable { why });
    }
    let usr = Opened::real(Path::new("/usr"))?;
    let proc = Opened::real(Path::new("/proc"))?;
    let null = Opened::real(Path::new("/dev/null"))?;
    let extras = Extras { shm: true, terminals: true, ..Extras::default() };
    let granted = [(&usr, Access::Execute), (&proc, Access::Read), (&null, Access::Device)];
    match Plan::new(&view, granted.into_iter(), &[], extras, None)? {
        Some(plan) => plan.enter(),
        None => Ok(()),
    }
}

#[cfg(test)]
impl Plan {
    /// Whether the run sees something empty in place of a path.
    pub(crate) fn covers(&self, path: &Path) -> bool {
        self.steps.iter().any(|step| matches!(step, Step::Cover(cover) if cover.at == path))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn opened(path: &Path) -> Opened {
        Opened::real(path).unwrap()
    }

    #[test]
    fn what_lies_beneath_a_bound_path_is_not_bound_again_unless_it_is_wider() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(dir.path().join("a/b/c")).unwrap();
        let [a, b, c] = ["a", "a/b", "a/b/c"].map(|name| opened(&dir.path().join(name)));
        let granted = [(&c, Access::Read), (&b, Access::Write), (&a, Access::Read)];
        let plan =
            Plan::new(&View::Privileged, granted.into_iter(), &[], Extras::default(), None).unwrap().unwrap();
        assert_eq!(shown(&plan), [(a.path.as_path(), "ro"), (b.path.as_path(), "rw")]);
    }

    #[test]
    fn what_is_the_runs_own_is_bound_over_a_cover_and_never_covered() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(dir.path().join("a/sv/own/inner")).unwrap();
        std::fs::create_dir_all(dir.path().join("b")).unwrap();
        let [a, sv, own, inner] =
            ["a", "a/sv", "a/sv/own", "a/sv/own/inner"].map(|name| opened(&dir.path().join(name)));
        let what = crate::covers::Covered::Supervisor;
        let cover = |path: &Path| Cover { at: path.to_owned(), what };
        let covers = vec![cover(&sv.path), cover(&inner.path), cover(&dir.path().join("b"))];
        let extras = Extras { covers, ..Extras::default() };
        let granted = [(&a, Access::Read), (&own, Access::Write)];
        let plan = Plan::new(&View::Privileged, granted.into_iter(), &[], extras, None).unwrap().unwrap();
        let expected = [(a.path.as_path(), "ro"), (sv.path.as_path(), "covered"), (own.path.as_path(), "rw")];
        assert_eq!(shown(&plan), expected);
    }

    fn shown(plan: &Plan) -> Vec<(&Path, &'static str)> {
        let word = |step: &Step| match step {
            Step::Cover(_) => "covered",
            Step::Bind(place) if place.writable => "rw",
            Step::Bind(_) => "ro",
        };
        plan.steps.iter().map(|step| (step.path(), word(step))).collect()
    }

    #[test]
    fn no_view_is_planned_where_none_can_be_had() {
        let view = View::Unavailable { why: "no".into() };
        assert!(Plan::new(&view, std::iter::empty(), &[], Extras::default(), None).unwrap().is_none());
    }
}
