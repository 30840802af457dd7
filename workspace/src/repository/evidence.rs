//! Evidence of a run: the commits and changes in a git working tree since a commit, which a person reads beside the
//! worker's own summary.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use git2::{Commit, Delta, DiffDelta, DiffOptions, Oid, Repository};
use serde::{Deserialize, Serialize};

use super::doubts::{self, open_tree};
use super::{RepositoryError, open, read};
use crate::uncommitted::Uncommitted;

/// Limit on the listed commits. The latest commits are listed.
const COMMITS: usize = 20;
/// Limit on the counted commits, the listed ones included.
const COUNTED: usize = 1000;
/// Limit on the listed paths.
const PATHS: usize = 50;
/// Limit on the changed paths up to which the changed lines are counted.
const WITH_LINES: usize = 2000;
/// Size limit of a file whose changed lines are counted, in bytes.
const LARGEST: i64 = 1024 * 1024;
/// Length of a subject or path, in characters; the rest is cut.
const LINE: usize = 200;

/// Commits and changes in a working tree since the start of a run.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Evidence {
    /// Commit at the start of the run, in hex; none if there was none.
    pub base: Option<String>,
    /// Commit at the end of the run, in hex; none if there is none.
    pub head: Option<String>,
    /// The latest 20 commits since the start, latest first.
    pub commits: Vec<CommitLine>,
    /// Number of further commits. At most 1000 commits are counted in all, so this is at most 980.
    pub more_commits: usize,
    /// Number of paths that differ from the start, committed or not.
    pub files: usize,
    /// Number of added lines; none if there are too many changes to count.
    pub insertions: Option<usize>,
    /// Number of removed lines; none if there are too many changes to count.
    pub deletions: Option<usize>,
    /// The first 50 paths that differ, ordered by path.
    pub changed: Vec<ChangedPath>,
    /// Uncommitted changes at the end of a run that handed over its work in a worktree.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uncommitted: Option<Uncommitted>,
}

/// A commit of the run: its id and the first line of its message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CommitLine {
    /// The commit, in hex.
    pub id: String,
    /// The first line of its message.
    pub subject: String,
}

/// Path that differs from the start of the run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChangedPath {
    /// The path, from the top of the tree on.
    pub path: String,
    /// Kind of the difference.
    pub change: PathChange,
}

/// Kind of a path's difference.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PathChange {
    /// The file did not exist at the start of the run.
    Added,
    /// The file has another content, kind or mode.
    Modified,
    /// The file was deleted.
    Deleted,
    /// The file is new, and git does not track it.
    Untracked,
}

impl PathChange {
    /// Returns the kind as a word.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Added => "added",
            Self::Modified => "modified",
            Self::Deleted => "deleted",
            Self::Untracked => "untracked",
        }
    }
}

/// Returns the commit at HEAD, in hex; none if there is no commit yet.
///
/// # Errors
/// Fails if this user cannot open `tree`.
pub(crate) fn head(tree: &Path) -> Result<Option<String>, RepositoryError> {
    Ok(tip(&open(tree)?).map(|commit| commit.id().to_string()))
}

/// Returns the commits and changes in a working tree since the commit `base`, or all of its history if there is none.
///
/// # Errors
/// Fails if this user cannot open or read `tree`, or if its repository no longer has the commit.
pub(crate) fn evidence(tree: &Path, base: Option<&str>) -> Result<Evidence, RepositoryError> {
    let git = open_tree(tree)?;
    let failed = read(tree, "what has changed");
    let seen = doubts::unhidden(open(tree)?).map_err(&failed)?;
    let since =
        base.map(|id| Oid::from_str(id).and_then(|id| git.find_commit(id))).transpose().map_err(&failed)?;
    let head = tip(&git);
    let mut evidence = Evidence {
        base: base.map(str::to_owned),
        head: head.as_ref().map(|commit| commit.id().to_string()),
        ..Evidence::default()
    };
    // libgit2 finds the commits at which a shallow clone ends only through the repository itself, and not through its
    // linked worktrees.
    let whole =
        if git.is_worktree() { Repository::open(git.commondir()).map_err(&failed)? } else { open(tree)? };
    if let Some(head) = &head {
        let mut walk = whole.revwalk().map_err(&failed)?;
        walk.push(head.id()).map_err(&failed)?;
        since.as_ref().map_or(Ok(()), |since| walk.hide(since.id())).map_err(&failed)?;
        for id in walk.take(COUNTED) {
            let id = id.map_err(&failed)?;
            if evidence.commits.len() == COMMITS {
                evidence.more_commits += 1;
                continue;
            }
            let commit = git.find_commit(id).map_err(&failed)?;
            let subject = line(commit.summary_bytes().unwrap_or_default());
            evidence.commits.push(CommitLine { id: id.to_string(), subject });
        }
    }
    let tree_then = since.map(|since| since.tree()).transpose().map_err(&failed)?;
    let tree_now = head.map(|head| head.tree()).transpose().map_err(&failed)?;
    let mut options = DiffOptions::new();
    options.include_untracked(true).recurse_untracked_dirs(true).show_untracked_content(true);
    options.ignore_submodules(true).include_typechange(true).max_size(LARGEST);
    // The worker may have marked changed files as unchanged in the index, so the index is not used.
    let diff = doubts::to_files(&seen, tree_then.as_ref(), &mut options, &|_| true).map_err(&failed)?;
    let mut changed: BTreeMap<Vec<u8>, PathChange> = BTreeMap::new();
    let is_committed = |path: &[u8]| {
        let path = Path::new(OsStr::from_bytes(path));
        tree_now.as_ref().is_some_and(|tree| tree.get_path(path).is_ok())
    };
    if let Some(tip) = &tree_now {
        // A merge takes the committed changes, even if the working tree has undone them, so these are listed as well.
        let committed = git.diff_tree_to_tree(tree_then.as_ref(), Some(tip), Some(&mut options));
        let committed = committed.map_err(&failed)?;
        let hidden = doubts::contradicted(&seen, &committed, tip).map_err(&failed)?;
        let hidden = committed.deltas().filter(|delta| hidden.contains(&doubts::path(delta)));
        changed.extend(hidden.map(|delta| (doubts::path(&delta), change(&delta))));
    }
    changed.extend(diff.deltas().map(|delta| {
        let path = doubts::path(&delta);
        let change = match change(&delta) {
            PathChange::Untracked if is_committed(&path) => PathChange::Added,
            change => change,
        };
        (path, change)
    }));
    evidence.files = changed.len();
    let shown = changed.into_iter().take(PATHS);
    evidence.changed = shown.map(|(path, change)| ChangedPath { path: line(&path), change }).collect();
    if diff.deltas().len() <= WITH_LINES {
        let stats = diff.stats().map_err(&failed)?;
        evidence.insertions = Some(stats.insertions());
        evidence.deletions = Some(stats.deletions());
    }
    Ok(evidence)
}

fn change(delta: &DiffDelta<'_>) -> PathChange {
    match delta.status() {
        Delta::Added | Delta::Copied => PathChange::Added,
        Delta::Deleted => PathChange::Deleted,
        Delta::Untracked => PathChange::Untracked,
        Delta::Unmodified
        | Delta::Modified
        | Delta::Renamed
        | Delta::Ignored
        | Delta::Typechange
        | Delta::Unreadable
        | Delta::Conflicted => PathChange::Modified,
    }
}

fn tip(git: &Repository) -> Option<Commit<'_>> {
    git.head().and_then(|head| head.peel_to_commit()).ok()
}

fn line(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    let mut line: String = text.chars().take(LINE).collect();
    if line.len() < text.len() {
        line.push('…');
    }
    line
}

#[cfg(test)]
mod tests {
    use fs_err as fs;

    use super::*;
    use crate::testing::Fixture;

    fn paths(evidence: &Evidence) -> Vec<(&str, PathChange)> {
        evidence.changed.iter().map(|changed| (changed.path.as_str(), changed.change)).collect()
    }

    #[test]
    fn commits_and_changes_since_a_commit_are_told_whether_they_are_committed_or_not() {
        let fixture = Fixture::new();
        fs::write(fixture.root.join("gone"), "1\n2\n").unwrap();
        fixture.commit(&fixture.root, "before");
        let base = head(&fixture.root).unwrap().unwrap();
        assert_eq!(evidence(&fixture.root, Some(&base)).unwrap().files, 0, "nothing has happened");

        fs::write(fixture.root.join("a"), "1\n2\n3\n").unwrap();
        fixture.commit(&fixture.root, "add a\n\nwith a body");
        fixture.commit(&fixture.root, &"x".repeat(500));
        fs::remove_file(fixture.root.join("gone")).unwrap();
        fs::write(fixture.root.join("README"), "first\nsecond\n").unwrap();
        fs::write(fixture.root.join("new"), "new").unwrap();

        let gathered = evidence(&fixture.root, Some(&base)).unwrap();
        assert_eq!(gathered.head, head(&fixture.root).unwrap());
        let subjects: Vec<&str> = gathered.commits.iter().map(|commit| commit.subject.as_str()).collect();
        assert_eq!(subjects, [format!("{}…", "x".repeat(200)).as_str(), "add a"]);
        assert_eq!(
            paths(&gathered),
            [
                ("README", PathChange::Modified),
                ("a", PathChange::Added),
                ("gone", PathChange::Deleted),
                ("new", PathChange::Untracked)
            ]
        );
        assert_eq!((gathered.files, gathered.insertions, gathered.deletions), (4, Some(6), Some(3)));
    }

    #[test]
    fn an_index_that_says_that_nothing_has_changed_hides_nothing() {
        let fixture = Fixture::new();
        fs::write(fixture.root.join("code"), "1\n").unwrap();
        fs::write(fixture.root.join("back"), "1\n").unwrap();
        fixture.commit(&fixture.root, "before");
        let base = head(&fixture.root).unwrap().unwrap();
        fs::write(fixture.root.join("back"), "2\n").unwrap();
        fixture.commit(&fixture.root, "committed, then taken back");
        fs::write(fixture.root.join("back"), "1\n").unwrap();
        fixture.git(&["update-index", "--assume-unchanged", "code"]);
        fs::write(fixture.root.join("code"), "1\nevil\n").unwrap();

        let gathered = evidence(&fixture.root, Some(&base)).unwrap();
        assert_eq!(paths(&gathered), [("back", PathChange::Modified), ("code", PathChange::Modified)]);
        assert_eq!(gathered.files, 2);
    }

    #[test]
    fn what_is_more_than_a_person_reads_is_counted() {
        let fixture = Fixture::without_commit();
        assert_eq!(head(&fixture.root).unwrap(), None);
        for n in 0..30 {
            fixture.commit(&fixture.root, &format!("commit {n}"));
        }
        for n in 0..60 {
            fs::write(fixture.root.join(format!("file {n}")), "").unwrap();
        }
        let gathered = evidence(&fixture.root, None).unwrap();
        assert_eq!((gathered.commits.len(), gathered.more_commits), (20, 10));
        assert_eq!(
            (gathered.changed.len(), gathered.files, gathered.commits[0].subject.as_str()),
            (50, 60, "commit 29")
        );
    }

    #[test]
    fn a_worktree_of_a_shallow_clone_tells_of_the_commits_that_are_there() {
        let fixture = Fixture::new();
        fixture.commit(&fixture.root, "second");
        let url = format!("file://{}", fixture.root.display());
        fixture.git(&["clone", "-q", "--depth", "1", &url, "shallow"]);
        let worktree = crate::Worktree::new(fixture.root.join("shallow"), crate::Name::new("t_1").unwrap());
        let prepared = worktree.prepare(&crate::Base::Head, None).unwrap();
        let base = prepared.branch.unwrap().head_commit;
        fixture.commit(&prepared.path, "mine");
        let gathered = evidence(&prepared.path, Some(&base)).unwrap();
        assert_eq!((gathered.commits.len(), gathered.commits[0].subject.as_str()), (1, "mine"));
        assert_eq!(evidence(&prepared.path, None).unwrap().commits.len(), 2);
    }

    #[test]
    fn a_worktree_tells_of_its_own_branch() {
        let fixture = Fixture::new();
        let worktree = fixture.worktree("t_1");
        let prepared = worktree.prepare(&crate::Base::Head, None).unwrap();
        let base = prepared.branch.unwrap().head_commit;
        fs::write(prepared.path.join("a"), "1\n").unwrap();
        fixture.commit(&prepared.path, "mine");
        let gathered = evidence(&prepared.path, Some(&base)).unwrap();
        assert_eq!((gathered.commits.len(), gathered.commits[0].subject.as_str()), (1, "mine"));
        assert_eq!(evidence(&fixture.root, Some(&base)).unwrap().commits, []);
    }
}
