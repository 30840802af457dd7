//! The temporary root of a demo, and who its files belong to.

use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use policies::Identity;
use tempfile::TempDir;

use crate::config::WorkerConfig;
use crate::failure::Failure;

/// The longest directory that leaves room for the root's name and its sockets in the 107 bytes of a socket's path.
const LONGEST_BASE: usize = 50;

/// The directory of one demo, or of the trial of a lane. It is removed at the end, or when this is dropped.
#[derive(Debug)]
pub(crate) struct Place {
    dir: TempDir,
}

impl Place {
    /// Makes it in a directory for temporary files in which workers can live. Its name begins with `prefix`, which is as short as
    /// `supervisor-demo-`.
    pub(crate) fn make(prefix: &str) -> Result<Self, Failure> {
        let candidates = [std::env::temp_dir(), "/tmp".into(), "/var/tmp".into()];
        let base = candidates
            .iter()
            .filter_map(|dir| dir.canonicalize().ok())
            .find(|dir| fits(dir))
            .ok_or_else(|| {
                Failure::failed("no temporary directory suits the workers")
                    .hint("set TMPDIR to a directory that is writable, allows programs to run and, as root, is open to other users")
            })?;
        let fail = |e: std::io::Error| Failure::file("make a directory in", &base, &e);
        let dir = tempfile::Builder::new().prefix(prefix).tempdir_in(&base).map_err(fail)?;
        // Workers of other uids pass through it on the way to their own places.
        std::fs::set_permissions(dir.path(), std::fs::Permissions::from_mode(0o755)).map_err(fail)?;
        Ok(Place { dir })
    }

    pub(crate) fn dir(&self) -> &Path {
        self.dir.path()
    }

    /// Removes it with its content, also that of other users.
    pub(crate) fn remove(self) -> Result<(), Failure> {
        let path = self.dir.path().to_owned();
        self.dir.close().map_err(|e| Failure::file("remove", &path, &e))
    }

    pub(crate) fn leave(self) -> PathBuf {
        self.dir.keep()
    }
}

fn fits(dir: &Path) -> bool {
    let runs_programs = rustix::fs::statvfs(dir)
        .is_ok_and(|stat| !stat.f_flag.contains(rustix::fs::StatVfsMountFlags::NOEXEC));
    let is_open =
        |dir: &Path| std::fs::metadata(dir).is_ok_and(|meta| meta.permissions().mode() & 0o001 != 0);
    let reachable = !nix::unistd::geteuid().is_root() || dir.ancestors().all(is_open);
    let writable = rustix::fs::access(dir, rustix::fs::Access::WRITE_OK).is_ok();
    dir.as_os_str().len() <= LONGEST_BASE && runs_programs && reachable && writable
}

/// How many uids one demo has: those that its daemon allocates, one for the clone, one for each tenant, and some room.
const BLOCK: u32 = 128;
/// How many of them its daemon allocates from.
const ALLOCATED: u32 = 64;
/// How many demos have uids of their own at the same time.
const BLOCKS: u32 = 32;

/// Who owns what: as root users from the end of the workers' range, which no other daemon reaches soon; else everything is the
/// caller's own.
#[derive(Clone, Copy, Debug)]
pub(super) struct Owners {
    first: Option<u32>,
}

impl Owners {
    /// The owners that fit this process's user.
    pub(super) fn of_this_process() -> Self {
        let range = WorkerConfig::default();
        let first = range.first_uid + range.uid_count - BLOCK * (1 + std::process::id() % BLOCKS);
        Owners { first: nix::unistd::geteuid().is_root().then_some(first) }
    }

    /// Whether files are given to others.
    pub(super) fn differ(self) -> bool {
        self.first.is_some()
    }

    /// The uids that the daemon may allocate: the first, and how many.
    pub(super) fn of_daemon(self) -> Option<(u32, u32)> {
        self.first.map(|first| (first, ALLOCATED))
    }

    pub(super) fn of_clone(self) -> Option<Identity> {
        self.of_tenant(0)
    }

    /// The owner of a tenant's directory; tenants count from 1.
    pub(super) fn of_tenant(self, tenant: u32) -> Option<Identity> {
        self.first.map(|first| first + ALLOCATED + tenant).map(|id| Identity { uid: id, gid: id })
    }
}

/// Gives a tree to a user. No link is followed, and nobody else can get in before all of it is the user's.
pub(super) fn give(tree: &Path, owner: Option<Identity>) -> Result<(), Failure> {
    let Some(owner) = owner else { return Ok(()) };
    let fail = |e: std::io::Error| Failure::file("give away", tree, &e);
    std::os::unix::fs::lchown(tree, Some(0), Some(0)).map_err(fail)?;
    std::fs::set_permissions(tree, std::fs::Permissions::from_mode(0o700)).map_err(fail)?;
    give_inside(tree, owner).map_err(fail)?;
    std::os::unix::fs::lchown(tree, Some(owner.uid), Some(owner.gid)).map_err(fail)
}

fn give_inside(dir: &Path, owner: Identity) -> std::io::Result<()> {
    for entry in std::fs::read_dir(dir)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            give_inside(&entry.path(), owner)?;
        }
        std::os::unix::fs::lchown(entry.path(), Some(owner.uid), Some(owner.gid))?;
    }
    Ok(())
}

/// How many entries a tree has, and how many of them belong to root.
pub(super) fn of_root(tree: &Path) -> std::io::Result<(usize, usize)> {
    let (mut all, mut roots) = (0, 0);
    let mut dirs = vec![tree.to_owned()];
    while let Some(dir) = dirs.pop() {
        for entry in std::fs::read_dir(&dir)? {
            let entry = entry?;
            let meta = entry.metadata()?;
            all += 1;
            roots += usize::from(meta.uid() == 0);
            if meta.is_dir() {
                dirs.push(entry.path());
            }
        }
    }
    Ok((all, roots))
}

/// The user that a path belongs to, where root has to become that user to work there.
pub(super) fn owner_for_root(path: &Path) -> Result<Option<Identity>, Failure> {
    let meta = std::fs::metadata(path).map_err(|e| Failure::file("look at", path, &e))?;
    let foreign = nix::unistd::geteuid().is_root() && meta.uid() != 0;
    Ok(foreign.then(|| Identity { uid: meta.uid(), gid: meta.gid() }))
}
