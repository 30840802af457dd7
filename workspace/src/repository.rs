//! Whole repositories: their state, private clones of them, new small repositories, and commits.

mod commits;
mod diff;
#[cfg(test)]
mod diff_tests;
mod doubts;
mod error;
mod evidence;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::path::Path;

use fs_err as fs;
use git2::build::{CloneLocal, RepoBuilder};
use git2::{Commit, ErrorCode, ObjectType, Repository, RepositoryInitOptions, Signature, StatusOptions};
use serde::{Deserialize, Serialize};

pub(crate) use self::commits::first_missing;
pub(crate) use self::diff::diff;
pub use self::diff::{Detail, Diff, DiffLine, DiffOf, FileDiff, FileStatus, Hunk, LineKind};
pub(crate) use self::doubts::open_tree;
pub(crate) use self::doubts::to_files;
pub use self::error::RepositoryError;
pub use self::evidence::{ChangedPath, CommitLine, Evidence, PathChange};
pub(crate) use self::evidence::{evidence, head as head_of};
use crate::author::Author;

/// State of a repository. It shows any change that another process makes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RepositorySnapshot {
    /// Branch or commit that HEAD names.
    pub head: String,
    /// Every reference with its target.
    pub references: BTreeMap<String, String>,
    /// Paths that differ from HEAD, with libgit2's flags for the kind of difference. Ignored paths are left out.
    pub changes: BTreeMap<String, u32>,
}

/// The commit at HEAD.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Head {
    /// Id of the commit, in hex.
    pub commit: String,
    /// Number of regular files in the commit, without submodules.
    pub files: usize,
}

/// Commit at the tip of a branch, with the files that it changes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Committed {
    /// The commit, in hex.
    pub id: String,
    /// Its author's name.
    pub author: String,
    /// The first line of its message.
    pub summary: String,
    /// Parent commits, in hex.
    pub parents: Vec<String>,
    /// Paths that differ from the first parent, each with its text if that is UTF-8.
    pub files: BTreeMap<String, Option<String>>,
}

fn open(path: &Path) -> Result<Repository, RepositoryError> {
    let path = path.to_owned();
    Repository::open(&path).map_err(|source| match source.code() {
        ErrorCode::Owner => RepositoryError::ForeignOwner { path },
        _ => RepositoryError::Open { path, source },
    })
}

fn read<'a>(path: &'a Path, what: &'static str) -> impl Fn(git2::Error) -> RepositoryError + 'a {
    move |source| RepositoryError::Read { path: path.to_owned(), what, source }
}

fn commit_at_head<'a>(git: &'a Repository, path: &Path) -> Result<Commit<'a>, RepositoryError> {
    match git.head().and_then(|head| head.peel_to_commit()) {
        Ok(commit) => Ok(commit),
        Err(error) if matches!(error.code(), ErrorCode::UnbornBranch | ErrorCode::NotFound) => {
            Err(RepositoryError::NoCommit { path: path.to_owned() })
        }
        Err(error) => Err(read(path, "HEAD")(error)),
    }
}

fn head(git: &Repository, path: &Path) -> Result<Head, RepositoryError> {
    let commit = commit_at_head(git, path)?;
    let failed = read(path, "the tree of HEAD");
    let mut files = 0;
    let tree = commit.tree().map_err(&failed)?;
    tree.walk(git2::TreeWalkMode::PreOrder, |_, entry| {
        // These are the two modes of regular files; links and submodules have other modes.
        if matches!(entry.filemode(), 0o100_644 | 0o100_755) {
            files += 1;
        }
        git2::TreeWalkResult::Ok
    })
    .map_err(&failed)?;
    Ok(Head { commit: commit.id().to_string(), files })
}

/// Returns the state of a repository. Nothing is written, not even its index.
///
/// # Errors
/// Fails if this user cannot open or read it.
pub fn snapshot(path: &Path) -> Result<RepositorySnapshot, RepositoryError> {
    let git = open(path)?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let failed = read(path, "the references");
    let pointed = |reference: &git2::Reference<'_>| match reference.symbolic_target_bytes() {
        Some(name) => text(name),
        None => reference.target().map(|id| id.to_string()).unwrap_or_default(),
    };
    let head = pointed(&git.find_reference("HEAD").map_err(read(path, "HEAD"))?);
    let mut references = BTreeMap::new();
    for reference in git.references().map_err(&failed)? {
        let reference = reference.map_err(&failed)?;
        references.insert(text(reference.name_bytes()), pointed(&reference));
    }
    let mut changes = BTreeMap::new();
    if !git.is_bare() {
        let mut options = StatusOptions::new();
        options.include_untracked(true).include_ignored(false).exclude_submodules(true);
        let statuses = git.statuses(Some(&mut options)).map_err(read(path, "the status"))?;
        for entry in statuses.iter() {
            changes.insert(text(entry.path_bytes()), entry.status().bits());
        }
    }
    Ok(RepositorySnapshot { head, references, changes })
}

/// Clones a repository on this host. The clone shares no file with it and has no remote.
///
/// # Errors
/// Fails if `from` has no commit or cannot be opened by this user, or `to` cannot be written.
pub fn clone(from: &Path, to: &Path) -> Result<Head, RepositoryError> {
    let source = open(from)?;
    commit_at_head(&source, from)?;
    let common = source.commondir();
    // Objects are copied and never linked, because a writer of the clone must not be able to write to the source.
    // Objects that the source borrows must be fetched instead.
    let borrows = common.join("objects/info/alternates").exists();
    let local = if borrows { CloneLocal::None } else { CloneLocal::NoLinks };
    let failed = |source| RepositoryError::Clone { from: from.to_owned(), to: to.to_owned(), source };
    let url = from.to_str().ok_or_else(|| failed(git2::Error::from_str("its path is not UTF-8")))?;
    let git = RepoBuilder::new().clone_local(local).clone(url, to).map_err(failed)?;
    if source.is_shallow() {
        let target = git.path().join("shallow");
        fs::copy(common.join("shallow"), &target)
            .map_err(|source| RepositoryError::Write { path: target, source })?;
    }
    git.remote_delete("origin").map_err(failed)?;
    head(&git, to)
}

/// Makes a repository that has `files` (path → text) in one commit on the branch `main`.
///
/// # Errors
/// Fails if `path` cannot be written.
pub fn make(path: &Path, files: &BTreeMap<String, String>, author: &Author) -> Result<Head, RepositoryError> {
    let failed = |source| RepositoryError::Commit { path: path.to_owned(), source };
    // No template is used, because the hooks of the user's template are not meant for this repository.
    let mut options = RepositoryInitOptions::new();
    options.initial_head("main").external_template(false);
    let git = Repository::init_opts(path, &options).map_err(failed)?;
    let mut index = git.index().map_err(failed)?;
    for (name, text) in files {
        let target = path.join(name);
        let written =
            target.parent().map_or(Ok(()), fs::create_dir_all).and_then(|()| fs::write(&target, text));
        written.map_err(|source| RepositoryError::Write { path: target, source })?;
        index.add_path(Path::new(name)).map_err(failed)?;
    }
    index.write().map_err(failed)?;
    let tree = index.write_tree().and_then(|tree| git.find_tree(tree)).map_err(failed)?;
    let by = Signature::now(&author.name, &author.email).map_err(failed)?;
    git.commit(Some("HEAD"), &by, &by, "A small sample", &tree, &[]).map_err(failed)?;
    head(&git, path)
}

/// Commits one file of a working tree to the branch that it has checked out, as `git add -f` and `git commit` would.
/// Returns the commit, in hex.
///
/// # Errors
/// Fails if the directory is no working tree, has no commit yet, or may not be written.
pub fn commit_file(
    tree: &Path,
    file: &Path,
    message: &str,
    author: &Author,
) -> Result<String, RepositoryError> {
    let failed = |source| RepositoryError::Commit { path: tree.to_owned(), source };
    let git = open(tree)?;
    let parent = commit_at_head(&git, tree)?;
    let mut index = git.index().map_err(failed)?;
    index.add_path(file).and_then(|()| index.write()).map_err(failed)?;
    let content = index.write_tree().and_then(|id| git.find_tree(id)).map_err(failed)?;
    let by = Signature::now(&author.name, &author.email).map_err(failed)?;
    let id = git.commit(Some("HEAD"), &by, &by, message, &content, &[&parent]).map_err(failed)?;
    Ok(id.to_string())
}

/// Reads the commit at the tip of a branch.
///
/// # Errors
/// Fails if there is no such repository or branch.
pub fn tip(path: &Path, branch: &str) -> Result<Committed, RepositoryError> {
    let git = open(path)?;
    let failed = read(path, "the commit");
    let reference = git
        .find_branch(branch, git2::BranchType::Local)
        .map_err(|_| RepositoryError::NoBranch { path: path.to_owned(), branch: branch.to_owned() })?;
    let commit = reference.get().peel_to_commit().map_err(&failed)?;
    let tree = commit.tree().map_err(&failed)?;
    let before = match commit.parent(0) {
        Ok(parent) => Some(parent.tree().map_err(&failed)?),
        Err(_) => None,
    };
    let mut files = BTreeMap::new();
    let diff = git.diff_tree_to_tree(before.as_ref(), Some(&tree), None).map_err(&failed)?;
    for delta in diff.deltas() {
        let Some(name) = delta.new_file().path() else { continue };
        let blob = tree.get_path(name).ok().and_then(|entry| {
            let object = entry.to_object(&git).ok()?.peel(ObjectType::Blob).ok()?;
            String::from_utf8(object.as_blob()?.content().to_vec()).ok()
        });
        files.insert(name.to_string_lossy().into_owned(), blob);
    }
    Ok(Committed {
        id: commit.id().to_string(),
        author: String::from_utf8_lossy(commit.author().name_bytes()).into_owned(),
        summary: commit.summary_bytes().map(|b| String::from_utf8_lossy(b).into_owned()).unwrap_or_default(),
        parents: commit.parent_ids().map(|id| id.to_string()).collect(),
        files,
    })
}
