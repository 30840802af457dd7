//! `approve`: a person or worker other than the author confirms the work.

use kernel::{RunId, Status, TaskId, Tenant};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::tasks::bulk::{Bulk, outcome, shown};
use crate::views::parse;
use api::command::Command;
use api::{Call, Verb, not_for_members, verb};
use base::failure::Failure;
use base::invocation::Invocation;
use base::terminal::printable;

/// Approve work in review, or tasks that wait for approval
#[derive(Clone, Debug, Default, clap::Args, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[command(after_help = "\
Work in review is then done; nobody can approve their own. A task created with
--require-approval continues; only its approver can approve it.

Examples:
  supervisor approve t_0123abcd
  supervisor approve t_0123abcd 'read every line, ran the tests'
  supervisor approve t_0123abcd 'she is away' --override
  supervisor approve t_0123abcd --ids t_4567cdef t_89abcdef
  supervisor approve 'ran the tests'            (inside a review)")]
pub struct Approve {
    /// The task, then a comment; inside a review the task may be left out
    #[arg(value_name = "TASK/COMMENT", num_args = 0..)]
    #[serde(skip)]
    pub words: Vec<String>,
    /// The task; inside a review, the task under review if none is named
    #[arg(skip)]
    pub task_id: Option<TaskId>,
    /// A comment, kept with the task.
    #[arg(skip)]
    pub comment: Option<String>,
    /// More tasks
    #[arg(long, value_name = "TASK", num_args = 1..)]
    pub ids: Vec<TaskId>,
    /// Approve in place of the named approver; the event log records it
    #[arg(long = "override", conflicts_with = "expected_run")]
    pub override_approver: bool,
    /// Fail if this is not the task's open run
    #[arg(long, value_name = "RUN")]
    pub expected_run: Option<RunId>,
}

impl Verb for Approve {
    verb! { "approve": Worker, Write, members, tool(Reviewer, "It ends the review.") => Bulk }

    fn default_to_own(&mut self, own: &TaskId) {
        if self.ids.is_empty() {
            self.task_id.get_or_insert_with(|| own.clone());
        }
    }

    fn confine(&mut self, _tenant: &Tenant) -> Result<(), Failure> {
        if self.override_approver { Err(not_for_members("--override")) } else { Ok(()) }
    }

    async fn run(self, call: Call) -> Result<Bulk, Failure> {
        let ids: Vec<TaskId> = self.task_id.into_iter().chain(self.ids).collect();
        if ids.is_empty() {
            return Err(Failure::usage("no task is named"));
        }
        call.refuse_live_without_daemon(&ids).await?;
        call.write(move |board, actor| {
            Bulk::each(board, ids, |board, id| {
                if self.override_approver {
                    return board
                        .override_approval(id, self.comment.as_deref(), actor)
                        .map(|settled| outcome(&settled));
                }
                let settled = board.approve(id, self.comment.as_deref(), self.expected_run, actor)?;
                let (status, note) = outcome(&settled);
                // The work is done, so it can be merged.
                let merge = settled.task.branch_note.as_deref().filter(|_| status == Status::Done);
                Ok((status, note.or_else(|| merge.map(printable))))
            })
        })
        .await
    }
}

impl Command for Approve {
    fn localize(&mut self, here: &Invocation) -> Result<(), Failure> {
        let words = std::mem::take(&mut self.words);
        let (task, comment) = parse::task_and_text(words, !self.ids.is_empty(), here)?;
        (self.task_id, self.comment) = (task.or(self.task_id.take()), comment.or(self.comment.take()));
        Ok(())
    }

    shown!("Approved");
}
