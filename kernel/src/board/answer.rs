//! Answers to the questions of workers and missions.
//!
//! Every display of a question names `answer` and the first task of a mission. `retry` refuses a task with an open
//! question unless a reason says what has changed, so that no run starts without its answer by mistake.

use serde_json::json;

use super::Board;
use crate::model::actor::Actor;
use crate::model::error::Error;
use crate::model::event::EventKind;
use crate::model::id::TaskId;
use crate::model::limits;
use crate::model::outcome::BlockKind;
use crate::model::task::Task;
use crate::model::verdict::Question;

/// Result of an answer.
#[derive(Clone, Debug, PartialEq)]
pub struct Answered {
    /// The task after the answer.
    pub task: Task,
    /// Answer that the reply means.
    pub answer: String,
}

impl Board<'_> {
    /// Answers the question of a blocked task and unblocks it. A comment keeps the answer for the next worker.
    pub fn answer(&mut self, id: &TaskId, reply: &str, actor: &Actor) -> Result<Answered, Error> {
        let task = self.for_person(id, actor, "answer a question")?;
        limits::bytes("answer", reply, limits::SUMMARY)?;
        // A task without a question of its own may stand for a mission that asks.
        if (task.block_kind != Some(BlockKind::NeedsInput) || task.is_cancelled())
            && let Some(answered) = self.answer_mission(&task, reply, actor)?
        {
            return Ok(answered);
        }
        if task.block_kind != Some(BlockKind::NeedsInput) || task.is_cancelled() {
            let what = match task.block_kind {
                _ if task.is_cancelled() => "it was cancelled".to_owned(),
                Some(kind) => format!("it is blocked ({kind})"),
                None => format!("its status is {}", task.status),
            };
            let hint = match (self.asking_mission_of(&task)?, task.block_kind) {
                (Some(answer), _) => format!("its mission asks: `{answer}`"),
                (None, _) if task.is_cancelled() => format!("let it run again: `supervisor retry {id}`"),
                (None, Some(BlockKind::Approval)) => format!("approve or deny it: `supervisor approve {id}`"),
                (None, Some(_)) => format!("let it go on: `supervisor unblock {id} --reason '…'`"),
                (None, None) => format!("comment on it: `supervisor comment {id} '…'`"),
            };
            return Err(Error::conflict(format!("{id} has no open question: {what}"), hint));
        }
        let question = task.question.clone().unwrap_or_else(|| Question {
            text: task.block_reason.clone().unwrap_or_default(),
            ..Question::default()
        });
        let Some(answer) = question.resolve(reply) else { return Err(no_such_choice(&question, reply)) };
        let number = question.choices.iter().position(|choice| *choice == answer).map(|at| at + 1);
        let text = match question.text.trim() {
            "" => answer.clone(),
            asked => format!("{asked}\nAnswer: {answer}"),
        };
        self.comment(id, &text, None, actor)?;
        let payload = json!({ "answer": answer, "choice": number });
        self.append(&task, None, EventKind::Answered, payload, &actor.label())?;
        Ok(Answered { task: self.unblock(id, None, actor)?, answer })
    }
}

pub(super) fn no_such_choice(question: &Question, reply: &str) -> Error {
    if reply.trim().is_empty() {
        return Error::invalid("answer", "it is empty", "say something");
    }
    let listed = question.choices.iter().enumerate();
    let listed: Vec<String> = listed.map(|(at, choice)| format!("{}: {choice}", at + 1)).collect();
    Error::invalid("answer", format!("`{reply}` is none of the choices"), listed.join(", "))
}

/// Refuses a question that a person could not answer.
pub(super) fn validate(question: &Question, kind: BlockKind) -> Result<(), Error> {
    if kind != BlockKind::NeedsInput {
        return Err(Error::invalid(
            "question",
            format!("a block of the kind {kind} asks nothing"),
            "use the kind needs_input",
        ));
    }
    limits::filled("question", &question.text, "ask something")?;
    limits::bytes("question", &question.text, limits::SUMMARY)?;
    let count = question.choices.len();
    if count > Question::CHOICES {
        let most = Question::CHOICES;
        return Err(Error::invalid(
            "choices",
            format!("{count} of them, the limit is {most}"),
            "offer fewer",
        ));
    }
    for (at, choice) in question.choices.iter().enumerate() {
        limits::bytes("choices", choice, limits::WORD)?;
        if choice.trim().is_empty() || choice.chars().any(char::is_control) {
            return Err(Error::invalid(
                "choices",
                "one is empty or has more than one line",
                "use a few words",
            ));
        }
        if question.choices[..at].iter().any(|other| other.to_lowercase() == choice.to_lowercase()) {
            return Err(Error::invalid("choices", format!("`{choice}` is given twice"), "offer each once"));
        }
    }
    Ok(())
}
