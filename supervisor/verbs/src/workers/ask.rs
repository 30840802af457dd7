//! `ask`: a worker asks a person, and its task waits for the answer.

use kernel::{ApprovalClass, TaskId};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::block::Block;
use crate::tasks::bulk::{Bulk, outcome, shown};
use crate::views::parse;
use api::command::Command;
use api::{Call, Verb, verb};
use base::failure::Failure;
use base::invocation::Invocation;

/// The answer to a worker whose action needs no approval.
const ALLOWED: &str = "the configuration allows it: go on";

/// Ask a person a question and block the task until it is answered
#[derive(Clone, Debug, clap::Args, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[command(after_help = "\
The same as `block --question`; with --class, `approve` and `deny` answer it. The next run of the task reads the answer, which a person
gives with `supervisor answer`.

Examples:
  supervisor ask 'which one?' --choice PostgreSQL --choice SQLite (in a run)
  supervisor ask 'buy the ticket for 420 USD?' --class spend     (in a run)
  supervisor ask 'which colour?' --task t_0123abcd")]
pub struct Ask {
    /// The question
    pub question: String,
    /// An answer to choose from (repeatable, up to 6)
    #[arg(long = "choice", value_name = "TEXT")]
    #[serde(default)]
    pub choices: Vec<String>,
    /// Accept other answers too
    #[arg(long)]
    #[serde(default)]
    pub free_text: bool,
    /// Ask for the approval of something of this class: `spend`, `book`, `send_as_me`, `destructive`, or a class of `[approvals]`
    #[arg(long, value_name = "CLASS", conflicts_with_all = ["choices", "free_text"])]
    #[serde(default)]
    pub class: Option<ApprovalClass>,
    /// The task; inside a run, the run's own task if none is named
    #[arg(long = "task", value_name = "TASK")]
    #[serde(default)]
    pub task_id: Option<TaskId>,
}

impl Verb for Ask {
    verb! {
        "ask": Worker, Write,
        tool(Worker, "A person answers, which may take long: the call ends the run, and the next run reads the answer.")
        => Bulk
    }

    fn default_to_own(&mut self, own: &TaskId) {
        self.task_id.get_or_insert_with(|| own.clone());
    }

    async fn run(self, call: Call) -> Result<Bulk, Failure> {
        let Ask { question, choices, free_text, class, task_id } = self;
        let task_id = Some(parse::named(task_id)?);
        if let Some(class) = class {
            if free_text || !choices.is_empty() {
                return Err(Failure::usage("an approval has no other answers than yes and no")
                    .hint("leave out the choices and free_text, or the class"));
            }
            return call
                .write(move |board, actor| {
                    Bulk::each(board, task_id, |board, id| {
                        let settled = board.ask_approval(id, &class, &question, actor)?;
                        let (status, note) = outcome(&settled);
                        let allowed = settled.run.is_none().then(|| ALLOWED.to_owned());
                        Ok((status, allowed.or(note)))
                    })
                })
                .await;
        }
        Block { task_id, question: Some(question), choices, free_text, ..Block::default() }.run(call).await
    }
}

impl Command for Ask {
    fn localize(&mut self, here: &Invocation) -> Result<(), Failure> {
        parse::default_to_own_task(&mut self.task_id, here)
    }

    shown!("Asked for");
}
