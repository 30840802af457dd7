//! `edit`: changes what a task says.

use std::path::PathBuf;

use kernel::{Task, TaskId};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::texts;
use crate::api::{Audience, Call, Effect, Verb};
use crate::client::Client;
use crate::failure::Failure;
use crate::terminal::Screen;

/// Change what a task says; what is left out stays
#[derive(Clone, Debug, Default, clap::Args, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[command(after_help = "\
Examples:
  supervisor edit t_0123abcd --result 'shipped in 2.1'
  supervisor edit t_0123abcd --title 'fix the parser' --priority 5
  supervisor edit t_0123abcd --body-file task.md")]
pub(crate) struct Edit {
    /// The task
    #[serde(default)]
    pub(crate) task_id: Option<TaskId>,
    /// What is to be done, in a line
    #[arg(long, value_name = "TEXT")]
    #[serde(default)]
    pub(crate) title: Option<String>,
    /// The task itself
    #[arg(long, value_name = "TEXT")]
    #[serde(default)]
    pub(crate) body: Option<String>,
    /// Read the body from a file, or from standard input with `-`
    #[arg(long, value_name = "FILE", conflicts_with = "body")]
    #[serde(skip)]
    pub(crate) body_file: Option<PathBuf>,
    /// Higher goes first
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = texts::priority)]
    #[serde(default)]
    pub(crate) priority: Option<i64>,
    /// Counted failures in a row until the task is blocked
    #[arg(long, value_name = "N")]
    #[serde(default)]
    pub(crate) max_retries: Option<u32>,
    /// The result of a task that is done
    #[arg(long, value_name = "TEXT")]
    #[serde(default)]
    pub(crate) result: Option<String>,
    /// The summary of its last completed run
    #[arg(long, value_name = "TEXT")]
    #[serde(default)]
    pub(crate) summary: Option<String>,
    /// The metadata of its last completed run: a JSON object
    #[arg(long, value_name = "JSON", value_parser = texts::json_object)]
    #[serde(default)]
    pub(crate) metadata: Option<serde_json::Value>,
}

impl Verb for Edit {
    const NAME: &'static str = "edit";
    const AUDIENCE: Audience = Audience::Operator;
    const EFFECT: Effect = Effect::Write;
    type Reply = Task;

    fn localize(&mut self, client: &Client) -> Result<(), Failure> {
        self.task_id = Some(texts::own_task(self.task_id.take(), client)?);
        if let Some(path) = self.body_file.take() {
            self.body = Some(texts::read_text(&path)?);
        }
        Ok(())
    }

    async fn run(self, call: Call) -> Result<Task, Failure> {
        let id = texts::named(self.task_id)?;
        let edit = kernel::Edit {
            title: self.title,
            body: self.body,
            priority: self.priority,
            max_retries: self.max_retries,
            result: self.result,
            summary: self.summary,
            metadata: self.metadata,
        };
        call.write(move |board, actor| board.edit(&id, &edit, actor)).await
    }

    fn show(reply: &Task, screen: &mut Screen) {
        screen.line(format!("Edited {} ({})", reply.id, reply.status));
    }
}
