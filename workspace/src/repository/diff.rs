//! The work in a repository as a person reviews it: files, hunks and lines, within limits.
//!
//! See decision 0175.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use git2::{Delta, Diff as Found, DiffDelta, DiffFindOptions, DiffOptions, FileMode, Oid, Patch, Repository};
use serde::{Deserialize, Serialize};

use super::doubts::{self, open_tree};
use super::{RepositoryError, open, read};

/// Limit on the files of a diff.
const FILES: usize = 300;
/// Limit on the lines of a diff, in bytes.
const BYTES: usize = 2 << 20;
/// Limit on the lines of one file, in bytes.
const BYTES_OF_FILE: usize = 512 << 10;
/// Limit on the lines of one file.
const LINES_OF_FILE: usize = 5000;
/// Cost of a line or of the head of a hunk in addition to its text, in bytes.
const AROUND: usize = 64;
/// Limit on a line or a path, in characters.
const LINE: usize = 2000;
/// Largest file whose lines are compared, in bytes.
const LARGEST: i64 = 1 << 20;
/// Limit on the files of a diff in which renames are searched, because each file is compared with each.
const WITH_RENAMES: usize = 500;
/// Lines around a change.
const CONTEXT: u32 = 3;

/// Request for a diff: two states of a repository, and the detail.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DiffOf {
    /// A working tree, or the repository of commits.
    pub path: PathBuf,
    /// The commit at the beginning, in hex; none if there was none.
    pub base: Option<String>,
    /// The commit at the end, in hex; none for the working tree as it is, with uncommitted changes and new files that are not
    /// ignored.
    pub end: Option<String>,
    /// Lines, or only their numbers.
    pub detail: Detail,
}

/// Amount of text that a diff returns.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Detail {
    /// Differing lines, with the lines around them.
    #[default]
    Lines,
    /// Number of differing lines.
    Counts,
}

/// Difference between two states of a repository.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Diff {
    /// The commit at the beginning, in hex; none if there was none.
    pub base: Option<String>,
    /// The commit at the end, in hex; none if there is none.
    pub head: Option<String>,
    /// The files that differ, in the order of their paths.
    pub files: Vec<FileDiff>,
    /// True if there are more files, or lines of these were left out.
    pub truncated: bool,
    /// Notes for the reader: committed work that differs, and files that hide changes.
    #[serde(default)]
    pub warnings: Vec<String>,
}

/// The changes of one file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileDiff {
    /// Path, relative to the top of the tree; for a deleted file, its former path.
    pub path: String,
    /// The former path of a renamed file.
    pub old_path: Option<String>,
    /// Kind of the change: added, changed, removed or renamed.
    pub status: FileStatus,
    /// Former and present mode of the file in octal, as git writes them, if they differ: `100644 => 100755`.
    #[serde(default)]
    pub mode: Option<String>,
    /// True if the file is binary.
    pub binary: bool,
    /// Number of added lines.
    pub additions: usize,
    /// Number of removed lines.
    pub deletions: usize,
    pub hunks: Vec<Hunk>,
    /// True if lines were left out, because there are too many.
    pub truncated: bool,
}

/// Kind of a file's change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FileStatus {
    /// The file is new, tracked or not.
    Added,
    /// The file has another content, kind or mode.
    Modified,
    /// The file is gone.
    Deleted,
    /// The file was at another path.
    Renamed,
}

impl FileStatus {
    /// Returns the word for this kind of change.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Added => "added",
            Self::Modified => "modified",
            Self::Deleted => "deleted",
            Self::Renamed => "renamed",
        }
    }
}

/// Part of a file with differing lines.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hunk {
    /// Position in the form of `git diff`: `@@ -1,4 +1,5 @@ fn main()`.
    pub header: String,
    /// The lines of the hunk, in the order of the file.
    pub lines: Vec<DiffLine>,
}

/// Line of a hunk.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DiffLine {
    /// Kind of the line: added, removed, or unchanged.
    pub kind: LineKind,
    /// Its number in the former file.
    pub old: Option<u32>,
    /// Its number in the present file.
    pub new: Option<u32>,
    /// Text without the line end. Bytes that are not UTF-8 become U+FFFD.
    pub text: String,
}

/// Kind of a line in a diff.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum LineKind {
    /// Unchanged.
    #[serde(rename = " ")]
    Context,
    #[serde(rename = "+")]
    Added,
    #[serde(rename = "-")]
    Removed,
}

impl LineKind {
    /// Returns the character in front of such a line.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Context => " ",
            Self::Added => "+",
            Self::Removed => "-",
        }
    }

    fn from_origin(origin: char) -> Option<Self> {
        match origin {
            ' ' => Some(Self::Context),
            '+' => Some(Self::Added),
            '-' => Some(Self::Removed),
            // This is git's note about a missing line end.
            _ => None,
        }
    }
}

/// Compares two states of a repository. `objects` is a directory of further git objects, such as the new objects of a
/// live run. `tip` is the commit to use as HEAD of the working tree.
///
/// # Errors
/// Fails if this user cannot open or read the repository, or it does not have a commit.
pub(crate) fn diff(
    of: &DiffOf,
    objects: Option<&Path>,
    tip: Option<String>,
) -> Result<Diff, RepositoryError> {
    let git = if of.end.is_some() { open(&of.path)? } else { open_tree(&of.path)? };
    let failed = read(&of.path, "what differs");
    if let Some(objects) = objects.and_then(Path::to_str) {
        let borrowed = git.odb().and_then(|odb| odb.add_disk_alternate(objects));
        borrowed.map_err(read(&of.path, "the objects of the run"))?;
    }
    let at_head = || git.head().and_then(|head| head.peel_to_commit()).ok().map(|it| it.id().to_string());
    let tip = if of.end.is_none() { tip.or_else(at_head) } else { None };
    let warnings = if of.end.is_none() { doubts::warnings(&git) } else { Vec::new() };
    let git = doubts::unhidden(git).map_err(&failed)?;
    let base = of.base.as_deref().map(|id| tree_of(&git, id)).transpose().map_err(&failed)?;
    let mut options = DiffOptions::new();
    options.include_untracked(true).recurse_untracked_dirs(true).show_untracked_content(true);
    options.ignore_submodules(true).include_typechange(true).max_size(LARGEST).context_lines(CONTEXT);
    let (mut changes, head) = if let Some(id) = &of.end {
        let end = tree_of(&git, id).map_err(&failed)?;
        (git.diff_tree_to_tree(base.as_ref(), Some(&end), Some(&mut options)), Some(id.clone()))
    } else {
        (doubts::to_files(&git, base.as_ref(), &mut options, &|_| true), tip)
    };
    if let Ok(found) = &mut changes
        && found.deltas().len() <= WITH_RENAMES
    {
        let mut similar = DiffFindOptions::new();
        similar.renames(true).for_untracked(true).rename_limit(WITH_RENAMES / 2);
        // If a file cannot be read, no renames are found, and the diff still has all files.
        drop(found.find_similar(Some(&mut similar)));
    }
    let changes = changes.map_err(&failed)?;
    let mut diff = Diff { base: of.base.clone(), head, warnings, ..Diff::default() };
    let mut room = BYTES;
    for at in 0..changes.deltas().len() {
        if diff.files.len() == FILES {
            diff.truncated = true;
            break;
        }
        let Some(file) = file(&changes, at, of.detail, &mut room).map_err(&failed)? else { continue };
        diff.truncated |= file.truncated;
        diff.files.push(file);
    }
    if of.end.is_none() {
        let seen: BTreeSet<Vec<u8>> = changes.deltas().map(|delta| doubts::path(&delta)).collect();
        let committed = Committed { git: &git, base: base.as_ref(), seen, detail: of.detail };
        committed.join(&mut diff, &mut options, &mut room).map_err(&failed)?;
    }
    Ok(diff)
}

/// Committed state of a working tree, in addition to its present state.
struct Committed<'a> {
    git: &'a Repository,
    base: Option<&'a git2::Tree<'a>>,
    /// Paths that differ in the working tree.
    seen: BTreeSet<Vec<u8>>,
    detail: Detail,
}

impl Committed<'_> {
    /// Adds committed changes that the working tree has undone, because a merge takes the committed state.
    fn join(&self, diff: &mut Diff, options: &mut DiffOptions, room: &mut usize) -> Result<(), git2::Error> {
        let Some(head) = diff.head.as_deref() else { return Ok(()) };
        let tip = tree_of(self.git, head)?;
        let found = self.git.diff_tree_to_tree(self.base, Some(&tip), Some(options))?;
        let contradicted = doubts::contradicted(self.git, &found, &tip)?;
        let (mut undone, mut otherwise) = (0, 0);
        for at in 0..found.deltas().len() {
            let Some(path) = found.get_delta(at).map(|delta| doubts::path(&delta)) else { continue };
            if !contradicted.contains(&path) {
                continue;
            }
            // The diff has the file already, as it is in the working tree.
            if self.seen.contains(&path) {
                otherwise += 1;
                continue;
            }
            undone += 1;
            if diff.files.len() == FILES {
                diff.truncated = true;
            } else if let Some(file) = file(&found, at, self.detail, room)? {
                diff.truncated |= file.truncated;
                diff.files.push(file);
            }
        }
        if undone > 0 {
            diff.warnings.push(format!(
                "changes of {undone} committed files were taken back in the working tree: they are shown as they are committed"
            ));
        }
        if otherwise > 0 {
            diff.warnings.push(format!(
                "{otherwise} files were committed otherwise than they are now: they are shown as they are in the working tree"
            ));
        }
        Ok(())
    }
}

fn tree_of<'a>(git: &'a Repository, id: &str) -> Result<git2::Tree<'a>, git2::Error> {
    git.find_commit(Oid::from_str(id)?)?.tree()
}

/// Reads one file of a diff; none if the file does not differ.
fn file(
    found: &Found<'_>,
    at: usize,
    detail: Detail,
    room: &mut usize,
) -> Result<Option<FileDiff>, git2::Error> {
    let Some(delta) = found.get_delta(at) else { return Ok(None) };
    let status = match delta.status() {
        Delta::Added | Delta::Copied | Delta::Untracked => FileStatus::Added,
        Delta::Deleted => FileStatus::Deleted,
        Delta::Renamed => FileStatus::Renamed,
        Delta::Modified | Delta::Typechange | Delta::Conflicted | Delta::Unreadable => FileStatus::Modified,
        Delta::Unmodified | Delta::Ignored => return Ok(None),
    };
    let (old, new) = (delta.old_file().path_bytes(), delta.new_file().path_bytes());
    let path = cut(new.or(old).unwrap_or_default());
    let old_path = old.filter(|_| status == FileStatus::Renamed).map(cut);
    let mut file = FileDiff {
        path,
        old_path,
        status,
        mode: mode(&delta),
        binary: false,
        additions: 0,
        deletions: 0,
        hunks: Vec::new(),
        truncated: is_large(&delta) || is_repository(&delta),
    };
    // A file that cannot be read has no lines.
    let text = match Patch::from_diff(found, at) {
        Ok(Some(text)) => text,
        none => {
            file.truncated |= none.is_err() || delta.status() == Delta::Unreadable;
            return Ok(Some(file));
        }
    };
    file.binary = text.delta().flags().is_binary() && !file.truncated;
    if file.binary || file.truncated {
        return Ok(Some(file));
    }
    (_, file.additions, file.deletions) = text.line_stats()?;
    if detail == Detail::Lines {
        (file.hunks, file.truncated) = hunks(&text, room)?;
    }
    Ok(Some(file))
}

/// Returns git's description of the file's mode if it differs from the former mode.
fn mode(delta: &DiffDelta<'_>) -> Option<String> {
    let (old, new) = (u32::from(delta.old_file().mode()), u32::from(delta.new_file().mode()));
    (old != 0 && new != 0 && old != new).then(|| format!("{old:06o} => {new:06o}"))
}

/// Returns true for a repository within this repository. Its files are not compared.
fn is_repository(delta: &DiffDelta<'_>) -> bool {
    let file = delta.new_file();
    file.mode() == FileMode::Commit || file.path_bytes().is_some_and(|path| path.ends_with(b"/"))
}

/// Returns true if a file is too large to compare its lines. Git then treats it as binary.
fn is_large(delta: &DiffDelta<'_>) -> bool {
    let largest = u64::try_from(LARGEST).unwrap_or_default();
    delta.old_file().size().max(delta.new_file().size()) > largest
}

/// Reads the hunks of a file. The second value is true if some of them were left out.
fn hunks(patch: &Patch<'_>, room: &mut usize) -> Result<(Vec<Hunk>, bool), git2::Error> {
    let (mut hunks, mut bytes, mut lines) = (Vec::new(), BYTES_OF_FILE.min(*room), 0);
    for at in 0..patch.num_hunks() {
        let (head, count) = patch.hunk(at)?;
        let mut hunk = Hunk { header: cut(head.header()), lines: Vec::new() };
        let size = hunk.header.len() + AROUND;
        if size > bytes {
            return Ok((hunks, true));
        }
        bytes -= size;
        *room -= size;
        for number in 0..count {
            let line = patch.line_in_hunk(at, number)?;
            let Some(kind) = LineKind::from_origin(line.origin()) else { continue };
            let text = cut(line.content());
            lines += 1;
            let size = text.len() + AROUND;
            if lines > LINES_OF_FILE || size > bytes {
                hunks.push(hunk);
                return Ok((hunks, true));
            }
            bytes -= size;
            *room -= size;
            hunk.lines.push(DiffLine { kind, old: line.old_lineno(), new: line.new_lineno(), text });
        }
        hunks.push(hunk);
    }
    Ok((hunks, false))
}

/// Returns a line or a path as text: without its line end, and cut at the limit.
fn cut(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    let text = text.strip_suffix('\n').unwrap_or(&text);
    let text = text.strip_suffix('\r').unwrap_or(text);
    match text.char_indices().nth(LINE) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}
