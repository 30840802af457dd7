//! `reclaim`: takes a task back from its worker.

use kernel::TaskId;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::bulk::pending;
use api::command::Command;
use api::{Call, Verb, verb};
use base::failure::Failure;
use base::terminal::Screen;

/// Take a running task back from its worker
#[derive(Clone, Debug, clap::Args, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[command(after_help = "\
The worker is ended first; the task is ready again when nothing of the run is left.
If it is unknown which processes survive, those that carry the run's mark are ended,
and the task is freed when none is left. One that has shed the mark is not seen.

Examples:
  supervisor reclaim t_0123abcd --reason 'wrong branch'")]
pub struct Reclaim {
    /// The task
    pub task_id: TaskId,
    /// The reason; kept with the event
    #[arg(long, value_name = "TEXT")]
    #[serde(default)]
    pub reason: Option<String>,
}

#[derive(Debug, Serialize, Deserialize)]
pub struct Reclaimed {
    pub task_id: TaskId,
    pub status: kernel::Status,
    pub note: Option<String>,
}

impl Verb for Reclaim {
    verb! { "reclaim": Operator, Write => Reclaimed }

    async fn run(self, call: Call) -> Result<Reclaimed, Failure> {
        call.refuse_live_without_daemon(std::slice::from_ref(&self.task_id)).await?;
        call.write(move |board, actor| {
            let settled = board.reclaim(&self.task_id, self.reason.as_deref(), actor)?;
            Ok(Reclaimed {
                task_id: settled.task.id.clone(),
                status: settled.task.status,
                note: pending(settled.effect),
            })
        })
        .await
    }
}

impl Command for Reclaim {
    fn show(reply: &Reclaimed, screen: &mut Screen) {
        let note = reply.note.as_deref().map(|note| format!(": {note}")).unwrap_or_default();
        screen.line(format!("Reclaimed {} ({}){note}", reply.task_id, reply.status));
    }
}
