//! `deny`: the approver of a task says no.

use kernel::TaskId;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::tasks::bulk::{Bulk, outcome, shown};
use api::command::Command;
use api::{Call, Verb, verb};
use base::failure::Failure;

/// Deny tasks that wait for approval
#[derive(Clone, Debug, Default, clap::Args, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[command(after_help = "\
The task goes to triage, where a person changes it, archives it, or requests approval
again with promote. Its children keep waiting.

Examples:
  supervisor deny t_0123abcd --reason 'too expensive'")]
pub struct Deny {
    /// The tasks
    #[arg(value_name = "TASK", required = true)]
    pub task_ids: Vec<TaskId>,
    /// The reason; kept as a comment
    #[arg(long, value_name = "TEXT", required = true)]
    pub reason: Option<String>,
}

impl Verb for Deny {
    verb! { "deny": Worker, Write, members => Bulk }

    async fn run(self, call: Call) -> Result<Bulk, Failure> {
        let reason = self.reason.ok_or_else(|| {
            Failure::usage("no reason is given").hint("supervisor deny <task> --reason '<why not>'")
        })?;
        call.write(move |board, actor| {
            Bulk::each(board, self.task_ids, |board, id| {
                board.deny(id, &reason, actor).map(|settled| outcome(&settled))
            })
        })
        .await
    }
}

impl Command for Deny {
    shown!("Denied");
}
