//! `request-changes`: sends work in review back to the queue with the changes that the reviewer requests.

use kernel::{RunId, TaskId};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::line_comment::{self, LineComment};
use crate::tasks::bulk::{Bulk, outcome, shown};
use crate::views::parse;
use api::command::Command;
use api::{Call, Verb, verb};
use base::failure::Failure;
use base::invocation::Invocation;

/// Send work in review back for changes
#[derive(Clone, Debug, Default, clap::Args, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[command(after_help = "\
The task returns to the queue, and its next worker reads the reason and the comments, each as
PATH:LINE: TEXT.

Examples:
  supervisor request-changes t_0123abcd 'the parser has no tests'
  supervisor request-changes t_0123abcd 'too long' --comment 'a.rs:12: split'
  supervisor request-changes 'the parser has no tests'      (inside a review)")]
pub struct RequestChanges {
    /// The task, then what has to change; inside a review the task may be left out
    #[arg(value_name = "TASK/REASON", num_args = 1..)]
    #[serde(skip)]
    pub words: Vec<String>,
    /// The task; inside a review, the task under review if none is named
    #[arg(skip)]
    pub task_id: Option<TaskId>,
    #[arg(skip)]
    pub reason: Option<String>,
    /// A change to make in a line of a file (repeatable); the reason may then be left out
    #[arg(long = "comment", value_name = "PATH:LINE:TEXT")]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub comments: Vec<LineComment>,
    /// Fail if this is not the task's open run
    #[arg(long, value_name = "RUN")]
    pub expected_run: Option<RunId>,
}

impl Verb for RequestChanges {
    verb! {
        "request-changes": Worker, Write,
        members,
        tool(Reviewer, "The review ends with it, and the next worker reads the reason.")
        => Bulk
    }

    fn default_to_own(&mut self, own: &TaskId) {
        self.task_id.get_or_insert_with(|| own.clone());
    }

    async fn run(self, call: Call) -> Result<Bulk, Failure> {
        let id = parse::named(self.task_id)?;
        let reason = line_comment::joined(self.reason, &self.comments)?.ok_or_else(|| {
            Failure::usage("it does not say what has to change")
                .hint("supervisor request-changes <task> '<what has to change>'")
        })?;
        call.refuse_live_without_daemon(std::slice::from_ref(&id)).await?;
        call.write(move |board, actor| {
            Bulk::each(board, [id], |board, id| {
                board.request_changes(id, &reason, self.expected_run, actor).map(|settled| outcome(&settled))
            })
        })
        .await
    }
}

impl Command for RequestChanges {
    fn localize(&mut self, here: &Invocation) -> Result<(), Failure> {
        let words = std::mem::take(&mut self.words);
        let (task, reason) = parse::task_and_text(words, false, here)?;
        (self.task_id, self.reason) = (task, reason);
        Ok(())
    }

    shown!("Sent back");
}
