//! `assign`: says who is to do a task.

use kernel::{Task, TaskId};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::texts;
use crate::api::{Audience, Call, Effect, Scope, Tool, Verb};
use crate::command::Command;
use crate::failure::Failure;
use crate::terminal::Screen;

/// Assign a task to a lane or another worker, or to nobody with `none`
#[derive(Clone, Debug, clap::Args, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[command(after_help = "\
Examples:
  supervisor assign t_0123abcd shell
  supervisor assign t_0123abcd none")]
pub(crate) struct Assign {
    /// The task
    pub(crate) task_id: TaskId,
    /// Who does it, such as the lane `shell`; `none`, `-` or `null` for nobody
    #[arg(value_name = "ASSIGNEE")]
    pub(crate) profile: String,
}

impl Verb for Assign {
    const NAME: &'static str = "assign";
    const AUDIENCE: Audience = Audience::Operator;
    const EFFECT: Effect = Effect::Write;
    const TOOL: Option<Tool> = Some(Tool { scope: Scope::Orchestrator, about: "" });
    type Reply = Task;

    async fn run(self, call: Call) -> Result<Task, Failure> {
        let profile = texts::profile_or_nobody(&self.profile)?;
        call.write(move |board, actor| board.assign(&self.task_id, profile, actor)).await
    }
}

impl Command for Assign {
    fn show(reply: &Task, screen: &mut Screen) {
        let to = reply.assignee.as_ref().map_or_else(|| "nobody".to_owned(), ToString::to_string);
        screen.line(format!("Assigned {} to {to} ({})", reply.id, reply.status));
    }
}
