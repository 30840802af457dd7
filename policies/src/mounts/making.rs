//! Making a planned view: the mounts themselves, each a step that may fail.

use std::collections::BTreeSet;
use std::io;
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use nix::mount::{MntFlags, MsFlags, umount2};
use nix::sched::{CloneFlags, unshare};
use nix::unistd::{chdir, getegid, geteuid, pivot_root};
use rustix::fs::{Mode, OFlags, StatVfsMountFlags, fstatvfs, open};

use super::{How, OpenedPath, PROC, Plan, Processes, STAGE, ViewMount};
use crate::arrange::Arranged;
use crate::mounting::{MountError, OLD, ProbeError, at, mount_at, seal};
use crate::namespaces::unshare_as_self;
use crate::overlays;
use crate::paths::{Kind, Opened};
use crate::shares::TERMINALS;

/// Mount options of a run's `/dev/shm`, which limit its size.
const SHM_OPTIONS: &str = "mode=1777,size=256m";

impl Plan {
    /// Moves the calling process into the view, and leaves it in the new root.
    pub(crate) fn enter(self) -> Result<(), ProbeError> {
        let host = mount_namespace()?;
        self.unshare()?;
        require_left(host)?;
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
        let mut tmp = self.tmp.as_ref();
        let mut ways = Vec::new();
        let mut show_tmp = |tmp: &OpenedPath| -> Result<(), ProbeError> {
            tmp.bind(&old, Path::new(STAGE))?;
            ways = self.ways_through_tmp()?;
            Ok(())
        };
        for step in &self.steps {
            // The steps are sorted, so this is the first of those beneath: the run sees them in its own `/tmp`.
            if step.path().starts_with(STAGE) {
                tmp.take().map_or(Ok(()), &mut show_tmp)?;
            }
            match step {
                ViewMount::Bind(place) => {
                    let is_proc = place.opened.path == Path::new(PROC);
                    // A host that masks parts of its own `/proc` permits no second one (mount_too_revealing in
                    // fs/namespace.c).
                    if is_proc && self.processes == Processes::Own && mount_proc().is_ok() {
                        continue;
                    }
                    place.bind(&old, &place.opened.path)?;
                }
                ViewMount::Cover(cover) => covered.extend(cover.mount()?),
            }
        }
        for file in &self.replaced {
            file.mount()?;
        }
        tmp.take().map_or(Ok(()), &mut show_tmp)?;
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
        for way in &ways {
            at("close", way, close(way))?;
            seal(way)?;
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

    /// Mounts an empty directory at the top of each path through the run's own `/tmp` to a path that is shown beneath
    /// it, and returns these directories. They are closed at the end, so that the run can neither list them nor write
    /// there.
    fn ways_through_tmp(&self) -> Result<Vec<PathBuf>, MountError> {
        let arranged = self.arranged.iter().map(|step| match step {
            Arranged::Fresh { at, .. } | Arranged::Bind { at, .. } | Arranged::Link { at, .. } => {
                at.as_path()
            }
        });
        let links = self.links.iter().map(|link| link.at.as_path());
        let all = self.steps.iter().map(ViewMount::path).chain(arranged).chain(links);
        let tops: BTreeSet<PathBuf> = all
            .filter_map(|path| Some(Path::new(STAGE).join(path.strip_prefix(STAGE).ok()?.iter().next()?)))
            .filter(|top| !self.steps.iter().any(|step| step.path() == top))
            .collect();
        let safe = MsFlags::MS_NOSUID | MsFlags::MS_NODEV | MsFlags::MS_NOEXEC;
        for top in &tops {
            directories(top)?;
            mount_at("empty", Some("tmpfs"), top, Some("tmpfs"), safe, Some("mode=755,size=64k"))?;
        }
        Ok(tops.into_iter().collect())
    }

    /// Takes the arranged steps, and seals the directories that they made.
    fn arrange(&self, old: impl AsFd) -> Result<(), ProbeError> {
        let safe = MsFlags::MS_NOSUID | MsFlags::MS_NODEV | MsFlags::MS_NOEXEC;
        for step in &self.arranged {
            match step {
                Arranged::Fresh { at: path, uid, gid } => {
                    directories(path)?;
                    // The descriptor stands for the directory, wherever its name may lead by now.
                    let target = Opened::real(path)?.directory()?;
                    let name = format!("{OLD}/proc/self/fd/{}", target.as_fd().as_raw_fd());
                    let (uid, gid) = match self.how {
                        How::Own => (*uid, *gid),
                        // The user and the group of the caller are the only ones that its namespace knows
                        // (user_namespaces(7)). The kernel refuses a mount for others, such as a further group of the
                        // user, or another member of a group that shares a repository.
                        How::UserNamespace | How::Entered => (geteuid().as_raw(), getegid().as_raw()),
                    };
                    let options = format!("mode=755,size=64k,uid={uid},gid={gid}");
                    mount_at("empty", Some("tmpfs"), Path::new(&name), Some("tmpfs"), safe, Some(&options))?;
                }
                Arranged::Bind { at: path, source, access } => {
                    let place = OpenedPath { opened: source.again()?, writable: access.writes() };
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
            // Terminals are devices, so this mount permits them.
            let safe = MsFlags::MS_NOSUID | MsFlags::MS_NOEXEC;
            mount_at(
                "mount",
                Some("devpts"),
                path,
                Some("devpts"),
                safe,
                Some(&format!("newinstance,ptmxmode=0666,mode=0620,max={TERMINALS}")),
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

impl OpenedPath {
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
        // The name of the open file in `/proc`, so that the path is not resolved a second time.
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

/// The file of the calling thread's mount namespace (namespaces(7)).
const OWN_NAMESPACE: &str = "/proc/thread-self/ns/mnt";

/// Returns the mount namespace of the calling thread: the inode of its file.
fn mount_namespace() -> Result<u64, MountError> {
    let path = Path::new(OWN_NAMESPACE);
    Ok(at("look at", path, std::fs::metadata(path))?.ino())
}

/// Refuses to mount anything in the namespace that the caller came from, because its mounts are the host's.
fn require_left(host: u64) -> Result<(), MountError> {
    let is_left = mount_namespace()? != host;
    let detached =
        if is_left { Ok(()) } else { Err(io::Error::other("the mounts would be those of the host")) };
    at("leave", Path::new(OWN_NAMESPACE), detached)
}

/// Mounts a `/proc` of the caller's pid namespace.
fn mount_proc() -> Result<(), MountError> {
    let path = Path::new(PROC);
    at("make", path, std::fs::create_dir_all(path))?;
    let safe = MsFlags::MS_NOSUID | MsFlags::MS_NODEV | MsFlags::MS_NOEXEC;
    mount_at("mount", Some("proc"), path, Some("proc"), safe, None)
}

/// Shows the processes of the caller's pid namespace in `/proc`, and changes nothing else.
pub(crate) fn show_own_processes() -> Result<(), MountError> {
    let host = mount_namespace()?;
    unshare_mounts()?;
    require_left(host)?;
    // Later mounts of the host still appear here, and mounts made here do not appear on the host.
    let flags = MsFlags::MS_REC | MsFlags::MS_SLAVE;
    mount_at("separate", None, Path::new("/"), None, flags, None)?;
    mount_proc()
}

/// Makes the directories above a path.
fn parents(path: &Path) -> Result<(), MountError> {
    let Some(parent) = path.parent() else { return Ok(()) };
    directories(parent)
}

/// Removes the permissions to list and to write from a directory and the directories beneath it on the same file
/// system.
fn close(dir: &Path) -> io::Result<()> {
    let device = std::fs::symlink_metadata(dir)?.dev();
    for entry in std::fs::read_dir(dir)? {
        let path = entry?.path();
        let metadata = std::fs::symlink_metadata(&path)?;
        if metadata.is_dir() && metadata.dev() == device {
            close(&path)?;
        }
    }
    std::fs::set_permissions(dir, std::fs::Permissions::from_mode(0o111))
}

/// Makes a directory and the missing directories above it. Each gets the owner of the directory around it, so that the
/// worker's user can empty the run's own `/tmp`.
fn directories(path: &Path) -> Result<(), MountError> {
    if path.exists() {
        return Ok(());
    }
    let Some(parent) = path.parent() else { return Ok(()) };
    directories(parent)?;
    at("make", path, std::fs::create_dir(path))?;
    let above = at("look at", parent, std::fs::metadata(parent))?;
    let user = rustix::process::geteuid().as_raw();
    if user == 0 && above.uid() != user {
        let given = std::os::unix::fs::lchown(path, Some(above.uid()), Some(above.gid()));
        return at("give away", path, given);
    }
    Ok(())
}
