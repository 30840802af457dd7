//! `unarchive`: restores archived tasks.

use std::sync::Arc;

use kernel::{Status, TaskId};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::bulk::{Bulk, shown};
use super::selection::{FLAGS, Matching, on_tasks};
use api::command::Command;
use api::{Audience, Call, Effect, Verb};
use base::failure::Failure;

/// Bring archived tasks back
#[derive(Clone, Debug, Default, clap::Args, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[command(after_help = "\
A task gets back the state it had when it was archived: done, blocked, in triage, in
review, or queued. A task that was running is queued. Unlinked children stay
unlinked. A scratch workspace is created anew for the next run.

Examples:
  supervisor unarchive t_0123abcd
  supervisor unarchive t_0123abcd t_4567cdef --json
  supervisor unarchive --tenant acme --since 1h --dry-run")]
pub struct Unarchive {
    /// The tasks
    #[arg(value_name = "TASK", required_unless_present_any = FLAGS, conflicts_with_all = FLAGS)]
    pub task_ids: Vec<TaskId>,
    #[command(flatten)]
    #[serde(skip)]
    pub matching: Matching,
}

on_tasks!(Unarchive, Archived);

impl Verb for Unarchive {
    const NAME: &'static str = "unarchive";
    const AUDIENCE: Audience = Audience::Operator;
    const EFFECT: Effect = Effect::Write;
    const MEMBERS: bool = true;
    type Reply = Bulk;

    async fn run(self, call: Call) -> Result<Bulk, Failure> {
        let (service, handle) = (Arc::clone(&call.service), Arc::clone(call.board()?));
        call.write(move |board, actor| {
            Bulk::each(board, self.task_ids, |board, id| {
                let task = board.unarchive(id, actor)?;
                // Only the daemon writes to the directory of workspaces, so a missing path means that the workspace was
                // removed.
                let place = service.root().workspaces(handle.name()).join(id.as_str());
                let gone = task.workspace.is_scratch() && task.started_at.is_some() && !place.exists();
                Ok((task.status, gone.then(|| lost(task.status))))
            })
        })
        .await
    }
}

impl Command for Unarchive {
    shown!("Unarchived");
}

/// Returns the note about a scratch workspace that was removed when its task was archived.
fn lost(status: Status) -> String {
    let gone = "its scratch workspace was removed when it was archived";
    if status == Status::Done { gone.to_owned() } else { format!("{gone}: the next run gets a new one") }
}
