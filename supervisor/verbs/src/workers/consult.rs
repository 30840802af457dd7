//! `consult`: asks another profile a question, and waits for the answer.

use std::sync::Arc;
use std::time::Duration;

use kernel::{Actor, Board, Limits, NewTask, Profile, Run, Status, Task, TaskId, Tenant};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tokio::time::Instant;

use crate::tasks::obstacles;
use api::command::Command;
use api::{Call, REPLY_TIME, Verb, to_its_end, verb};
use base::exit::Code;
use base::failure::Failure;
use base::terminal::{Screen, printable_lines};
use base::time::duration::WrittenDuration;
use service::BoardHandle;
use setup::roster::CannotRun;

/// Default time to wait for an answer. Clients of tools give up after ten minutes, some of them earlier.
const DEADLINE: &str = "5m";
/// Limit on the timeout of a caller.
const LONGEST: Duration = Duration::from_hours(1);
/// Length of the task's title in characters. The title is the begin of the question.
const TITLE: usize = 100;

/// Ask another profile and wait for its answer
#[derive(Clone, Debug, clap::Args, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[command(after_help = "\
The question is a task of its own, which starts before all others, in a question slot.
Its summary is the answer. A run asks one question at a time; a worker that answers may
ask in turn, and no further.

Exit code: 75 if there is no answer in time. In a run, ask the same again to keep waiting; the
question ends with the run. A person's question is archived.

Examples:
  supervisor consult analyst 'which index would this query use?'
  supervisor consult analyst 'is the plan sound?' --timeout 2m --json")]
pub struct Consult {
    /// The profile or lane to ask
    pub profile: Profile,
    /// The question: the body of the task
    pub question: String,
    /// Time to wait, up to 1h, and no longer than the caller's own run
    #[arg(long, value_name = "DURATION", default_value = DEADLINE)]
    #[serde(default = "deadline")]
    pub timeout: WrittenDuration,
    /// The tenant of the question; a worker's is its own
    #[arg(long, value_name = "NAME", env = "SUPERVISOR_TENANT")]
    #[serde(default)]
    pub tenant: Option<Tenant>,
}

fn deadline() -> WrittenDuration {
    DEADLINE.parse().unwrap_or_else(|_| unreachable!("a literal span parses"))
}

/// Reply: the answer, and the task of the question.
#[derive(Debug, Serialize, Deserialize)]
pub struct ConsultReply {
    pub task_id: TaskId,
    /// The summary of the run that answered.
    pub answer: String,
}

impl Verb for Consult {
    verb! {
        "consult": Worker, Write,
        tool(Worker, "It returns the answer, possibly after minutes; after 5 minutes without one, ask the same question again to keep waiting. Ask for what you need to continue; delegate work with kanban_create."),
        hang_up(Ends)
        => ConsultReply
    }

    fn answered_within(&self) -> Duration {
        REPLY_TIME + self.timeout.duration().min(LONGEST)
    }

    fn longest(&self) -> Duration {
        self.answered_within()
    }

    async fn run(self, call: Call) -> Result<ConsultReply, Failure> {
        let start = Instant::now();
        if self.question.trim().is_empty() {
            return Err(Failure::usage("the question is empty").hint("say what you want to know"));
        }
        if call.service.daemon().is_none() {
            return Err(Failure::new(Code::Unreachable, "no daemon is running, so nobody would answer")
                .hint("start one with: supervisor daemon"));
        }
        match call.service.roster().resolve(&self.profile, None, &call.service.config()) {
            // External workers may claim the question in time.
            Err(CannotRun::Pull { .. }) => {}
            Ok(_) => {
                if let Some(why) = obstacles::unrunnable(&self.profile, None, None, &call).await? {
                    return Err(Failure::new(Code::Conflict, format!("nobody would answer: {why}")));
                }
            }
            Err(why) => return Err(why.of_what_was_named()),
        }
        let wait = self.timeout.duration();
        if wait.is_zero() {
            return Err(Failure::usage("the timeout is zero").hint("use --timeout 5m"));
        }
        if wait > LONGEST {
            return Err(Failure::usage("the timeout is longer than 1h")
                .hint("use --timeout 1h at most; asking the same question again continues the wait"));
        }
        let is_of_run = call.actor.run.is_some();
        // The subscription to changes comes before the creation of the task, so that no change is missed.
        let mut news = call.board()?.changes();
        let new = NewTask {
            title: title(&self.question),
            body: Some(self.question),
            assignee: Some(self.profile),
            tenant: self.tenant,
            // A run may repeat its request and get the answer then, so the task of its question may run longer than this
            // wait. The task of a person's question is archived after the wait.
            limits: Limits {
                max_runtime: Some(if is_of_run { LONGEST } else { wait }),
                max_retries: Some(1),
                ..Limits::default()
            },
            ..NewTask::default()
        };
        let service = Arc::clone(&call.service);
        let asking = async move {
            let made = call.write(move |board, actor| Ok(board.consult(new, actor)?.task)).await;
            let id = match made {
                Err(refusal) if refusal.code == Code::Exhausted => {
                    call.write_further(|board, actor| board.ask_for_more_tasks(actor)).await?;
                    return Err(refusal.after_a_change());
                }
                made => made?.id,
            };
            let asked = OpenQuestion {
                board: Arc::clone(call.board()?),
                actor: call.actor.clone(),
                id: Some(id.clone()),
            };
            Ok((call, id, asked))
        };
        // A client may hang up during the creation. The creation still finishes, and the returned guard archives the task,
        // since no client knows its id.
        let (call, id, mut asked) = to_its_end(&service, "nobody was asked", asking).await?;
        let until = start + wait;
        loop {
            news.mark_unchanged();
            let read = id.clone();
            let (task, completed) = call
                .read(move |view| Ok((view.expect_task(&read)?, view.last_completed_run(&read)?)))
                .await?;
            let is_archived = task.status == Status::Archived;
            if let Some(answer) = answered(task, completed) {
                asked.id = None;
                if answer.is_err() && !is_archived {
                    // A run can have one open question. A question without an answer is dropped, so that the run can ask
                    // another one. A person's question stays visible.
                    let given_up = id.clone();
                    let drop_of_run = move |board: &mut Board<'_>, actor: &Actor| match actor.run {
                        Some(_) => board.drop_consult(&given_up, actor),
                        None => Ok(()),
                    };
                    call.write_further(drop_of_run).await?;
                }
                return answer;
            }
            if call.board()?.is_closing() || Instant::now() >= until {
                let hint = if is_of_run {
                    "its task goes on as long as this run: ask the same question again to keep waiting, or continue without the answer"
                } else {
                    let given_up = id.clone();
                    call.write_further(move |board, actor| board.drop_consult(&given_up, actor)).await?;
                    asked.id = None;
                    "its task is archived; go on without the answer, or ask again with a longer --timeout"
                };
                let late = format!("{id} has no answer after {} s", wait.as_secs());
                return Err(Failure::new(Code::TryAgain, late).hint(hint));
            }
            // Cancel-safe: if the timeout wins, the next iteration reads the board again.
            tokio::select! {
                changed = news.changed() => drop(changed),
                () = tokio::time::sleep_until(until) => {}
            }
        }
    }
}

/// Guard that archives a person's question when the client disconnects. The question of a run ends with the run, because
/// the run may repeat its request.
struct OpenQuestion {
    board: Arc<BoardHandle>,
    actor: Actor,
    /// None if the question need not be archived.
    id: Option<TaskId>,
}

impl Drop for OpenQuestion {
    fn drop(&mut self) {
        let Some(id) = self.id.take().filter(|_| self.actor.run.is_none()) else { return };
        let Ok(writer) = self.board.writer() else { return };
        let actor = self.actor.clone();
        let question = id.clone();
        writer.submit(
            move |board| board.drop_consult(&id, &actor),
            move |dropped| {
                if let Err(error) = dropped {
                    tracing::debug!(task = %question, %error, "question_not_dropped");
                }
            },
        );
    }
}

/// Returns the answer to a question, or the failure if there will be none; none while its task goes on.
fn answered(task: Task, completed: Option<Run>) -> Option<Result<ConsultReply, Failure>> {
    let none = |what: String| {
        let hint = format!("see what happened: supervisor show {}", task.id);
        let failure =
            Failure::new(Code::Conflict, format!("{} was not answered: {what}", task.id)).hint(hint);
        // The failure reports a change: the question's task exists and may have run.
        Some(Err(failure.after_a_change()))
    };
    match task.status {
        Status::Done => {
            let answer = completed.and_then(|run| run.summary).or(task.result).unwrap_or_default();
            Some(Ok(ConsultReply { task_id: task.id, answer }))
        }
        Status::Blocked => none(format!("it is blocked ({})", task.block_reason.clone().unwrap_or_default())),
        Status::Archived => none("it was archived".to_owned()),
        Status::Triage => none("it was sent to triage".to_owned()),
        Status::Todo | Status::Scheduled | Status::Ready | Status::Running | Status::Review => None,
    }
}

/// Returns the first line of a question, cut to the length of a title.
fn title(question: &str) -> String {
    let line = question.trim().lines().next().unwrap_or_default();
    let line: String = line.chars().map(|c| if c.is_control() { ' ' } else { c }).take(TITLE).collect();
    line.trim().to_owned()
}

impl Command for Consult {
    fn show(reply: &ConsultReply, screen: &mut Screen) {
        screen.line(printable_lines(&reply.answer));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_title_of_a_question_is_its_first_line() {
        assert_eq!(title("  which\tone?\nthis or that"), "which one?");
        assert_eq!(title(&"x".repeat(500)).len(), TITLE);
        assert_eq!(title("\n"), "");
    }
}
