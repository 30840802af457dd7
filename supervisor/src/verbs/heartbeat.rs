//! `heartbeat`: a worker reports that it is still at work.

use kernel::{Run, TaskId};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::texts;
use crate::api::{Audience, Call, Effect, Scope, Tool, Verb};
use crate::command::Command;
use crate::failure::Failure;
use crate::invocation::Invocation;
use crate::terminal::Screen;

/// Report that work on a task continues
#[derive(Clone, Debug, Default, clap::Args, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[command(after_help = "\
Examples:
  supervisor heartbeat --note 'tests running'       (inside a run)
  supervisor heartbeat t_0123abcd                   (renews an external claim)")]
pub(crate) struct Heartbeat {
    /// The task; inside a run, the run's own task if none is named
    pub(crate) task_id: Option<TaskId>,
    /// What the worker is doing
    #[arg(long, value_name = "TEXT")]
    pub(crate) note: Option<String>,
}

impl Verb for Heartbeat {
    const NAME: &'static str = "heartbeat";
    const AUDIENCE: Audience = Audience::Worker;
    const EFFECT: Effect = Effect::Write;
    const TOOL: Option<Tool> =
        Some(Tool { scope: Scope::Worker, about: "Call it every few minutes during long work." });
    type Reply = Run;

    fn default_to_own(&mut self, own: &TaskId) {
        self.task_id.get_or_insert_with(|| own.clone());
    }

    async fn run(self, call: Call) -> Result<Run, Failure> {
        let id = texts::named(self.task_id)?;
        call.write(move |board, actor| board.heartbeat(&id, self.note.as_deref(), actor)).await
    }
}

impl Command for Heartbeat {
    fn localize(&mut self, here: &Invocation) -> Result<(), Failure> {
        self.task_id = Some(texts::own_task(self.task_id.take(), here)?);
        Ok(())
    }

    fn show(reply: &Run, screen: &mut Screen) {
        screen.line(format!("Heartbeat recorded for {}", reply.task_id));
    }
}
