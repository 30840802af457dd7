//! Comments, heartbeats, notes, and events of runs that the supervisor itself observes.

use std::time::Duration;

use serde_json::{Value, json};

use super::charge::Cost;
use super::{Board, no_open_run, way_on};
use crate::model::actor::{Actor, ActorKind};
use crate::model::error::Error;
use crate::model::event::EventKind;
use crate::model::id::{RunId, TaskId};
use crate::model::limits;
use crate::model::note::Comment;
use crate::model::outcome::{Denied, Egress};
use crate::model::quota::Bound;
use crate::model::run::Run;
use crate::model::status::Status;
use crate::model::straggler::Straggler;
use crate::rules::authority;
use crate::store::fields::Field;

/// Smallest interval between the events of heartbeats without a note. The board stores the time of each heartbeat, but
/// the log would grow with every one.
const HEARTBEAT_EVENTS: Duration = Duration::from_mins(1);

impl Board<'_> {
    /// Adds a comment, and forwards it to the agent of the task's open run. `author` replaces the name of a person; the
    /// author of a worker's comment is always the worker's own name.
    pub fn comment(
        &mut self,
        id: &TaskId,
        body: &str,
        author: Option<&str>,
        actor: &Actor,
    ) -> Result<Comment, Error> {
        self.charge(actor, Cost::one(Bound::Comments).text([body]))?;
        let comment = self.add_comment(id, body, author, actor)?;
        let task = self.expect_task(id)?;
        self.forward_to_agent(&task, &comment)?;
        Ok(comment)
    }

    /// Adds a comment that belongs to a verdict or a decision, without a charge.
    pub(super) fn add_comment(
        &mut self,
        id: &TaskId,
        body: &str,
        author: Option<&str>,
        actor: &Actor,
    ) -> Result<Comment, Error> {
        let task = self.task_for(id, actor)?;
        limits::filled("comment", body, "say something")?;
        limits::bytes("comment", body, limits::COMMENT)?;
        author.map_or(Ok(()), |author| limits::line("author", author, limits::WORD))?;
        // Contexts show the author inside backticks, so the name must not end them.
        if author
            .is_some_and(|author| author.is_empty() || author.chars().any(|c| c.is_control() || c == '`'))
        {
            return Err(Error::invalid(
                "author",
                "it is empty or has control characters or backticks",
                "use a name",
            ));
        }
        let author = match actor.kind {
            ActorKind::Worker => actor.name.as_str(),
            ActorKind::Person | ActorKind::System => author.unwrap_or(&actor.name),
        };
        let run = actor.run.as_ref().map(|own| own.run);
        let now = self.now();
        let comment = self.tx.insert_comment(id, author, actor.kind, body, run, now)?;
        let payload = json!({ "author": author, "len": body.len(), "comment": comment });
        self.append(&task, run, EventKind::Commented, payload, &actor.label())?;
        Ok(Comment {
            id: comment,
            task_id: id.clone(),
            author: author.to_owned(),
            author_kind: actor.kind,
            body: body.to_owned(),
            created_at: now,
            run_id: run,
        })
    }

    /// Records that the worker of an open run met a limit of the API. Does nothing for a run that has ended.
    pub fn note_throttled(&mut self, run: RunId, bound: &str) -> Result<(), Error> {
        self.note_of_run(run, EventKind::Throttled, json!({ "bound": bound }))
    }

    /// Records, once per run, that SIGKILL does not end processes of an open run. Returns true if this call recorded it.
    /// Does nothing for a run that has ended.
    pub fn note_unkillable(&mut self, run: RunId, processes: &[Straggler]) -> Result<bool, Error> {
        if self.expect_run(run)?.ended_at.is_some() || self.is_unkillable(run)? {
            return Ok(false);
        }
        self.note_of_run(run, EventKind::Unkillable, json!({ "processes": processes }))?;
        Ok(true)
    }

    /// Records a host that the proxy of an open run refused to its worker. Does nothing for a run that has ended.
    pub fn note_egress_denied(&mut self, run: RunId, denied: &Denied, host: &str) -> Result<(), Error> {
        let Denied { policy, line, text, .. } = denied;
        let payload = json!({ "host": host, "policy": policy, "line": line, "text": text });
        self.note_of_run(run, EventKind::EgressDenied, payload)
    }

    /// Records the traffic through the proxy of an open run. Does nothing for a run that has ended.
    pub fn note_egress(&mut self, run: RunId, egress: &Egress) -> Result<(), Error> {
        self.note_of_run(run, EventKind::Egress, json!(egress))
    }

    /// Appends an event about an open run that the supervisor observed. Does nothing for a run that has ended.
    pub(super) fn note_of_run(&mut self, run: RunId, kind: EventKind, payload: Value) -> Result<(), Error> {
        let run = self.expect_run(run)?;
        if run.ended_at.is_some() {
            return Ok(());
        }
        let task = self.expect_task(&run.task_id)?;
        self.append(&task, Some(run.id), kind, payload, &Actor::system().label())
    }

    /// Adds the reason of a move as a comment of the form `WORD: reason`, which readers of Hermes Kanban know. Does nothing
    /// for a blank reason.
    pub(super) fn keep_reason(
        &mut self,
        id: &TaskId,
        word: &str,
        reason: Option<&str>,
        actor: &Actor,
    ) -> Result<(), Error> {
        match reason.filter(|reason| !reason.trim().is_empty()) {
            Some(reason) => self.add_comment(id, &format!("{word}: {reason}"), None, actor).map(drop),
            None => Ok(()),
        }
    }

    /// Stores notes with a task for its next run, in place of earlier notes. They belong to a verdict, so they are not
    /// charged.
    pub fn keep_notes(&mut self, id: &TaskId, notes: &str, actor: &Actor) -> Result<(), Error> {
        let task = self.task_for(id, actor)?;
        authority::own_task(actor, id, task.current_run_id)?;
        limits::filled("notes", notes, "say something")?;
        limits::bytes("notes", notes, limits::SUMMARY)?;
        self.set(id, &Field::Notes(notes))
    }

    /// Records a heartbeat of the open run, which renews an external claim. Only a note is charged.
    pub fn heartbeat(&mut self, id: &TaskId, note: Option<&str>, actor: &Actor) -> Result<Run, Error> {
        let task = self.task_for(id, actor)?;
        authority::own_task(actor, id, task.current_run_id)?;
        limits::maybe("note", note, limits::WORD)?;
        let Some(run) = task.current_run_id else {
            return Err(no_open_run(
                &task,
                if task.status == Status::Ready {
                    format!("claim it first: `supervisor claim {id}`")
                } else {
                    way_on(id, task.status, task.block_kind)
                },
            ));
        };
        if let Some(note) = note {
            self.charge(actor, Cost::one(Bound::Notes).text([note]))?;
        }
        let before = self.expect_run(run)?;
        let now = self.now();
        if !self.tx.record_heartbeat(run, now, self.clock.boottime())? {
            return Err(Error::conflict(format!("run {run} has ended"), "nothing was done"));
        }
        let silent = before.last_heartbeat_at.is_none_or(|last| now.since(last) >= HEARTBEAT_EVENTS);
        if note.is_some() || silent {
            let payload = note.map(|note| json!({ "note": note }));
            self.append(&task, Some(run), EventKind::Heartbeat, payload, &actor.label())?;
        }
        self.expect_run(run)
    }
}
