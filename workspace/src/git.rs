//! Repository of a worktree: opens it, reads and writes its commits and branches, and names the directories in which git
//! writes.

mod configuration;
mod error;
mod includes;
mod layout;
mod overrides;
mod rights;
mod sharing;

use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};

use fs_err as fs;
use git2::{BranchType, Commit, ConfigLevel, ErrorCode, Oid, Repository};

pub use self::configuration::own_configuration;
pub use self::error::GitError;
pub use self::layout::Layout;
pub(crate) use self::overrides::overrides;
pub use self::rights::Shut;
use self::sharing::Sharing;
use crate::base::Base;
use crate::{links, open};

/// File that keeps `refs/heads/task` from being empty. `git gc` removes empty directories, and a run's grant applies to the
/// directory itself: a new one with the same name is not granted. Git and libgit2 skip names that end in `.lock` when
/// they list branches.
const PLACEHOLDER: &str = "keeps-this-directory.lock";

/// Names in a `.git` that each worktree has for itself, or that every run sees.
const OWN: [&str; 14] = [
    "HEAD",
    "config",
    "config.worktree",
    "description",
    "hooks",
    "index",
    "info",
    "lfs",
    "logs",
    "modules",
    "objects",
    "refs",
    "supervisor",
    "worktrees",
];

/// Settings that name a file which git reads in each worktree.
const FILES: [&str; 7] = [
    "blame.ignoreRevsFile",
    "commit.template",
    "core.attributesFile",
    "core.excludesFile",
    "diff.orderFile",
    "gpg.ssh.allowedSignersFile",
    "mailmap.file",
];

/// Returns the working tree of the repository that contains a path: for a linked worktree, the tree of its main
/// repository. None without a repository, or for a bare one. No file of the repository is read, so its owner does not
/// matter.
pub(crate) fn discover(path: &Path) -> Option<PathBuf> {
    let git_dir = Repository::discover_path(path, std::iter::empty::<&Path>()).ok()?;
    // The metadata of a linked worktree is inside the `.git` of the main repository.
    let git = git_dir.ancestors().find(|dir| dir.file_name().is_some_and(|name| name == ".git"))?;
    fs::canonicalize(git.parent()?).ok()
}

/// Refuses a path that cannot have worktrees of tasks: a path without a repository, a bare repository, a repository whose
/// `.git` leads elsewhere (such as a submodule), a repository of another user or with parts of another user, and a
/// repository with borrowed objects.
pub(crate) fn usable(path: &Path) -> Result<(), GitError> {
    let source = Source::open(path)?;
    source.refuse_borrowing()?;
    source.refuse_shut()
}

/// Open repository with a working tree.
pub(crate) struct Source {
    git: Repository,
    /// Path by which it was opened.
    pub(crate) root: PathBuf,
    /// Its `.git`, which all its working trees share.
    pub(crate) common: PathBuf,
}

impl Source {
    /// Opens the repository at exactly this path, which may contain no symbolic link.
    pub(crate) fn open(path: &Path) -> Result<Self, GitError> {
        open::directory(path).map_err(GitError::Path)?;
        let root = path.to_owned();
        // A file `.git` can name any repository. It counts only if that repository lists this path as a linked worktree.
        let file = path.join(".git");
        if file.symlink_metadata().is_ok_and(|meta| !meta.is_dir()) {
            let named = links::read(&file).unwrap_or_default();
            let git = path.join(named.trim_start_matches("gitdir:").trim());
            if links::read(&git.join("gitdir")).is_none_or(|back| Path::new(&back) != file) {
                return Err(elsewhere(root, git));
            }
        }
        let git = Repository::open(path).map_err(|source| match source.code() {
            ErrorCode::NotFound => GitError::NotARepository { path: root.clone() },
            ErrorCode::Owner => GitError::ForeignOwner { path: root.clone(), source },
            _ => match includes::included(&file.join("config")) {
                Err(named) if named != file.join("config") => {
                    GitError::Included { path: root.clone(), file: named }
                }
                Err(_) | Ok(_) => match rights::unreadable(&file) {
                    Some(part) => GitError::Shut { path: root.clone(), part },
                    None => GitError::Open { path: root.clone(), source },
                },
            },
        })?;
        if git.is_bare() {
            return Err(GitError::Bare { path: root });
        }
        let common = fs::canonicalize(git.commondir())
            .map_err(|source| GitError::Provide { path: git.commondir().to_owned(), source })?;
        Ok(Self { git, root, common })
    }

    /// Returns the files and directories in the repository that its settings name, except for git's own in `.git`.
    pub(crate) fn named_files(&self) -> Vec<PathBuf> {
        let settings = self.git.config().and_then(|all| all.open_level(ConfigLevel::Local));
        let values = settings
            .iter()
            .flat_map(|own| FILES.iter().filter_map(|name| own.get_string(name).ok()))
            .map(PathBuf::from)
            .filter(|path| path.is_absolute());
        let included = includes::included(&self.common.join("config")).unwrap_or_default();
        let mut named: Vec<PathBuf> = included
            .into_iter()
            .chain(values)
            .filter_map(|path| fs::canonicalize(path).ok())
            .filter(|path| (path.is_file() || path.is_dir()) && self.is_shown_alone(path))
            .collect();
        named.sort();
        named.dedup();
        named
    }

    /// Returns true if the setting `diff.orderFile` names a file that a run in the working tree cannot read. Every `git diff`
    /// would then fail.
    pub(crate) fn lacks_order(&self, tree: &Path) -> bool {
        let local = self.git.config().and_then(|all| all.open_level(ConfigLevel::Local));
        local.and_then(|own| own.get_path("diff.orderFile")).is_ok_and(|path| match fs::canonicalize(&path) {
            _ if path.is_relative() => !tree.join(path).is_file(),
            Ok(path) => !self.named_files().contains(&path),
            Err(_) => true,
        })
    }

    /// Returns true if the hooks are files of each working tree, because `core.hooksPath` is a relative path.
    pub(crate) fn has_hooks_in_trees(&self) -> bool {
        let local = self.git.config().and_then(|all| all.open_level(ConfigLevel::Local));
        local
            .and_then(|own| own.get_string("core.hooksPath"))
            .is_ok_and(|path| !path.is_empty() && !path.starts_with(['/', '~']))
    }

    /// Returns true if a path can be granted to a worker alone: it is in the repository, and contains nothing that each
    /// worktree has for itself.
    fn is_shown_alone(&self, path: &Path) -> bool {
        let is_kept_by_git = |inside: &Path| {
            let top = inside.components().next().map(|top| top.as_os_str().to_owned());
            top.is_none_or(|top| OWN.iter().any(|own| top == *own))
        };
        match (path.strip_prefix(&self.common), path.strip_prefix(&self.root)) {
            (Ok(inside), _) => !is_kept_by_git(inside),
            (Err(_), Ok(inside)) => !inside.starts_with(".worktrees") && !self.common.starts_with(path),
            (Err(_), Err(_)) => false,
        }
    }

    /// Refuses a repository that borrows objects from another one, because the other one would have to be granted to the run
    /// as well.
    pub(crate) fn refuse_borrowing(&self) -> Result<(), GitError> {
        let alternates = self.common.join("objects/info/alternates");
        let text = links::read_whole(&alternates).unwrap_or_default();
        match text.lines().find(|line| !line.is_empty() && !line.starts_with('#')) {
            Some(from) => {
                Err(GitError::Borrows { path: self.root.clone(), from: from.to_owned(), alternates })
            }
            None => Ok(()),
        }
    }

    /// Refuses a repository in which this process may not read or write where a worktree needs it.
    pub(crate) fn refuse_shut(&self) -> Result<(), GitError> {
        match rights::unusable(&self.common) {
            Some(part) => Err(GitError::Shut { path: self.root.clone(), part }),
            None => Ok(()),
        }
    }

    /// Returns the reason of a failed look at the repository: a part that this process may not read, or the failure itself.
    pub(crate) fn explained(&self, failure: GitError) -> GitError {
        match rights::unreadable(&self.common) {
            Some(part) => GitError::Shut { path: self.root.clone(), part },
            None => failure,
        }
    }

    pub(crate) fn git(&self) -> &Repository {
        &self.git
    }

    /// Runs a write to the repository with the file modes that its settings request (`core.sharedRepository`).
    pub(crate) fn shared<T>(&self, write: impl FnOnce() -> T) -> T {
        let _sharing = self.git.config().ok().and_then(|settings| Sharing::begin(&settings));
        write()
    }

    /// Gives a directory that a run wrote, and everything in it, the file modes that the settings ask for.
    pub(crate) fn share(&self, dir: &Path) -> std::io::Result<()> {
        self.git.config().map_or(Ok(()), |settings| sharing::share(&settings, dir))
    }

    fn read(&self, what: &'static str) -> impl FnOnce(git2::Error) -> GitError + use<> {
        let path = self.root.clone();
        move |source| GitError::Read { path, what, source }
    }

    /// Returns the commit that a new branch starts from.
    pub(crate) fn start(&self, base: &Base) -> Result<Commit<'_>, GitError> {
        let reference = match base {
            Base::Head => self.git.head().map_err(|source| match source.code() {
                ErrorCode::UnbornBranch | ErrorCode::NotFound => {
                    GitError::NoCommit { path: self.root.clone() }
                }
                _ => self.read("HEAD")(source),
            })?,
            Base::Branch(branch) => self
                .git
                .find_branch(branch, BranchType::Local)
                .map_err(|source| match source.code() {
                    ErrorCode::NotFound | ErrorCode::InvalidSpec => {
                        GitError::NoBaseBranch { path: self.root.clone(), branch: branch.clone() }
                    }
                    _ => self.read("the base branch")(source),
                })?
                .into_reference(),
        };
        reference.peel_to_commit().map_err(self.read("the commit to start from"))
    }

    /// Returns the commit at the tip of a local branch, if the branch exists.
    pub(crate) fn tip(&self, branch: &str) -> Result<Option<Oid>, GitError> {
        match self.git.find_branch(branch, BranchType::Local) {
            Ok(found) => Ok(Some(found.get().peel_to_commit().map_err(self.read("the branch"))?.id())),
            Err(error) if error.code() == ErrorCode::NotFound => Ok(None),
            Err(source) => Err(self.read("the branch")(source)),
        }
    }

    /// Returns the commit of a branch. A missing branch is made at `start`.
    pub(crate) fn ensure_branch(&self, branch: &str, start: &Commit<'_>) -> Result<Oid, GitError> {
        if let Some(tip) = self.tip(branch)? {
            return Ok(tip);
        }
        match self.git.branch(branch, start, false) {
            Ok(_) => Ok(start.id()),
            Err(source) => {
                Err(GitError::CreateBranch { path: self.root.clone(), branch: branch.to_owned(), source })
            }
        }
    }

    /// Refuses a branch that the repository itself has checked out: two trees on one branch undo each other's commits.
    pub(crate) fn refuse_checked_out(&self, branch: &str) -> Result<(), GitError> {
        let full = format!("refs/heads/{branch}");
        // The HEADs of other linked worktrees are not examined: a worker can write its own, and could so keep other tasks
        // from starting.
        if self.git.head().is_ok_and(|head| head.name_bytes() == full.as_bytes()) {
            return Err(GitError::CheckedOutElsewhere { path: self.root.clone(), branch: branch.to_owned() });
        }
        Ok(())
    }

    /// Deletes a branch with its reflog; a missing branch is no error.
    pub(crate) fn delete_branch(&self, branch: &str) -> Result<(), GitError> {
        let deleted = match self.git.find_branch(branch, BranchType::Local) {
            Ok(mut found) => found.delete(),
            Err(error) if error.code() == ErrorCode::NotFound => Ok(()),
            Err(error) => Err(error),
        };
        deleted.map_err(|source| GitError::DeleteBranch {
            path: self.root.clone(),
            branch: branch.to_owned(),
            source,
        })
    }

    /// Returns the merge base of the tip of a branch and another commit; the tip itself if they share no history.
    pub(crate) fn fork_point(&self, tip: Oid, start: Oid) -> Result<Oid, GitError> {
        match self.git.merge_base(tip, start) {
            Ok(base) => Ok(base),
            Err(error) if error.code() == ErrorCode::NotFound => Ok(tip),
            Err(source) => Err(self.read("the merge base")(source)),
        }
    }

    /// Returns all references as the text of a `packed-refs` file (`gitrepository-layout(5)`).
    pub(crate) fn packed_references(&self) -> Result<Vec<u8>, GitError> {
        let failed = || self.read("the references");
        let mut lines = std::collections::BTreeMap::new();
        for reference in self.git.references().map_err(failed())? {
            // A broken reference is left out, so that it does not exist for the worker.
            let Ok(reference) = reference else { continue };
            if let Some(target) = reference.resolve().ok().and_then(|direct| direct.target()) {
                lines.insert(reference.name_bytes().to_vec(), target);
            }
        }
        let mut text = b"# pack-refs with: sorted \n".to_vec();
        for (name, target) in lines {
            text.extend(format!("{target} ").into_bytes());
            text.extend(name);
            text.push(b'\n');
        }
        Ok(text)
    }

    /// Counts the commits that `tips` reach and no branch, remote branch or tag reaches. The branches in `except` do
    /// not count.
    pub(crate) fn commits_only_on(&self, tips: &[Oid], except: &[&str]) -> Result<usize, GitError> {
        let failed = || self.read("the history");
        let mut walk = self.git.revwalk().map_err(failed())?;
        for tip in tips {
            walk.push(*tip).map_err(failed())?;
        }
        for glob in ["refs/heads/*", "refs/remotes/*", "refs/tags/*"] {
            for reference in self.git.references_glob(glob).map_err(failed())? {
                let Ok(reference) = reference else { continue };
                let name = String::from_utf8_lossy(reference.name_bytes()).into_owned();
                if except.iter().any(|branch| name.strip_prefix("refs/heads/") == Some(branch)) {
                    continue;
                }
                // A reference that leads to no commit (a tag of a tree, a dangling remote HEAD) excludes no commits.
                if let Ok(commit) = reference.peel_to_commit() {
                    walk.hide(commit.id()).map_err(failed())?;
                }
            }
        }
        let mut count = 0;
        for commit in walk {
            commit.map_err(failed())?;
            count += 1;
        }
        Ok(count)
    }

    /// Makes the directories to which git writes when it moves a branch `prefix/…`, so that they can be granted.
    pub(crate) fn provide_directories(&self, prefix: &str) -> Result<(), GitError> {
        if self.tip(prefix)?.is_some() {
            return Err(GitError::PrefixTaken { path: self.root.clone(), prefix: prefix.to_owned() });
        }
        for path in [self.metadata(), self.heads(prefix), self.logs(prefix)] {
            fs::create_dir_all(&path).map_err(|source| GitError::Provide { path, source })?;
        }
        let path = self.heads(prefix).join(PLACEHOLDER);
        fs::OpenOptions::new()
            .append(true)
            .create(true)
            .open(&path)
            .map(drop)
            .map_err(|source| GitError::Provide { path, source })
    }

    /// Returns the directory of the metadata of all linked worktrees.
    pub(crate) fn metadata(&self) -> PathBuf {
        self.common.join("worktrees")
    }

    /// Returns the directory of the branches `prefix/…` and their lock files.
    pub(crate) fn heads(&self, prefix: &str) -> PathBuf {
        self.common.join("refs/heads").join(prefix)
    }

    /// Returns the directory of the reflogs of the branches `prefix/…`.
    pub(crate) fn logs(&self, prefix: &str) -> PathBuf {
        self.common.join("logs/refs/heads").join(prefix)
    }

    /// Adds a directory in the working tree to `info/exclude`, so that git ignores it.
    pub(crate) fn exclude(&self, directory: &Path) -> Result<(), GitError> {
        let Some(inside) = self.git.workdir().and_then(|work| directory.strip_prefix(work).ok()) else {
            return Ok(());
        };
        let line = format!("/{}/", inside.display());
        let path = self.common.join("info/exclude");
        let written = || -> std::io::Result<()> {
            fs::create_dir_all(self.common.join("info"))?;
            // The file is not locked: workers may read it and could keep it locked. A line that is added twice does no harm.
            let mut file = fs::OpenOptions::new().read(true).append(true).create(true).open(&path)?;
            let mut text = Vec::new();
            file.read_to_end(&mut text)?;
            let bare = line.trim_matches('/').as_bytes();
            let excluded =
                |l: &[u8]| l.strip_prefix(b"/").unwrap_or(l).strip_suffix(b"/").unwrap_or_default() == bare;
            if text.split(|byte| *byte == b'\n').any(excluded) {
                return Ok(());
            }
            let gap = if text.is_empty() || text.ends_with(b"\n") { "" } else { "\n" };
            file.write_all(format!("{gap}{line}\n").as_bytes())
        };
        written().map_err(|source| GitError::Exclude { path: path.clone(), source })
    }
}

/// Returns the refusal of a repository whose `.git` leads to `git`.
fn elsewhere(path: PathBuf, git: PathBuf) -> GitError {
    if let Ok(target) = fs_err::read_link(path.join(".git")) {
        let git = path.join(target);
        return GitError::Elsewhere { git: git.canonicalize().unwrap_or(git), path, layout: Layout::Link };
    }
    let git = git.canonicalize().unwrap_or(git);
    let layout = Layout::from_path(&git);
    GitError::Elsewhere { path, git, layout }
}
