//! Temporary root of a demo, and the owners of its files.

use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use policies::Identity;
use tempfile::TempDir;

use base::failure::Failure;
use host::worker_user::job_user;
use setup::config::WorkerConfig;

/// Longest base directory that leaves space for the root's name and its sockets within the 107 bytes of a socket path.
const LONGEST_BASE: usize = 50;

/// Directory of one demo or lane trial, removed at the end or when this is dropped.
#[derive(Debug)]
pub(crate) struct DemoDirectory {
    dir: TempDir,
}

impl DemoDirectory {
    /// Makes the directory in a temporary directory that workers can use. `prefix` starts its name, and may be as long
    /// as `supervisor-demo-`.
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
        // Workers of other uids pass through it to their own directories.
        std::fs::set_permissions(dir.path(), std::fs::Permissions::from_mode(0o755)).map_err(fail)?;
        Ok(DemoDirectory { dir })
    }

    pub(crate) fn dir(&self) -> &Path {
        self.dir.path()
    }

    /// Removes it with its content, other users' files included.
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

/// Number of uids of one demo: for its daemon to allocate, one for the clone, one for each tenant, and a reserve.
const BLOCK: u32 = 1152;
/// Number of uids that the demo's daemon may allocate. A board has a sixteenth of them: a group for each tenant, and
/// the users of scratch workspaces.
const ALLOCATED: u32 = 1024;
/// Number of demos with separate uids at the same time.
const BLOCKS: u32 = 32;

/// Owners of the demo's files. Under root they are users from the end of the workers' range, which other daemons do not
/// reach soon; otherwise all is the caller's.
#[derive(Clone, Copy, Debug)]
pub(super) struct Owners {
    first: Option<u32>,
}

impl Owners {
    /// Returns the owners for this process's user.
    pub(super) fn of_this_process() -> Self {
        let range = WorkerConfig::default();
        let first = range.first_uid + range.uid_count - BLOCK * (1 + std::process::id() % BLOCKS);
        Owners { first: nix::unistd::geteuid().is_root().then_some(first) }
    }

    /// Returns true if files get other owners.
    pub(super) fn differ(self) -> bool {
        self.first.is_some()
    }

    /// Returns the first uid that the daemon may allocate, and their number.
    pub(super) fn of_daemon(self) -> Option<(u32, u32)> {
        self.first.map(|first| (first, ALLOCATED))
    }

    pub(super) fn of_clone(self) -> Option<Identity> {
        self.of_tenant(0)
    }

    /// Returns the owner of a tenant's directory; tenants count from 1.
    pub(super) fn of_tenant(self, tenant: u32) -> Option<Identity> {
        self.first.map(|first| first + ALLOCATED + tenant).map(|id| Identity { uid: id, gid: id })
    }
}

/// Gives a tree to a user. Follows no link, and keeps other users out until the whole tree belongs to its owner.
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

/// Returns the number of entries in a tree, and the number that belong to root.
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

/// Returns the owner of a path if root must become that user to work there.
pub(super) fn owner_for_root(path: &Path) -> Result<Option<Identity>, Failure> {
    let meta = std::fs::metadata(path).map_err(|e| Failure::file("look at", path, &e))?;
    let foreign = nix::unistd::geteuid().is_root() && meta.uid() != 0;
    Ok(foreign.then(|| job_user(meta.uid())))
}
