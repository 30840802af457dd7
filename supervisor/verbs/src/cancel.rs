//! `cancel`: ends a task's run, or its wait for one.

use kernel::TaskId;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::bulk::{Bulk, outcome, shown};
use super::selection::{FLAGS, Matching, on_tasks};
use api::command::Command;
use api::{Audience, Call, Effect, Verb};
use base::failure::Failure;

/// Cancel tasks, whether they run or wait
#[derive(Clone, Debug, Default, clap::Args, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[command(after_help = "\
A worker gets SIGTERM, and SIGKILL after `worker.grace`. The task is then blocked:
`retry` starts it again, `archive` takes it off the board.

Examples:
  supervisor cancel t_0123abcd
  supervisor cancel t_0123abcd t_4567cdef --reason 'wrong branch'
  supervisor cancel --status ready,scheduled --tenant acme --dry-run")]
pub struct Cancel {
    /// The tasks
    #[arg(value_name = "TASK", required_unless_present_any = FLAGS, conflicts_with_all = FLAGS)]
    pub task_ids: Vec<TaskId>,
    /// Why; kept as a comment
    #[arg(long, value_name = "TEXT")]
    pub reason: Option<String>,
    #[command(flatten)]
    #[serde(skip)]
    pub matching: Matching,
}

on_tasks!(Cancel);

impl Verb for Cancel {
    const NAME: &'static str = "cancel";
    const AUDIENCE: Audience = Audience::Operator;
    const EFFECT: Effect = Effect::Write;
    const MEMBERS: bool = true;
    type Reply = Bulk;

    async fn run(self, call: Call) -> Result<Bulk, Failure> {
        call.refuse_live_without_daemon(&self.task_ids).await?;
        call.write(move |board, actor| {
            Bulk::each(board, self.task_ids, |board, id| {
                Ok(outcome(&board.cancel(id, self.reason.as_deref(), actor)?))
            })
        })
        .await
    }
}

impl Command for Cancel {
    shown!("Cancelled");
}
