//! `block`: a task cannot go on until a person or worker acts.

use kernel::{BlockKind, Blocking, Question, RunId, TaskId};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::tasks::bulk::{Bulk, outcome, shown};
use crate::views::parse;
use api::command::Command;
use api::{Call, Verb, verb};
use base::failure::Failure;
use base::invocation::Invocation;

/// Limit on the named tasks that a task waits for.
const NAMED: usize = 5;

/// Block a task and say why
#[derive(Clone, Debug, Default, clap::Args, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[command(after_help = "\
Inside a run, `--kind dependency` makes the task wait for the tasks that its runs
have created and that are not finished. Its next run gets their results.

Examples:
  supervisor block t_0123abcd 'which database should it use?' --kind needs_input
  supervisor block t_0123abcd --question 'which database?' --choice PostgreSQL \\
      --choice SQLite --free-text
  supervisor block t_0123abcd 'waiting for the release' \\
      --ids t_4567cdef t_89abcdef
  supervisor block 'need a decision'   (inside a run: the run's own task)
  supervisor block --kind dependency --notes 'merge what they find' (in a run)")]
pub struct Block {
    /// The task, then the reason; inside a run the task may be left out
    #[arg(value_name = "TASK/REASON", num_args = 0..)]
    #[serde(skip)]
    pub words: Vec<String>,
    /// The task; inside a run, the run's own task if none is named
    #[arg(skip)]
    pub task_id: Option<TaskId>,
    /// The reason: why the work cannot continue
    #[arg(skip)]
    pub reason: Option<String>,
    /// More tasks to block with the same reason
    #[arg(long, value_name = "TASK", num_args = 1..)]
    pub ids: Vec<TaskId>,
    /// Kind of the reason
    #[arg(long, value_name = "KIND", value_parser = parse::word::<BlockKind>(BlockKind::TOLD.map(BlockKind::as_str)))]
    pub kind: Option<BlockKind>,
    /// The question for a person; the kind is `needs_input`
    #[arg(long, value_name = "TEXT")]
    pub question: Option<String>,
    /// An answer to choose from (repeatable, up to 6)
    #[arg(long = "choice", value_name = "TEXT")]
    pub choices: Vec<String>,
    /// Accept other answers too
    #[arg(long)]
    pub free_text: bool,
    /// Notes for the next run of the task; they replace earlier notes
    #[arg(long, value_name = "TEXT")]
    pub notes: Option<String>,
    /// Fail if this is not the task's open run
    #[arg(long, value_name = "RUN")]
    pub(crate) expected_run: Option<RunId>,
}

impl Verb for Block {
    verb! {
        "block": Worker, Write,
        members,
        tool(Worker, "Call it when you cannot continue without somebody else; it ends the run. A question with choices is answered fastest.")
        => Bulk
    }

    fn default_to_own(&mut self, own: &TaskId) {
        self.task_id.get_or_insert_with(|| own.clone());
    }

    async fn run(self, call: Call) -> Result<Bulk, Failure> {
        let kind = self.kind.unwrap_or(BlockKind::NeedsInput);
        let asks = self.question.is_some() || !self.choices.is_empty() || self.free_text;
        let text = self.question.or_else(|| self.reason.clone().filter(|_| asks));
        let question = match text.filter(|_| asks) {
            Some(text) => Some(Question {
                text,
                choices: self.choices,
                free_text: self.free_text,
                ..Question::default()
            }),
            None if asks => {
                return Err(Failure::usage("answers are given, but no question")
                    .hint("supervisor block <task> --question '<question>' --choice A --choice B"));
            }
            None => None,
        };
        let blocking = Blocking { kind, reason: self.reason, question, ..Blocking::default() };
        let ids: Vec<TaskId> = self.task_id.into_iter().chain(self.ids).collect();
        call.refuse_live_without_daemon(&ids).await?;
        call.write(move |board, actor| {
            Bulk::each(board, ids, |board, id| {
                if let Some(notes) = &self.notes {
                    board.keep_notes(id, notes, actor)?;
                }
                let settled = board.block(id, blocking.clone(), self.expected_run, actor)?;
                let (status, note) = outcome(&settled);
                let waits = match kind {
                    BlockKind::Dependency => {
                        Some(waits_for(id, &board.open_parents(id)?, board.goes_on_by_itself(id)?))
                    }
                    BlockKind::NeedsInput
                    | BlockKind::Capability
                    | BlockKind::Transient
                    | BlockKind::Approval
                    | BlockKind::Budget
                    | BlockKind::GaveUp => None,
                };
                Ok((
                    status,
                    [note, waits].into_iter().flatten().reduce(|note, waits| format!("{note}; {waits}")),
                ))
            })
        })
        .await
    }
}

impl Command for Block {
    fn localize(&mut self, here: &Invocation) -> Result<(), Failure> {
        let mut words = std::mem::take(&mut self.words);
        if let Some(first) = words.first() {
            match (parse::task_or_text(first, here), here.worker()) {
                (Ok(id), _) => {
                    self.task_id = Some(id);
                    words.remove(0);
                }
                (Err(_), Some(worker)) => self.task_id = Some(worker.task.clone()),
                (Err(e), None) => return Err(Failure::usage(e.to_string())),
            }
        } else if let Some(worker) = here.worker() {
            self.task_id = Some(worker.task.clone());
        }
        if !words.is_empty() {
            self.reason = Some(words.join(" "));
        }
        if self.task_id.is_none() && self.ids.is_empty() {
            return Err(Failure::usage("no task is named").hint("supervisor block <task> '<reason>'"));
        }
        Ok(())
    }

    shown!("Blocked");
}

/// Returns the note on a task that waits for others: their ids, or that all are done, or that none is named.
fn waits_for(id: &TaskId, open: &[TaskId], goes_on: bool) -> String {
    if !open.is_empty() {
        let named: Vec<&str> = open.iter().take(NAMED).map(TaskId::as_str).collect();
        let more = open.len().saturating_sub(NAMED);
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        return format!("it goes on after {}{more}", named.join(", "));
    }
    if goes_on {
        return "what it waits for is done, so its next run begins at once".to_owned();
    }
    format!(
        "no open parent is linked, so it waits for a person: `supervisor link <parent> {id}` adds a parent, \
         `supervisor unblock {id}` unblocks it"
    )
}
