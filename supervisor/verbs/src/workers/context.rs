//! `context`: returns the text that a worker gets about its task.

use kernel::{ContextLimits, TaskId};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::attachments::list::{place_of, provide_files};
use crate::views::parse;
use api::command::Command;
use api::{Call, Verb, verb};
use base::failure::Failure;
use base::invocation::Invocation;
use base::terminal::{Screen, printable_lines};

/// Show the context that a task's worker gets
#[derive(Clone, Debug, Default, clap::Args, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[command(after_help = "\
Examples:
  supervisor context t_0123abcd
  supervisor context             (inside a run: the run's own task)")]
pub struct Context {
    /// The task; inside a run, the run's own task if none is named
    pub task_id: Option<TaskId>,
}

/// The text of the context, and the names of the parts that did not fit.
#[derive(Debug, Serialize, Deserialize)]
pub struct Contextual {
    pub task_id: TaskId,
    pub text: String,
    pub omitted: Vec<String>,
}

impl Verb for Context {
    verb! { "context": Worker, Read, members => Contextual }

    async fn run(self, call: Call) -> Result<Contextual, Failure> {
        let id = parse::named(self.task_id)?;
        let actor = call.actor.clone();
        // Files attached after the start of the run are copied to the paths that the context names.
        provide_files(&call, &id).await?;
        let place = place_of(&call)?;
        call.read(move |view| {
            view.task_for(&id, &actor)?;
            let context = view.context(&id, ContextLimits::default(), &place)?;
            Ok(Contextual { task_id: id, text: context.text, omitted: context.omitted })
        })
        .await
    }
}

impl Command for Context {
    fn localize(&mut self, here: &Invocation) -> Result<(), Failure> {
        parse::default_to_own_task(&mut self.task_id, here)
    }

    fn show(reply: &Contextual, screen: &mut Screen) {
        screen.line(printable_lines(reply.text.trim_end()));
    }
}
