//! The private part of a worktree in the repository's `.git`, and the view of `.git` that a worker gets.
//!
//! A worker sees a `.git` that is assembled for it. It reads the settings, the hooks and the existing objects. It
//! writes to an object store of its own, which borrows from the shared store, to its own branch, to its tags and
//! stashes, to a copy of the worktree's metadata, and to a copy of the packed references, because git locks those at
//! each commit. Its writes reach the repository only by [`Private::publish`](super::publish).
//!
//! See decision 0027.

use std::path::{Path, PathBuf};

use fs_err as fs;
use git2::Oid;

use super::{PREFIX, WorktreeError};
use crate::git::Source;
use crate::links::{self, Links};
use crate::name::Name;
use crate::prepared::{Grants, Shown};
use crate::tree::remove_tree;

/// Directory of git-lfs in a `.git`.
pub(super) const STORE: &str = "lfs";
/// Directory in `.git` with the private parts of all worktrees. Git itself has no such directory.
const HOME: &str = "supervisor";
/// Entries of a `.git` that a worker reads unchanged, if they exist: settings, hooks, and files that these name.
const SHOWN: [&str; 8] =
    ["HEAD", "config", "config.worktree", "description", "hooks", "info", "modules", "shallow"];

/// Settings of the main worktree that hold for its own files.
const OF_MAIN: [&str; 5] =
    ["core.bare", "core.worktree", "core.sparseCheckout", "core.sparseCheckoutCone", "index.sparse"];

/// Private part of one worktree.
#[derive(Debug)]
pub(crate) struct Private<'a> {
    pub(crate) links: &'a Links,
    pub(crate) id: &'a Name,
    pub(crate) branch: String,
}

impl Private<'_> {
    fn home(&self) -> PathBuf {
        self.links.common.join(HOME)
    }

    pub(crate) fn dir(&self) -> PathBuf {
        self.home().join(self.id.as_str())
    }

    /// Returns the directory of the worker's new objects.
    pub(crate) fn objects(&self) -> PathBuf {
        self.dir().join("objects")
    }

    /// Returns the directory of the branches `task/…` that the worker writes.
    pub(crate) fn heads(&self) -> PathBuf {
        self.dir().join("refs/heads").join(PREFIX)
    }

    /// Returns the worker's copy of the packed references.
    pub(crate) fn packed(&self) -> PathBuf {
        self.dir().join("packed/packed-refs")
    }

    /// Returns the packed references as they were when the private part was made. No worker sees this file.
    pub(super) fn packed_as_given(&self) -> PathBuf {
        self.dir().join("packed.given")
    }

    /// Returns the commit of the branch at the time when the private part was made; none if there is no complete
    /// private part. No worker sees this file.
    pub(crate) fn given(&self) -> Option<Oid> {
        Oid::from_str(&links::read(&self.dir().join("given"))?).ok()
    }

    /// Makes the private part anew, for a branch whose tip is `tip`. With `keeps_large`, it contains a store for
    /// git-lfs.
    pub(crate) fn provide(&self, source: &Source, tip: Oid, keeps_large: bool) -> Result<(), WorktreeError> {
        source.shared(|| self.discard())?;
        let dir = self.dir();
        let made = || -> std::io::Result<()> {
            for name in ["objects/info", "objects/pack", "refs/tags", "packed"] {
                fs::create_dir_all(dir.join(name))?;
            }
            for name in ["refs/heads", "logs/refs/heads"] {
                fs::create_dir_all(dir.join(name).join(PREFIX))?;
            }
            if keeps_large || has_store(source) {
                fs::create_dir_all(dir.join(STORE).join("objects"))?;
                fs::create_dir_all(self.links.common.join(STORE))?;
            }
            // The path is absolute, because git-lfs looks for the shared objects beside this path, and not beside the
            // `objects` of the `.git` that the worker sees.
            let shared = self.home().join("shared");
            fs::write(dir.join("objects/info/alternates"), format!("{}\n", shared.display()))?;
            fs::write(self.heads().join(self.id.as_str()), format!("{tip}\n"))?;
            let settings = self.links.metadata.join("config.worktree");
            if settings.symlink_metadata().is_err() {
                fs::write(&settings, "")?;
                self.take_settings(source, &settings);
            }
            fs::write(dir.join("config.worktree"), links::read_bytes(&settings).unwrap_or_default())
        };
        let failed = |source| WorktreeError::Private { path: dir.clone(), source };
        made().map_err(failed)?;
        source.shared(|| self.provide_metadata())?;
        let packed = source.packed_references()?;
        fs::write(self.packed(), &packed).map_err(failed)?;
        fs::write(self.packed_as_given(), &packed).map_err(failed)?;
        self.provide_kept(source)?;
        // Written last, because this file marks the private part as complete.
        fs::write(dir.join("given"), format!("{tip}\n")).map_err(failed)
    }

    /// Gives a new worktree the settings that belong to the main worktree alone, as `git worktree add` does. Settings
    /// about the files of the main worktree are left out, because the new worktree has all files.
    fn take_settings(&self, source: &Source, settings: &Path) {
        let is_used = source.git().config().and_then(|all| all.get_bool("extensions.worktreeConfig"));
        let text = links::read_whole(&self.links.common.join("config.worktree")).unwrap_or_default();
        if !is_used.unwrap_or_default() || text.is_empty() {
            return;
        }
        let taken = || -> Result<(), git2::Error> {
            let failed = |error: std::io::Error| git2::Error::from_str(&error.to_string());
            fs::write(settings, &text).map_err(failed)?;
            let mut own = git2::Config::open(settings)?;
            for name in OF_MAIN {
                match own.remove(name) {
                    Err(error) if error.code() != git2::ErrorCode::NotFound => return Err(error),
                    Ok(()) | Err(_) => {}
                }
            }
            Ok(())
        };
        // Settings that cannot be read as a whole are not taken over in parts.
        if taken().is_err() {
            drop(fs::write(settings, ""));
        }
    }

    /// Removes the private part, after the worker's writes in it were taken over.
    pub(crate) fn discard(&self) -> Result<(), WorktreeError> {
        let home = self.home();
        fs::create_dir_all(&home).map_err(|source| WorktreeError::Private { path: home.clone(), source })?;
        // The mark of completeness is removed first, so that after a crash no incomplete private part looks complete.
        match fs::remove_file(self.dir().join("given")) {
            Err(source) if source.kind() != std::io::ErrorKind::NotFound => {
                return Err(WorktreeError::Private { path: self.dir(), source });
            }
            _ => {}
        }
        remove_tree(&home, self.id).map(drop).map_err(WorktreeError::Clear)
    }

    /// Returns the settings of this worktree alone, as they were when the private part was made.
    pub(crate) fn settings(&self) -> Option<Vec<u8>> {
        self.given()?;
        links::read_bytes(&self.dir().join("config.worktree"))
    }

    /// Returns the access of a worker: the steps of its view, and the paths that it is granted without a view.
    pub(crate) fn grants(&self, source: &Source) -> Grants {
        let common = &self.links.common;
        let dir = self.dir();
        let show = |at: PathBuf, source: PathBuf| Shown::Show { at, source };
        let lend = |at: PathBuf, source: PathBuf| Shown::Lend { at, source };
        let itself = |path: PathBuf| Shown::Show { at: path.clone(), source: path };
        let mut shown = vec![Shown::Fresh { at: common.clone() }];
        let plain = |path: &Path| path.symlink_metadata().is_ok_and(|meta| meta.is_file() || meta.is_dir());
        shown.extend(SHOWN.iter().map(|name| common.join(name)).filter(|path| plain(path)).map(itself));
        let mut write = vec![
            self.links.metadata.clone(),
            common.join("objects"),
            source.heads(PREFIX),
            source.logs(PREFIX),
        ];
        let heads = Path::new("refs/heads").join(PREFIX);
        let logs = Path::new("logs").join(&heads);
        shown.extend([
            lend(common.join("objects"), self.objects()),
            show(common.join(HOME).join("shared"), common.join("objects")),
            // The directory is for tags and the stash.
            lend(common.join("refs"), dir.join("refs")),
            show(common.join("refs/heads"), dir.join("refs/heads")),
            lend(common.join(&heads), self.heads()),
            lend(common.join("logs"), dir.join("logs")),
            show(common.join("logs/refs/heads"), dir.join("logs/refs/heads")),
            lend(common.join(&logs), dir.join(&logs)),
            // This entry is a link, because git makes the lock beside the file to which the link leads.
            lend(common.join(HOME).join("packed"), dir.join("packed")),
            Shown::Link {
                at: common.join("packed-refs"),
                target: Path::new(HOME).join("packed/packed-refs"),
            },
            lend(self.links.metadata.clone(), self.metadata()),
        ]);
        if self.has_modules() {
            let modules = self.links.metadata.join("modules");
            shown.push(lend(modules.clone(), modules));
        }
        let large = dir.join(STORE);
        if large.is_dir() {
            shown.push(show(common.join(HOME).join(STORE), common.join(STORE)));
            shown.push(lend(common.join(STORE), large));
            write.push(common.join(STORE));
        }
        let named = source.named_files();
        shown.extend(named.iter().cloned().map(itself));
        // These files link the worktree to the repository, or name programs that git starts.
        for name in ["commondir", "gitdir", "config.worktree"] {
            shown.push(itself(self.links.metadata.join(name)));
        }
        shown.push(itself(self.links.tree.join(".git")));
        Grants { shown, read: std::iter::once(common.clone()).chain(named).collect(), write }
    }
}

/// Returns true if a repository keeps objects of Git LFS, or is set up for them.
fn has_store(source: &Source) -> bool {
    source.common.join(STORE).is_dir()
        || source.git().config().is_ok_and(|all| all.get_entry("filter.lfs.clean").is_ok())
}
