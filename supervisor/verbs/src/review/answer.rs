//! `answer`: answers the question of a blocked task and unblocks the task.

use kernel::{Task, TaskId};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::views::parse;
use api::command::Command;
use api::{Call, Verb, verb};
use base::failure::Failure;
use base::terminal::{Screen, printable};

/// Answer a blocked task's question and unblock the task
#[derive(Clone, Debug, Default, clap::Args, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[command(after_help = "\
Without an answer, a terminal shows the question and takes the arrow keys or a number.
The answer is kept as a comment for the next worker.

Examples:
  supervisor answer t_0123abcd
  supervisor answer t_0123abcd 2
  supervisor answer t_0123abcd 'use PostgreSQL'")]
pub struct Answer {
    /// The task
    #[arg(value_name = "TASK", required = true)]
    pub task_id: Option<TaskId>,
    /// The number or text of a choice, or other words if the question allows them
    #[arg(value_name = "ANSWER", num_args = 0..)]
    #[serde(skip)]
    pub words: Vec<String>,
    /// The number or text of a choice, or other words if the question allows them.
    #[arg(skip)]
    #[serde(rename = "answer")]
    pub reply: Option<String>,
}

/// The reply: the answer in words, and the task.
#[derive(Debug, Serialize, Deserialize)]
pub struct AnswerReply {
    #[serde(flatten)]
    pub task: Task,
    pub answer: String,
}

impl Verb for Answer {
    verb! { "answer": Operator, Write, members => AnswerReply }

    async fn run(self, call: Call) -> Result<AnswerReply, Failure> {
        let id = parse::named(self.task_id)?;
        let answer = self.reply.ok_or_else(|| {
            Failure::usage("no answer is given").hint(format!("supervisor answer {id} '<answer>'"))
        })?;
        call.write(move |board, actor| {
            let answered = board.answer(&id, &answer, actor)?;
            Ok(AnswerReply { task: answered.task, answer: answered.answer })
        })
        .await
    }
}

impl Command for Answer {
    fn show(reply: &AnswerReply, screen: &mut Screen) {
        let task = &reply.task;
        screen.line(format!("Answered {} ({}): {}", task.id, task.status, printable(&reply.answer)));
    }
}
