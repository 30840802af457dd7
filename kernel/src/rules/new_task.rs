//! Rules that every new task must meet, from a person, a worker or a schedule.

use std::collections::BTreeSet;

use crate::model::actor::Label;
use crate::model::commits::Commits;
use crate::model::error::Error;
use crate::model::id::Pool;
use crate::model::limits;
use crate::model::task::{Approval, Check, NewTask};
use crate::model::task_fields::{PlainField, Value};
use crate::model::workspace::Workspace;
use crate::rules::{links, turns};

/// Hint with an example of a check.
pub(crate) const CHECK_HINT: &str =
    "name a command that exits with 0 when the work is done: `--check 'cargo test'`";

/// Refuses a task that no board accepts.
pub(crate) fn validate(new: &NewTask) -> Result<(), Error> {
    if let Some(number) = new.goal.max_turns {
        turns::require_number("goal_max_turns", number, "20 is the default")?;
    }
    limits::title(&new.title)?;
    limits::maybe("body", new.body.as_deref(), limits::BODY)?;
    limits::maybe("notes", new.notes.as_deref(), limits::SUMMARY)?;
    limits::bytes("workspace", new.workspace.as_str(), limits::WORD)?;
    if new.workspace.as_str().is_empty() {
        return Err(Error::invalid("workspace", "it is empty", "leave it out for `scratch`"));
    }
    for (field, word) in new.words() {
        limits::bytes(field, word, limits::WORD)?;
        if word.is_empty() {
            return Err(Error::invalid(field, "it is empty", "leave it out"));
        }
    }
    for field in new.plain() {
        plain(field, "leave it out", "leave it out for no limit of the task's own")?;
    }
    check(&new.check)?;
    commits(new.commits, &new.workspace)?;
    list("skills", &new.skills)?;
    list("artifacts", &new.artifacts)?;
    pools(&new.pools)?;
    if new.parents.len() > limits::PARENTS {
        return Err(links::too_many_parents(new.parents.len()));
    }
    Ok(())
}

/// Refuses a value that its kind does not allow. The hints are for an empty word and for a time of zero.
pub(crate) fn plain(field: PlainField<'_>, filled: &str, longer: &str) -> Result<(), Error> {
    match field.value {
        Value::Word(word) => {
            limits::bytes(field.name, word, limits::WORD)?;
            if word.is_empty() { Err(Error::invalid(field.name, "it is empty", filled)) } else { Ok(()) }
        }
        Value::Span(time) if time.as_micros() == 0 => Err(Error::invalid(field.name, "it is zero", longer)),
        Value::Span(_) | Value::Number(_) | Value::Amount(_) => Ok(()),
    }
}

/// Refuses an approver without an approval, and an approver who is the assignee. For a task with a class, the class's
/// gate decides first if the task needs an approval.
pub(crate) fn approval(new: &NewTask) -> Result<(), Error> {
    let Approval { state, approver, .. } = &new.approval;
    if state.is_none() && approver.is_some() {
        return Err(Error::invalid(
            "require_approval",
            "an approver is named, and no approval is required",
            "add `--require-approval`",
        ));
    }
    let Some(approver) = approver else { return Ok(()) };
    if new.assignee.as_ref().is_some_and(|assignee| assignee.as_str() == Label::parse(approver).name) {
        return Err(Error::invalid("approver", format!("{approver} is to do it"), "name somebody else"));
    }
    Ok(())
}

/// Refuses an empty check, and a limit on checks without a check.
fn check(check: &Check) -> Result<(), Error> {
    check.command.as_deref().map_or(Ok(()), |command| limits::filled("check", command, CHECK_HINT))?;
    let present = check.command.as_ref().map(|_| ());
    check.max_checks.map_or(Ok(()), |limit| require_limit(limit, present))
}

/// Refuses a limit on checks for a task without a check.
pub(crate) fn require_limit(limit: u32, check: Option<()>) -> Result<(), Error> {
    if check.is_none() {
        return Err(Error::invalid("max_checks", "the task has no check", CHECK_HINT));
    }
    turns::require_number("max_checks", limit, "3 is the default")
}

/// Refuses a handling of uncommitted changes for a task whose runs have no branch of their own.
pub(crate) fn commits(commits: Commits, workspace: &Workspace) -> Result<(), Error> {
    if commits.mode.is_none() || is_worktree(workspace) {
        return Ok(());
    }
    Err(Error::invalid(
        "commit",
        "its workspace is not a worktree, so the supervisor commits nothing there",
        "leave it out, or use a worktree: `--workspace worktree:/path/of/the/repository`",
    ))
}

/// True for a workspace in which a run has a branch of its own.
pub(crate) fn is_worktree(workspace: &Workspace) -> bool {
    workspace.kind() == "worktree"
}

/// Refuses more pools than a task may name.
pub(crate) fn pools(pools: &BTreeSet<Pool>) -> Result<(), Error> {
    let (count, most) = (pools.len(), limits::POOLS);
    if count <= most {
        return Ok(());
    }
    Err(Error::invalid("pools", format!("{count} pools, the limit is {most}"), "name fewer"))
}

/// Refuses a list with too many entries, and an entry that is too long.
pub(crate) fn list(field: &'static str, entries: &[String]) -> Result<(), Error> {
    if entries.len() > 100 {
        let count = entries.len();
        return Err(Error::invalid(field, format!("{count} entries, the limit is 100"), "send fewer"));
    }
    entries.iter().try_for_each(|entry| limits::bytes(field, entry, limits::WORD))
}
