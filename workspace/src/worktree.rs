//! The `worktree` workspace: a linked git worktree on a branch of its own, made, reused or repaired.

mod aside;
mod beside;
mod claims;
mod conversion;
mod error;
mod filters;
mod index;
mod large;
mod metadata;
mod note;
mod objects;
mod private;
mod publish;
mod seal;
#[cfg(test)]
mod settings_tests;
#[cfg(test)]
mod tests;
mod worker_references;

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use fs_err as fs;
use git2::build::CheckoutBuilder;
use git2::{ErrorClass, Repository};
use serde::{Deserialize, Serialize};

pub use self::error::WorktreeError;
use self::filters::{Filtered, plain};
pub(crate) use self::note::Note;
pub(crate) use self::private::Private;
pub use self::seal::Sealed;
pub(crate) use self::worker_references::forget_references;
use crate::author::Author;
use crate::base::Base;
use crate::git::{Source, overrides};
use crate::links::{self, Links};
use crate::locks::{self, Surroundings};
use crate::name::Name;
use crate::open::{self, OpenError};
use crate::prepared::{Branch, CheckedOut, Kind, Owner, Preparation, Prepared};
use crate::tree::{self, remove_tree};
use lease::FileIdentity;

/// Limit on the submodules in a sentence.
const NAMED: usize = 20;
/// First component of the name of every branch made here.
const PREFIX: &str = "task";

/// A linked worktree: `<worktrees>/<id>` of `repository`, on the branch `task/<id>`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Worktree {
    /// Path of the repository: absolute, without symbolic links, with a working tree.
    pub repository: PathBuf,
    /// Directory of the worktrees; `<repository>/.worktrees` if not given.
    pub worktrees: Option<PathBuf>,
    /// Name that git has for the worktree (`.git/worktrees/NAME`).
    pub id: Name,
}

impl Worktree {
    /// Names the worktree `id` in the repository's own `.worktrees`.
    pub fn new(repository: impl Into<PathBuf>, id: Name) -> Self {
        Self { repository: repository.into(), worktrees: None, id }
    }

    /// Returns the working tree's path.
    pub fn path(&self) -> PathBuf {
        self.directory().join(self.id.as_str())
    }

    /// Returns the branch's name.
    pub fn branch(&self) -> String {
        format!("{PREFIX}/{}", self.id)
    }

    /// Makes the worktree, takes an existing worktree, or repairs the remains of a crash.
    ///
    /// A worktree that is not empty keeps all its files, with uncommitted work and a detached HEAD. Only the files that
    /// link it to the repository are repaired. An existing branch is continued. The caller must hold the lease of the
    /// worktree, because lock files of a killed git are removed. A live git that has the worktree locked is left alone, and
    /// the call fails.
    ///
    /// The worker's access beside the worktree ([`Prepared::grants`]) is narrow. It sees a `.git` that is made for it,
    /// in which it writes new objects, its branch and the metadata of this worktree; [`Worktree::seal`] takes them
    /// over. Its tags and stashes are its own as well, and are kept for its next run. Other branches, configuration and
    /// hooks are read-only there, so `git config` and `git gc` fail. A worker without a view of its own can move the
    /// branches of other worktrees and destroy shared objects. Object stores from which the repository borrows
    /// (`objects/info/alternates`) are not granted.
    pub fn prepare(&self, base: &Base, author: Option<&Author>) -> Result<Prepared, WorktreeError> {
        self.prepare_telling(base, author, &|_| {})
    }

    /// Prepares as [`Worktree::prepare`] does, and reports the files of a new worktree as they are written.
    pub fn prepare_telling(
        &self,
        base: &Base,
        author: Option<&Author>,
        tell: &dyn Fn(CheckedOut),
    ) -> Result<Prepared, WorktreeError> {
        let source = Source::open(&self.repository)?;
        source.refuse_borrowing()?;
        source.refuse_shut()?;
        let directory = self.provide_directory(&source)?;
        source.shared(|| source.provide_directories(PREFIX))?;
        let start = source.start(base).map_err(|error| source.explained(error))?;
        let branch = self.branch();
        let links = self.links(&source, &directory);
        let mut note = Note::take(&directory, &self.id)?;
        let whole = !note.incomplete && holds_something(&links.tree)?;
        let stale = self.remove_locks_of(&links)?;
        if whole {
            self.disarm(&links)?;
        }
        // The last run may not have been sealed, for example after a crash.
        self.publish_unsealed(&source, &links, whole)?;

        let made = if whole {
            let made = self.restore(&source, &links, &start)?;
            if stale { Preparation::Repaired } else { made }
        } else {
            let made = self.clear(&mut note, &source, &links)?;
            source.refuse_checked_out(&branch)?;
            source.shared(|| source.ensure_branch(&branch, &start))?;
            self.check_out(&source, &links, tell)?;
            made
        };
        let prepared = self.describe(&source, &links, made, &start, author)?;
        note.discard()?;
        Ok(prepared)
    }

    /// Repairs the links between an existing tree and the repository, and changes nothing else.
    fn restore(
        &self,
        source: &Source,
        links: &Links,
        start: &git2::Commit<'_>,
    ) -> Result<Preparation, WorktreeError> {
        let branch = self.branch();
        let mut made = Preparation::Reused;
        if source.tip(&branch)?.is_none() {
            source.shared(|| source.ensure_branch(&branch, start))?;
            made = Preparation::Repaired;
        }
        if !links.are_good(&branch) {
            self.refuse_taken(links)?;
            source.shared(|| self.link(links))?;
            made = Preparation::Repaired;
        }
        if !links.has_index() {
            provide_index(links)?;
            made = Preparation::Repaired;
        }
        Ok(made)
    }

    /// Takes over an unsealed run as a whole, or only its commits if its worktree is gone.
    pub(crate) fn publish_unsealed(
        &self,
        source: &Source,
        links: &Links,
        has_tree: bool,
    ) -> Result<(), WorktreeError> {
        let private = self.private(links);
        if has_tree { private.publish(source).map(drop) } else { private.publish_commits(source).map(drop) }
    }

    /// Removes lock files that a killed git has left. Returns true if there were any. A process that is confined to the
    /// repository does not see which processes use them, so a job process calls this before it confines itself.
    ///
    /// # Errors
    /// [`WorktreeError::InUse`] if a live process may have one of them.
    pub(crate) fn remove_stale_locks(&self) -> Result<bool, WorktreeError> {
        self.unopened_links().map_or(Ok(false), |links| self.remove_locks_of(&links))
    }

    fn remove_locks_of(&self, links: &Links) -> Result<bool, WorktreeError> {
        let branch = links.common.join(format!("refs/heads/{PREFIX}/{}.lock", self.id));
        let found = [links.metadata.join("index.lock"), links.metadata.join("HEAD.lock"), branch];
        let around = Surroundings {
            tree: &links.tree,
            shared: [&self.repository, &links.common],
            worktrees: &self.directory(),
        };
        Ok(locks::remove_stale(&found, &around)?)
    }

    /// Returns the working tree to which the owner of the repository has moved the worktree; none if it is in its place.
    pub(crate) fn moved_to(&self) -> Option<PathBuf> {
        self.unopened_links()?.moved_tree()
    }

    /// Finds the metadata of the worktree without reading the repository's settings; none without a repository.
    fn unopened_links(&self) -> Option<Links> {
        let common = links::common_directory(&self.repository)?;
        let metadata = common.join("worktrees").join(self.id.as_str());
        Some(Links { tree: self.path(), metadata, common })
    }

    /// Removes the remains of a preparation, which contain no work, so that the worktree can be made anew.
    pub(crate) fn clear(
        &self,
        note: &mut Note,
        source: &Source,
        links: &Links,
    ) -> Result<Preparation, WorktreeError> {
        self.refuse_taken(links)?;
        let interrupted = note.incomplete || links.tree.symlink_metadata().is_ok() || links.metadata.exists();
        note.mark_incomplete()?;
        let directory = links.tree.parent().unwrap_or(&links.tree);
        remove_tree(directory, &self.id).map_err(WorktreeError::Clear)?;
        self.remove_metadata(source, links)?;
        Ok(if interrupted { Preparation::Repaired } else { Preparation::Created })
    }

    /// Removes the metadata. The commits of a detached `HEAD`, which may have no other reference, are kept beside the
    /// branch.
    pub(crate) fn remove_metadata(&self, source: &Source, links: &Links) -> Result<(), WorktreeError> {
        source.shared(|| beside::keep_head(source, &self.id, &links.metadata))?;
        remove_tree(&source.metadata(), &self.id).map(drop).map_err(WorktreeError::Clear)
    }

    /// Makes the directory, links it to the repository and writes the branch's files to it.
    fn check_out(
        &self,
        source: &Source,
        links: &Links,
        tell: &dyn Fn(CheckedOut),
    ) -> Result<(), WorktreeError> {
        fs::create_dir(&links.tree)
            .map_err(|source| WorktreeError::MakeTree { path: links.tree.clone(), source })?;
        source.shared(|| self.link(links))?;
        let open = Repository::open(&links.tree)
            .map_err(|source| WorktreeError::OpenWorktree { path: links.tree.clone(), source })?;
        let checked_out = || -> Result<(), git2::Error> {
            let mut options = CheckoutBuilder::new();
            // With filters, libgit2 would look for the attributes of each file in every directory above it.
            options.force().disable_filters(!conversion::is_possible(&open)?);
            options.progress(|_, done, total| tell(CheckedOut { done, total }));
            open.checkout_head(Some(&mut options))?;
            Filtered::find(&open)?.age(&open)
        };
        checked_out().map_err(|source| match source.class() {
            ErrorClass::Odb => WorktreeError::MissingFiles {
                repository: self.repository.clone(),
                branch: self.branch(),
                source,
            },
            _ => WorktreeError::CheckOut { path: links.tree.clone(), branch: self.branch(), source },
        })
    }

    fn describe(
        &self,
        source: &Source,
        links: &Links,
        made: Preparation,
        start: &git2::Commit<'_>,
        author: Option<&Author>,
    ) -> Result<Prepared, WorktreeError> {
        let opened = open::directory(&links.tree).map_err(WorktreeError::OpenTree)?;
        source
            .git()
            .find_worktree(self.id.as_str())
            .and_then(|worktree| worktree.validate())
            .map_err(|source| WorktreeError::OpenWorktree { path: links.tree.clone(), source })?;
        let filtered = Repository::open(&links.tree).and_then(|git| Filtered::find(&git)).unwrap_or_default();
        let tip = source.ensure_branch(&self.branch(), start)?;
        let private = self.private(links);
        private.provide(source, tip, filtered.has_lfs())?;
        let fork = source.fork_point(tip, start.id())?;
        Ok(Prepared {
            path: links.tree.clone(),
            kind: Kind::Worktree,
            made,
            owner: Owner::from_stat(&opened.stat),
            place: FileIdentity::from_stat(&opened.stat),
            is_repository: true,
            branch: Some(Branch {
                name: self.branch(),
                base_commit: fork.to_string(),
                head_commit: tip.to_string(),
            }),
            grants: private.grants(source),
            notes: filtered.notes().into_iter().chain(about_submodules(&empty_submodules(links))).collect(),
            environment: environment(author, &filtered, source, &links.tree),
        })
    }

    fn link(&self, links: &Links) -> Result<(), WorktreeError> {
        links.write(&self.branch()).map_err(|source| WorktreeError::Link { path: links.tree.clone(), source })
    }

    /// Refuses to take over metadata by which git finds another worktree.
    fn refuse_taken(&self, links: &Links) -> Result<(), WorktreeError> {
        match links.other_tree() {
            Some(path) => Err(WorktreeError::NameTaken { id: self.id.clone(), path }),
            None => Ok(()),
        }
    }

    /// Returns the directory that contains the working tree.
    pub fn directory(&self) -> PathBuf {
        self.worktrees.clone().unwrap_or_else(|| self.repository.join(".worktrees"))
    }

    /// Returns the directory of the new objects of its run, until the run is sealed.
    pub(crate) fn own_objects(&self) -> Result<PathBuf, WorktreeError> {
        let links = self.links(&Source::open(&self.repository)?, &self.directory());
        Ok(self.private(&links).objects())
    }

    /// Returns the file with the branch of its run, until the run is sealed.
    pub(crate) fn own_branch(&self) -> Result<PathBuf, WorktreeError> {
        let links = self.links(&Source::open(&self.repository)?, &self.directory());
        Ok(self.private(&links).heads().join(self.id.as_str()))
    }

    pub(crate) fn private<'a>(&'a self, links: &'a Links) -> Private<'a> {
        Private { links, id: &self.id, branch: self.branch() }
    }

    pub(crate) fn links(&self, source: &Source, directory: &Path) -> Links {
        Links {
            tree: directory.join(self.id.as_str()),
            metadata: source.metadata().join(self.id.as_str()),
            common: source.common.clone(),
        }
    }

    fn provide_directory(&self, source: &Source) -> Result<PathBuf, WorktreeError> {
        let path = self.directory();
        match fs::create_dir(&path) {
            Ok(()) => {}
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
            Err(source) => return Err(WorktreeError::CreateDirectory { path, source }),
        }
        open::directory(&path).map_err(WorktreeError::OpenDirectory)?;
        source.exclude(&path)?;
        Ok(path)
    }
}

/// Makes a lost index again, with the files of HEAD. Without an index, git takes all files for deleted.
fn provide_index(links: &Links) -> Result<(), WorktreeError> {
    let again = || -> Result<(), git2::Error> {
        let git = Repository::open(&links.tree)?;
        let mut index = git.index()?;
        index.read_tree(&git.head()?.peel_to_tree()?)?;
        index.write()
    };
    again().map_err(|source| WorktreeError::Index { path: links.tree.clone(), source })
}

/// Returns true if a directory exists and is not empty.
fn holds_something(tree: &Path) -> Result<bool, WorktreeError> {
    match open::directory(tree) {
        Ok(found) => match tree::is_empty(&found.fd) {
            Ok(empty) => Ok(!empty),
            Err(source) => Err(WorktreeError::ListTree { path: tree.to_owned(), source }),
        },
        Err(OpenError::Missing { .. }) => Ok(false),
        Err(source) => Err(WorktreeError::OpenTree(source)),
    }
}

/// Returns submodules whose directories have no files: libgit2 fetches nothing, as `git worktree add` does not.
fn empty_submodules(links: &Links) -> Vec<PathBuf> {
    if links.tree.join(".gitmodules").symlink_metadata().is_err() {
        return Vec::new();
    }
    let Ok(index) = git2::Index::open(&links.metadata.join("index")) else { return Vec::new() };
    let submodules = index.iter().filter(|entry| entry.mode == index::SUBMODULE);
    let paths = submodules.map(|entry| PathBuf::from(OsStr::from_bytes(&entry.path)));
    paths.filter(|path| !holds_something(&links.tree.join(path)).unwrap_or(true)).take(NAMED).collect()
}

/// Returns a sentence about submodules without files.
fn about_submodules(empty: &[PathBuf]) -> Option<String> {
    let names: Vec<String> =
        empty.iter().map(|path| format!("`{}`", plain(&path.display().to_string()))).collect();
    (!names.is_empty()).then(|| {
        format!(
            "Empty here, because they are submodules: {}. `git submodule update --init` fetches them where the network allows it.",
            names.join(", ")
        )
    })
}

/// Returns the variables of a worker's git. No configuration is written.
fn environment(
    author: Option<&Author>,
    filtered: &Filtered,
    source: &Source,
    tree: &Path,
) -> BTreeMap<String, String> {
    let mut added = filtered.settings(source.git());
    if source.lacks_order(tree) {
        added.push(("diff.orderFile", "/dev/null"));
    }
    if !source.has_hooks_in_trees() {
        // A worker may read the hooks of the repository and execute none, and git would refuse each commit.
        added.push(("core.hooksPath", "/dev/null"));
    }
    let mut variables = overrides(Kind::Worktree, &added);
    if filtered.has_lfs() {
        // Git would fail at a pointer whose content is not on this host.
        variables.insert("GIT_LFS_SKIP_SMUDGE".to_owned(), "1".to_owned());
    }
    if let Some(author) = author {
        for role in ["AUTHOR", "COMMITTER"] {
            variables.insert(format!("GIT_{role}_NAME"), author.name.clone());
            variables.insert(format!("GIT_{role}_EMAIL"), author.email.clone());
        }
    }
    variables
}
