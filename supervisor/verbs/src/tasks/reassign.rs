//! `reassign`: gives a task, also a running one, to another assignee.

use kernel::TaskId;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::views::parse;
use api::command::Command;
use api::{Call, Verb, verb};
use base::failure::Failure;
use base::terminal::Screen;

/// Change the assignee of a task; --reclaim ends its worker first
#[derive(Clone, Debug, clap::Args, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[command(after_help = "\
Examples:
  supervisor reassign t_0123abcd shell
  supervisor reassign t_0123abcd shell --reclaim --reason 'wrong lane'")]
pub struct Reassign {
    /// The task
    pub task_id: TaskId,
    /// The new assignee, such as the lane `shell`; `none`, `-` or `null` removes the assignee
    #[arg(value_name = "ASSIGNEE")]
    pub profile: String,
    /// End its worker first, if it has one
    #[arg(long)]
    #[serde(default)]
    pub reclaim: bool,
    /// The reason; kept with the run it ends, else as a comment
    #[arg(long, value_name = "TEXT")]
    #[serde(default)]
    pub reason: Option<String>,
}

#[derive(Debug, Serialize, Deserialize)]
pub struct Reassigned {
    pub task_id: TaskId,
    pub assignee: Option<kernel::Profile>,
    pub status: kernel::Status,
    /// Says which changes are still to come.
    pub note: Option<String>,
}

impl Verb for Reassign {
    verb! { "reassign": Operator, Write, members => Reassigned }

    async fn run(self, call: Call) -> Result<Reassigned, Failure> {
        let profile = parse::profile_or_nobody(&self.profile)?;
        if self.reclaim {
            call.refuse_live_without_daemon(std::slice::from_ref(&self.task_id)).await?;
        }
        call.write(move |board, actor| {
            let running = board.expect_task(&self.task_id)?.current_run_id.is_some();
            let note = if self.reclaim && running {
                super::bulk::outcome(&board.reclaim(&self.task_id, self.reason.as_deref(), actor)?).1
            } else {
                // No run ends here, so the reason becomes a comment.
                if let Some(reason) = &self.reason {
                    board.comment(&self.task_id, &format!("REASSIGNED: {reason}"), None, actor)?;
                }
                None
            };
            let task = board.assign(&self.task_id, profile, actor)?;
            Ok(Reassigned { task_id: task.id, assignee: task.assignee, status: task.status, note })
        })
        .await
    }
}

impl Command for Reassign {
    fn show(reply: &Reassigned, screen: &mut Screen) {
        let to = reply.assignee.as_ref().map_or_else(|| "nobody".to_owned(), ToString::to_string);
        let note = reply.note.as_deref().map(|note| format!(": {note}")).unwrap_or_default();
        screen.line(format!("Reassigned {} to {to} ({}){note}", reply.task_id, reply.status));
    }
}
