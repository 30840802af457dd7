//! `heartbeat`: a worker reports that it is still at work.

use kernel::{Holder, Run, TaskId};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use shim::rundir::RunDir;

use crate::views::parse;
use api::command::Command;
use api::{Call, Verb, blocking, verb};
use base::failure::Failure;
use base::invocation::Invocation;
use base::terminal::Screen;

/// Report that work on a task continues
#[derive(Clone, Debug, Default, clap::Args, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[command(after_help = "\
Examples:
  supervisor heartbeat --note 'tests running'       (inside a run)
  supervisor heartbeat t_0123abcd                   (renews an external claim)")]
pub struct Heartbeat {
    /// The task; inside a run, the run's own task if none is named
    pub task_id: Option<TaskId>,
    /// The present work of the worker, in a few words
    #[arg(long, value_name = "TEXT")]
    pub note: Option<String>,
}

impl Verb for Heartbeat {
    verb! { "heartbeat": Worker, Write, tool(Worker, "Call it every few minutes during long work.") => Run }

    fn default_to_own(&mut self, own: &TaskId) {
        self.task_id.get_or_insert_with(|| own.clone());
    }

    async fn run(self, call: Call) -> Result<Run, Failure> {
        let id = parse::named(self.task_id)?;
        let run = call.write(move |board, actor| board.heartbeat(&id, self.note.as_deref(), actor)).await?;
        if run.holder == Holder::Supervisor {
            note_for_shim(&call, &run).await?;
        }
        Ok(run)
    }
}

/// Notes the heartbeat for the shim of a run. A failure is only logged: the board has the heartbeat, and the next one
/// is noted again.
async fn note_for_shim(call: &Call, run: &Run) -> Result<(), Failure> {
    let dir = call.service.root().run_dir(call.board_name(), run.id);
    let noted = blocking("the heartbeat could not be noted", move || RunDir::note_heartbeat(&dir)).await?;
    if let Err(error) = noted {
        tracing::warn!(task = %run.task_id, run = %run.id, %error, "heartbeat_not_noted");
    }
    Ok(())
}

impl Command for Heartbeat {
    fn localize(&mut self, here: &Invocation) -> Result<(), Failure> {
        parse::default_to_own_task(&mut self.task_id, here)
    }

    fn show(reply: &Run, screen: &mut Screen) {
        screen.line(format!("Heartbeat recorded for {}", reply.task_id));
    }
}
