//! `unblock`: lets a blocked task continue.

use kernel::TaskId;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::bulk::{Bulk, shown};
use super::selection::{FLAGS, Matching, on_tasks};
use api::command::Command;
use api::{Audience, Call, Effect, Scope, Tool, Verb};
use base::failure::Failure;

/// Unblock tasks
#[derive(Clone, Debug, Default, clap::Args, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[command(after_help = "\
Examples:
  supervisor unblock t_0123abcd
  supervisor unblock t_0123abcd t_4567cdef --reason 'use PostgreSQL'")]
pub struct Unblock {
    /// The tasks
    #[arg(value_name = "TASK", required_unless_present_any = FLAGS, conflicts_with_all = FLAGS)]
    pub task_ids: Vec<TaskId>,
    /// What has changed, or the answer; kept as a comment for the worker
    #[arg(long, value_name = "TEXT")]
    pub reason: Option<String>,
    #[command(flatten)]
    #[serde(skip)]
    pub matching: Matching,
}

on_tasks!(Unblock);

impl Verb for Unblock {
    const NAME: &'static str = "unblock";
    const AUDIENCE: Audience = Audience::Orchestrator;
    const EFFECT: Effect = Effect::Write;
    const MEMBERS: bool = true;
    const TOOL: Option<Tool> = Some(Tool { scope: Scope::Orchestrator, about: "" });
    type Reply = Bulk;

    async fn run(self, call: Call) -> Result<Bulk, Failure> {
        call.write(move |board, actor| {
            Bulk::each(board, self.task_ids, |board, id| {
                board.unblock(id, self.reason.as_deref(), actor).map(|task| (task.status, None))
            })
        })
        .await
    }
}

impl Command for Unblock {
    shown!("Unblocked");
}
