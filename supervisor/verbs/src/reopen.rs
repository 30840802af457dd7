//! `reopen`: returns done tasks to the queue.

use kernel::{Reopened, TaskId};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::bulk::{Bulk, shown};
use super::selection::{FLAGS, Matching, on_tasks};
use api::command::Command;
use api::{Audience, Call, Effect, Verb};
use base::failure::Failure;

/// Return done tasks to the queue
#[derive(Clone, Debug, Default, clap::Args, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[command(after_help = "\
The task runs again, and its worker reads the earlier attempts. Its result stays
until the next one. Children that have not started wait again; those that have
started or are done are named, not stopped.

Examples:
  supervisor reopen t_0123abcd --reason 'the figures of May are missing'
  supervisor reopen t_0123abcd t_4567cdef
  supervisor reopen --tenant acme --since 1h --dry-run")]
pub struct Reopen {
    /// The tasks
    #[arg(value_name = "TASK", required_unless_present_any = FLAGS, conflicts_with_all = FLAGS)]
    pub task_ids: Vec<TaskId>,
    /// What to do again; kept as a comment for the worker
    #[arg(long, value_name = "TEXT")]
    pub reason: Option<String>,
    #[command(flatten)]
    #[serde(skip)]
    pub matching: Matching,
}

on_tasks!(Reopen, Done);

impl Verb for Reopen {
    const NAME: &'static str = "reopen";
    const AUDIENCE: Audience = Audience::Operator;
    const EFFECT: Effect = Effect::Write;
    const MEMBERS: bool = true;
    type Reply = Bulk;

    async fn run(self, call: Call) -> Result<Bulk, Failure> {
        call.write(move |board, actor| {
            Bulk::each(board, self.task_ids, |board, id| {
                let reopened = board.reopen(id, self.reason.as_deref(), actor)?;
                Ok((reopened.task.status, begun(&reopened)))
            })
        })
        .await
    }
}

impl Command for Reopen {
    shown!("Reopened");
}

/// The note on children that no longer wait.
pub(super) fn begun(reopened: &Reopened) -> Option<String> {
    let children: Vec<String> = reopened.begun.iter().map(ToString::to_string).collect();
    (!children.is_empty())
        .then(|| format!("{} already started with its result and continue", children.join(", ")))
}
