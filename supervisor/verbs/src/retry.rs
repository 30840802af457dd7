//! `retry`: tries tasks again at once.

use kernel::TaskId;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::bulk::{Bulk, shown};
use super::reopen::begun;
use super::selection::{FLAGS, Matching, on_tasks};
use api::command::Command;
use api::{Audience, Call, Effect, Verb};
use base::failure::Failure;

/// Try tasks again at once
#[derive(Clone, Debug, Default, clap::Args, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
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
pub struct Retry {
    /// The tasks
    #[arg(value_name = "TASK", required_unless_present_any = FLAGS, conflicts_with_all = FLAGS)]
    pub task_ids: Vec<TaskId>,
    /// What has changed; kept as a comment for the worker
    #[arg(long, value_name = "TEXT")]
    pub reason: Option<String>,
    #[command(flatten)]
    #[serde(skip)]
    pub matching: Matching,
}

on_tasks!(Retry, Blocked);

impl Verb for Retry {
    const NAME: &'static str = "retry";
    const AUDIENCE: Audience = Audience::Operator;
    const EFFECT: Effect = Effect::Write;
    const MEMBERS: bool = true;
    type Reply = Bulk;

    async fn run(self, call: Call) -> Result<Bulk, Failure> {
        call.write(move |board, actor| {
            Bulk::each(board, self.task_ids, |board, id| {
                let retried = board.retry(id, self.reason.as_deref(), actor)?;
                Ok((retried.task.status, begun(&retried)))
            })
        })
        .await
    }
}

impl Command for Retry {
    shown!("Retried");
}
