//! Messages to the agents of live runs. A message is stored before it is sent, and every stored message reaches one of two
//! final states: delivered, or not delivered with a reason.

use serde_json::json;

use super::{Board, SYSTEM, preview};
use crate::model::actor::{Actor, ActorKind};
use crate::model::error::Error;
use crate::model::event::EventKind;
use crate::model::id::{CommentId, RunId, TaskId};
use crate::model::limits;
use crate::model::message::{Message, MessageNews, MessageState};
use crate::model::note::Comment;
use crate::model::run::Run;
use crate::model::status::Status;
use crate::model::task::Task;
use crate::rules::authority;

/// Reason of a message that was not delivered before the end of its run.
const RUN_ENDED: &str = "the run ended before its agent had read it";

impl Board<'_> {
    /// Queues a message to the agent of a task's open run.
    ///
    /// # Errors
    /// [`Error::Conflict`] if no agent can take the message; the message is then not stored.
    pub fn steer(&mut self, id: &TaskId, body: &str, actor: &Actor) -> Result<Message, Error> {
        let task = self.task_for(id, actor)?;
        authority::person(actor, "send messages to the agent of a run")?;
        limits::filled("message", body, "say something")?;
        limits::bytes("message", body, limits::COMMENT)?;
        let run = self.message_receiver(&task)?.map_err(|why| {
            let hint = match task.status {
                Status::Done => format!("reopen the task with it: `supervisor reopen {id} --reason '…'`"),
                Status::Archived => format!("bring the task back first: `supervisor unarchive {id}`"),
                Status::Triage
                | Status::Todo
                | Status::Scheduled
                | Status::Ready
                | Status::Running
                | Status::Review
                | Status::Blocked => {
                    format!("leave it as a comment, which the next run of the task reads: `supervisor comment {id} '…'`")
                }
            };
            Error::conflict(format!("the message to {id} was not delivered: {why}"), hint)
        })?;
        self.queue_message(&task, &run, body, None, actor)
    }

    /// Queues a person's comment as a message to the agent of the open run, if the agent takes messages.
    pub(super) fn forward_to_agent(&self, task: &Task, comment: &Comment) -> Result<(), Error> {
        if comment.author_kind != ActorKind::Person {
            return Ok(());
        }
        match self.message_receiver(task)? {
            Ok(run) => {
                let text = format!("A comment by {} on your task:\n\n{}", comment.author, comment.body);
                let person = Actor::person(comment.author.clone());
                self.queue_message(task, &run, &text, Some(comment.id), &person).map(drop)
            }
            // The next run reads the comment in its context.
            Err(_) => Ok(()),
        }
    }

    /// Returns the open run of a task if its agent can take another message, else the reason why it cannot. The outer error
    /// is a failed read.
    fn message_receiver(&self, task: &Task) -> Result<Result<Run, String>, Error> {
        let Some(id) = task.current_run_id else {
            return Ok(Err(format!("it has no agent at work, its status is {}", task.status)));
        };
        let run = self.expect_run(id)?;
        if run.verdict.is_some() || run.stop_reason.is_some() {
            return Ok(Err(format!("run {id} is ending")));
        }
        if !self.tx.takes_messages(id)? {
            return Ok(Err(format!("the agent of run {id} takes no messages: its lane has no `session`")));
        }
        let sent = self.tx.count_messages(id)?;
        if sent >= limits::MESSAGES {
            return Ok(Err(format!("{sent} messages were sent to run {id}, which is the limit")));
        }
        Ok(Ok(run))
    }

    fn queue_message(
        &self,
        task: &Task,
        run: &Run,
        body: &str,
        comment: Option<CommentId>,
        actor: &Actor,
    ) -> Result<Message, Error> {
        let now = self.now();
        let message = Message {
            run_id: run.id,
            number: self.tx.count_messages(run.id)? + 1,
            task_id: task.id.clone(),
            author: actor.name.clone(),
            body: body.to_owned(),
            comment_id: comment,
            state: MessageState::Queued,
            reason: None,
            created_at: now,
            changed_at: now,
        };
        self.tx.insert_message(&message)?;
        let payload = json!({
            "message": message.number, "by": actor.name, "len": body.len(), "text": preview(Some(body)), "comment": comment,
        });
        self.append(task, Some(run.id), EventKind::MessageQueued, payload, &actor.label())?;
        Ok(message)
    }

    /// Records the states of messages to a run, as its processes report them. A report of the same or an earlier state
    /// changes nothing, so reports can be repeated.
    pub fn record_messages(&mut self, run: RunId, news: &[MessageNews]) -> Result<(), Error> {
        let run = self.expect_run(run)?;
        for one in news {
            self.settle_message(&run, one)?;
        }
        Ok(())
    }

    fn settle_message(&self, run: &Run, news: &MessageNews) -> Result<(), Error> {
        let Some(message) = self.tx.find_message(run.id, news.number)? else { return Ok(()) };
        let kind = match (message.state, news.state) {
            (MessageState::Queued, MessageState::Written) => EventKind::MessageWritten,
            (MessageState::Queued | MessageState::Written, MessageState::Delivered) => {
                EventKind::MessageDelivered
            }
            (MessageState::Queued | MessageState::Written, MessageState::NotDelivered) => {
                EventKind::MessageNotDelivered
            }
            (MessageState::Delivered | MessageState::NotDelivered, _)
            | (_, MessageState::Queued)
            | (MessageState::Written, MessageState::Written) => return Ok(()),
        };
        self.tx.set_message(run.id, news, self.now())?;
        let task = self.expect_task(&run.task_id)?;
        let payload = match &news.reason {
            Some(reason) => json!({ "message": news.number, "reason": reason }),
            None => json!({ "message": news.number }),
        };
        self.append(&task, Some(run.id), kind, payload, SYSTEM)
    }

    /// Marks the messages that the agent has not received as not delivered, because the run has ended.
    pub(super) fn drop_messages(&self, run: &Run) -> Result<(), Error> {
        for message in self.tx.queued_messages(run.id)? {
            let (state, reason) = (MessageState::NotDelivered, Some(RUN_ENDED.to_owned()));
            self.settle_message(run, &MessageNews { number: message.number, state, reason })?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Bench, alice, start};
    use crate::{EndCause, Start};

    /// Returns a task whose open run takes messages.
    fn listening(bench: &Bench) -> (TaskId, RunId) {
        let id = bench.ready();
        let start = Start { takes_messages: true, ..start(&*bench.clock) };
        let task = id.clone();
        let run = bench.call(move |board| board.start_run(&task, start)).unwrap().id;
        (id, run)
    }

    fn steer(bench: &Bench, id: &TaskId, text: &'static str) -> Result<Message, Error> {
        let id = id.clone();
        bench.call(move |board| board.steer(&id, text, &alice()))
    }

    fn states(bench: &Bench, id: &TaskId) -> Vec<(u32, MessageState)> {
        let messages = bench.readers.with(|view| view.messages(id, 10)).unwrap();
        messages.iter().map(|message| (message.number, message.state)).collect()
    }

    fn news(number: u32, state: MessageState) -> MessageNews {
        let reason = (state == MessageState::NotDelivered).then(|| "why".to_owned());
        MessageNews { number, state, reason }
    }

    #[test]
    fn a_message_waits_on_the_board_and_never_goes_back() {
        let bench = Bench::new();
        let (id, run) = listening(&bench);
        assert_eq!(steer(&bench, &id, "first").unwrap().number, 1);
        assert_eq!(steer(&bench, &id, "second").unwrap().number, 2);
        let queued = bench.readers.with(|view| view.queued_messages(run)).unwrap();
        let texts: Vec<_> = queued.iter().map(|message| message.body.as_str()).collect();
        assert_eq!(texts, ["first", "second"]);
        let records = [
            news(1, MessageState::Written),
            news(1, MessageState::Delivered),
            news(1, MessageState::Written),
            news(1, MessageState::NotDelivered),
            news(7, MessageState::Delivered),
        ];
        bench.call(move |board| board.record_messages(run, &records)).unwrap();
        assert_eq!(states(&bench, &id), [(1, MessageState::Delivered), (2, MessageState::Queued)]);
        bench.check();
    }

    #[test]
    fn the_end_of_a_run_says_of_each_message_what_became_of_it() {
        let bench = Bench::new();
        let (id, run) = listening(&bench);
        for text in ["written", "queued"] {
            steer(&bench, &id, text).unwrap();
        }
        bench.call(move |board| board.record_messages(run, &[news(1, MessageState::Written)])).unwrap();
        bench.finish(run, EndCause::Exited { code: 1 });
        assert_eq!(states(&bench, &id), [(1, MessageState::Written), (2, MessageState::NotDelivered)]);
        let last = bench.readers.with(|view| view.messages(&id, 1)).unwrap();
        assert_eq!(last[0].reason.as_deref(), Some(RUN_ENDED));
    }

    #[test]
    fn who_cannot_be_reached_is_said_with_what_to_do() {
        let bench = Bench::new();
        let idle = bench.ready();
        let refused = |id: &TaskId| {
            let error = steer(&bench, id, "x").unwrap_err();
            assert!(error.hint().unwrap_or_default().contains("supervisor comment"), "{error}");
            error.to_string()
        };
        assert!(refused(&idle).contains("was not delivered: it has no agent at work, its status is ready"));
        bench.start(&idle);
        assert!(refused(&idle).contains("takes no messages"));
        let (id, run) = listening(&bench);
        let task = id.clone();
        bench.call(move |board| board.reclaim(&task, None, &alice()).map(drop)).unwrap();
        assert!(refused(&id).contains(&format!("run {run} is ending")));
        assert!(bench.readers.with(|view| view.messages(&id, 1)).unwrap().is_empty());
    }

    #[test]
    fn comments_of_people_reach_the_agent_and_those_of_workers_do_not() {
        let bench = Bench::new();
        let (id, run) = listening(&bench);
        let (task, worker) = (id.clone(), Actor::worker("bob", run, id.clone(), None));
        bench
            .call(move |board| {
                board.comment(&task, "look at the tests", None, &alice())?;
                board.comment(&task, "I do", None, &worker)?;
                board.comment(&task, "noted", None, &Actor::system())
            })
            .unwrap();
        let messages = bench.readers.with(|view| view.messages(&id, 10)).unwrap();
        assert_eq!(messages.len(), 1);
        assert_eq!(messages[0].body, "A comment by alice on your task:\n\nlook at the tests");
        assert!(messages[0].comment_id.is_some());
    }

    #[test]
    fn a_run_takes_a_bounded_number_of_messages() {
        let bench = Bench::new();
        let (id, _) = listening(&bench);
        let task = id.clone();
        bench
            .call(move |board| {
                (0..limits::MESSAGES).try_for_each(|_| board.steer(&task, "x", &alice()).map(drop))
            })
            .unwrap();
        assert!(steer(&bench, &id, "x").unwrap_err().to_string().contains("which is the limit"));
    }
}
