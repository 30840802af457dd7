//! Verbs of one shape: each takes tasks, by their ids or by what they have in common, and does the same for each of
//! them. The table at the end has a row for each verb; its step is a function above the table.

use std::path::PathBuf;

use kernel::{Actor, Board, Reopened, Status, TaskId};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::bulk::{Bulk, TaskOutcome, outcome, shown};
use super::selection::{FLAGS, Matching, on_tasks};
use api::command::Command;
use api::{Call, Verb, verb};
use base::failure::Failure;

/// A task of a request.
struct Step<'a> {
    id: &'a TaskId,
    reason: Option<&'a str>,
    actor: &'a Actor,
    /// Directory of the workspaces of the board.
    workspaces: &'a PathBuf,
}

/// Workers of the tasks of a verb.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Workers {
    /// The verb leaves workers as they are.
    Stay,
    /// The verb ends workers, which needs a daemon.
    End,
}

/// Takes a step for each task.
async fn each(
    call: Call,
    tasks: Vec<TaskId>,
    reason: Option<String>,
    workers: Workers,
    step: fn(&mut Board<'_>, &Step<'_>) -> TaskOutcome,
) -> Result<Bulk, Failure> {
    if workers == Workers::End {
        call.refuse_live_without_daemon(&tasks).await?;
    }
    let workspaces = call.service.root().workspaces(call.board()?.name());
    call.write(move |board, actor| {
        Bulk::each(board, tasks, |board, id| {
            step(board, &Step { id, reason: reason.as_deref(), actor, workspaces: &workspaces })
        })
    })
    .await
}

fn retry(board: &mut Board<'_>, task: &Step<'_>) -> TaskOutcome {
    let retried = board.retry(task.id, task.reason, task.actor)?;
    Ok((retried.task.status, begun(&retried)))
}

fn reopen(board: &mut Board<'_>, task: &Step<'_>) -> TaskOutcome {
    let reopened = board.reopen(task.id, task.reason, task.actor)?;
    Ok((reopened.task.status, begun(&reopened)))
}

/// The note on children that no longer wait.
fn begun(reopened: &Reopened) -> Option<String> {
    let children: Vec<String> = reopened.begun.iter().map(ToString::to_string).collect();
    (!children.is_empty())
        .then(|| format!("{} already started with its result and continue", children.join(", ")))
}

fn cancel(board: &mut Board<'_>, task: &Step<'_>) -> TaskOutcome {
    Ok(outcome(&board.cancel(task.id, task.reason, task.actor)?))
}

fn unblock(board: &mut Board<'_>, task: &Step<'_>) -> TaskOutcome {
    board.unblock(task.id, task.reason, task.actor).map(|task| (task.status, None))
}

fn unarchive(board: &mut Board<'_>, step: &Step<'_>) -> TaskOutcome {
    let task = board.unarchive(step.id, step.actor)?;
    // Only the daemon writes to the directory of workspaces, so a missing path is conclusive.
    let place = step.workspaces.join(step.id.as_str());
    let gone = task.workspace.is_scratch() && task.started_at.is_some() && !place.exists();
    Ok((task.status, gone.then(|| lost(task.status))))
}

/// Note about a scratch workspace that was removed when its task was archived.
fn lost(status: Status) -> String {
    let gone = "its scratch workspace was removed when it was archived";
    if status == Status::Done { gone.to_owned() } else { format!("{gone}: the next run gets a new one") }
}

/// Declares a verb for each row: its help and header, the statuses in which a filter selects tasks, the word of its
/// output for a success, its step, and the help of its reason if it has one.
macro_rules! of_tasks {
    ($($(#[$help:meta])* $verb:ident verb! { $($header:tt)* }
        of [$($status:ident)*] $done:literal $workers:ident $step:path $(, $(#[$about:meta])* $reason:ident)?;)*) => {$(
        #[derive(Clone, Debug, Default, clap::Args, Serialize, Deserialize, JsonSchema)]
        $(#[$help])*
        #[serde(deny_unknown_fields, default)]
        pub struct $verb {
            /// The tasks
            #[arg(value_name = "TASK", required_unless_present_any = FLAGS, conflicts_with_all = FLAGS)]
            pub task_ids: Vec<TaskId>,
            $($(#[$about])*
            #[arg(long, value_name = "TEXT")]
            pub $reason: Option<String>,)?
            #[command(flatten)]
            #[serde(skip)]
            pub matching: Matching,
        }

        on_tasks!($verb $(, $status)*);

        impl Verb for $verb {
            verb! { $($header)* }

            async fn run(self, call: Call) -> Result<Bulk, Failure> {
                let reason = [$(self.$reason)?].into_iter().next().flatten();
                each(call, self.task_ids, reason, Workers::$workers, $step).await
            }
        }

        impl Command for $verb {
            shown!($done);
        }
    )*};
}

of_tasks! {
    /// Try tasks again at once
    #[command(after_help = "\
For tasks that gave up, were cancelled, are blocked, wait for another attempt, or
are done. Their failures are forgotten, and the next worker reads the earlier
attempts. A running task is taken back with `reclaim`.

When tasks are selected by flags, only blocked ones are selected unless --status is
given: finished work is done again only on request.

Examples:
  supervisor retry t_0123abcd
  supervisor retry t_0123abcd t_4567cdef --reason 'the server is up again'
  supervisor retry --failed --tenant acme --dry-run
  supervisor retry --status blocked --assignee shell --since 1d")]
    Retry verb! { "retry": Operator, Write, members => Bulk }
    of [Blocked] "Retried" Stay retry,
        /// The change since the last run; kept as a comment for the worker
        reason;

    /// Cancel tasks, whether they run or wait
    #[command(after_help = "\
A worker gets SIGTERM, and SIGKILL after `worker.grace`. The task is then blocked:
`retry` starts it again, `archive` takes it off the board.

Examples:
  supervisor cancel t_0123abcd
  supervisor cancel t_0123abcd t_4567cdef --reason 'wrong branch'
  supervisor cancel --status ready,scheduled --tenant acme --dry-run")]
    Cancel verb! { "cancel": Operator, Write, members => Bulk }
    of [] "Cancelled" End cancel,
        /// The reason; kept as a comment
        reason;

    /// Bring archived tasks back
    #[command(after_help = "\
A task gets back the state it had when it was archived: done, blocked, in triage, in
review, or queued. A task that was running is queued. Unlinked children stay
unlinked. A scratch workspace is created anew for the next run.

Examples:
  supervisor unarchive t_0123abcd
  supervisor unarchive t_0123abcd t_4567cdef --json
  supervisor unarchive --tenant acme --since 1h --dry-run")]
    Unarchive verb! { "unarchive": Operator, Write, members => Bulk }
    of [Archived] "Unarchived" Stay unarchive;

    /// Return done tasks to the queue
    #[command(after_help = "\
The task runs again, and its worker reads the earlier attempts. Its result stays
until the next one. Children that have not started wait again; those that have
started or are done are named, not stopped.

Examples:
  supervisor reopen t_0123abcd --reason 'the figures of May are missing'
  supervisor reopen t_0123abcd t_4567cdef
  supervisor reopen --tenant acme --since 1h --dry-run")]
    Reopen verb! { "reopen": Operator, Write, members => Bulk }
    of [Done] "Reopened" Stay reopen,
        /// The work to do again; kept as a comment for the worker
        reason;

    /// Unblock tasks
    #[command(after_help = "\
Examples:
  supervisor unblock t_0123abcd
  supervisor unblock t_0123abcd t_4567cdef --reason 'use PostgreSQL'")]
    Unblock verb! { "unblock": Orchestrator, Write, members, tool(Orchestrator, "") => Bulk }
    of [] "Unblocked" Stay unblock,
        /// The change or the answer; kept as a comment for the worker
        reason;
}
