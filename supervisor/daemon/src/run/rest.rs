//! Changes that a run left uncommitted in its worktree: committed, or named for the readers of the handoff.

use kernel::{CommitMode, Counted, Run, Task, Timestamp};
use policies::Identity;
use workspace::{CommitTerms, Job, Outcome, Span, Uncommitted, Worktree};

use super::seal::SealedTree;
use super::workspace_setup;
use base::terminal::printable;
use host::job;

/// Number of paths that the reason of a block names.
const NAMED: usize = 20;
/// Number of paths that the note about a branch names.
const IN_NOTE: usize = 5;

#[derive(Clone, Debug)]
pub(super) struct EndedWorktree {
    pub(super) worktree: Worktree,
    pub(super) span: Span,
    pub(super) is_taken: bool,
}

impl EndedWorktree {
    /// Returns the worktree of a run that began at a commit.
    pub(super) fn new(worktree: Worktree, start: Option<&str>, sealed: SealedTree) -> Self {
        let span = Span { start: start.map(str::to_owned), tip: sealed.tip };
        EndedWorktree { worktree, span, is_taken: sealed.is_taken }
    }
}

/// Returns the commit of the changes that a run has left.
pub(super) fn terms(task: &Task, run: &Run, at: Timestamp) -> CommitTerms {
    let (title, id, run_id) = (&task.title, &task.id, run.id);
    let message = format!(
        "{title}\n\nThe supervisor committed the changes that run {run_id} of task {id} left uncommitted.\n"
    );
    CommitTerms {
        author: workspace_setup::author(run.profile.as_ref()),
        message,
        at: at.as_micros() / 1_000_000,
    }
}

/// Looks for uncommitted changes, and commits them by the terms. Blocks.
///
/// # Errors
/// The host lacks a resource; the caller tries again.
pub(super) fn settle(
    ended: EndedWorktree,
    terms: Option<CommitTerms>,
    identity: Option<Identity>,
) -> Result<Uncommitted, String> {
    let hindered = |why: String| Uncommitted { hindrance: Some(why), ..Uncommitted::default() };
    if !ended.is_taken {
        return Ok(hindered("the worktree could not be taken over".to_owned()));
    }
    if identity.is_none() && nix::unistd::geteuid().is_root() {
        return Ok(hindered("no user is known who could read the tree".to_owned()));
    }
    let write = vec![ended.worktree.repository.clone()];
    let job = Job::CommitRest { worktree: ended.worktree, span: ended.span, terms };
    match job::work(identity, job::system_reads(), write, job) {
        Ok(Outcome::Rest(found)) => Ok(found),
        Ok(_) => Ok(hindered("the job process answered another question".to_owned())),
        Err(failure) if failure.cause.is_lack() => Err(failure.message),
        Err(failure) => Ok(hindered(failure.message)),
    }
}

/// Describes the commits and the uncommitted changes of a run, with the command that merges its branch; none without any.
pub(super) fn branch_note(found: &Uncommitted, worktree: &Worktree) -> Option<String> {
    let branch = worktree.branch();
    let mut parts = Vec::new();
    if found.ahead > 0 {
        let commits = Counted(found.ahead, "commit");
        let by = if found.commit.is_some() { ", the last by the supervisor" } else { "" };
        let repository = worktree.repository.display().to_string();
        let repository =
            shlex::try_quote(&repository).map_or_else(|_| repository.clone(), |path| path.to_string());
        parts.push(format!("{commits} on {branch}{by}: git -C {repository} merge {branch}"));
    }
    if found.is_unfinished() {
        parts.push(format!("{}{}", lacking(found), list(found, IN_NOTE)));
    }
    Some(printable(&parts.join("; "))).filter(|note| !note.is_empty())
}

/// Returns the number of uncommitted changes, with the reason why none could be committed.
fn lacking(found: &Uncommitted) -> String {
    let why = found.hindrance.as_ref().map(|why| format!(" ({why})")).unwrap_or_default();
    format!("{}{why}", Counted(found.count(), "uncommitted change"))
}

/// Returns the paths of uncommitted changes, up to a number of them.
fn list(found: &Uncommitted, most: usize) -> String {
    let paths: Vec<&str> = found.left.iter().take(most).map(|left| left.path.as_str()).collect();
    let more = found.count().saturating_sub(paths.len());
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    if paths.is_empty() { String::new() } else { format!(": {}{more}", paths.join(", ")) }
}

/// Returns the reason why the task is blocked, if it requires commits and the run left changes.
pub(super) fn block_reason(mode: CommitMode, found: &Uncommitted, worktree: &Worktree) -> Option<String> {
    if mode != CommitMode::Require || !found.is_unfinished() {
        return None;
    }
    let (lacking, list, tree) = (lacking(found), list(found, NAMED), worktree.path());
    let text = format!("the task requires commits, and the run left {lacking} in {}{list}", tree.display());
    Some(printable(&text))
}
