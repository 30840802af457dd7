//! `complete`: the work is done; the handoff goes to the tasks that depend on it.

use kernel::{Handoff, RunId, TaskId};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::handoff_check;
use crate::tasks::bulk::{Bulk, handed_over, shown};
use crate::views::parse;
use api::command::Command;
use api::{Call, Verb, verb};
use base::exit::Code;
use base::failure::Failure;
use base::invocation::Invocation;

/// Complete a task with its result
#[derive(Clone, Debug, Default, clap::Args, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[command(after_help = "\
Artifacts are kept when a run of this supervisor hands them over. When a task is
completed by hand or by an external claim, they stay where they are: attach them.

Examples:
  supervisor complete t_0123abcd --summary 'parser fixed, 14 tests pass' \\
      --metadata '{\"tests\": 14}'
  supervisor complete t_0123abcd t_4567cdef
  supervisor complete --summary 'done'   (inside a run: the run's own task)")]
pub struct Complete {
    /// The tasks; inside a run, the run's own task if none is named
    #[arg(value_name = "TASK")]
    pub task_ids: Vec<TaskId>,
    /// The result itself, if short
    #[arg(long, value_name = "TEXT")]
    pub result: Option<String>,
    /// Summary of the work, for people and later workers
    #[arg(long, value_name = "TEXT")]
    pub summary: Option<String>,
    /// Machine-readable facts: a JSON object
    #[arg(long, value_name = "JSON", value_parser = parse::json_object)]
    pub metadata: Option<serde_json::Value>,
    /// A file of the workspace that is part of the result (repeatable)
    #[arg(long = "artifact", value_name = "PATH")]
    pub artifacts: Vec<String>,
    /// Fail if this is not the task's open run
    #[arg(long, value_name = "RUN")]
    pub(crate) expected_run: Option<RunId>,
}

impl Verb for Complete {
    verb! {
        "complete": Worker, Write,
        tool(Worker, "Call it once, as the last thing you do: the run ends with it. Name only files that exist as artifacts, with paths from the workspace on.")
        => Bulk
    }

    fn default_to_own(&mut self, own: &TaskId) {
        if self.task_ids.is_empty() {
            self.task_ids.push(own.clone());
        }
    }

    async fn run(self, call: Call) -> Result<Bulk, Failure> {
        if self.task_ids.len() > 1 && (self.summary.is_some() || self.metadata.is_some()) {
            return Err(Failure::usage("one summary or metadata cannot describe several tasks")
                .hint("complete them one by one, or without --summary and --metadata"));
        }
        if self.task_ids.is_empty() {
            return Err(Failure::usage("no task is named"));
        }
        call.refuse_live_without_daemon(&self.task_ids).await?;
        let handoff = Handoff {
            result: self.result,
            summary: self.summary,
            metadata: self.metadata,
            artifacts: self.artifacts,
        };
        handoff_check::require(&call, &handoff).await?;
        let proposed = self.task_ids.first().cloned().map(|id| (id, handoff.clone()));
        let settled = call
            .write(move |board, actor| {
                Bulk::each(board, self.task_ids, |board, id| {
                    let settled = board.complete(id, handoff.clone(), self.expected_run, actor)?;
                    Ok(handed_over(&settled, &handoff))
                })
            })
            .await;
        match (settled, proposed) {
            (Err(refusal), Some((id, handoff))) if refusal.code == Code::Exhausted => {
                // The refused write was rolled back, so the question to a person needs a write of its own.
                call.write_further(move |board, actor| board.ask_for_proposed_tasks(&id, &handoff, actor))
                    .await?;
                Err(refusal.after_a_change())
            }
            (settled, _) => settled,
        }
    }
}

impl Command for Complete {
    fn localize(&mut self, here: &Invocation) -> Result<(), Failure> {
        parse::from_the_workspace(&mut self.artifacts, here);
        parse::own_task_if_none(&mut self.task_ids, here)
    }

    shown!("Completed");
}
