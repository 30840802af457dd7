//! Consults: questions of a worker to another profile. Their tasks start while the asking run waits.

use super::Board;
use super::archive::Detach;
use super::create::Created;
use crate::board::view::View;
use crate::model::actor::Actor;
use crate::model::candidate::{Accounts, Candidate};
use crate::model::error::Error;
use crate::model::id::{RunId, TaskId};
use crate::model::status::Status;
use crate::model::task::{NewTask, Task};
use crate::model::verdict::Verdict;
use crate::rules::{admission, mission};

/// Number of consults that are read at once.
const PAGE: usize = 64;

impl Board<'_> {
    /// Makes the task of a consult. A run that repeats its question gets the existing task and waits on. A run asks one
    /// question at a time, so another question replaces the earlier one. Consults are at most two deep.
    pub fn consult(&mut self, mut new: NewTask, actor: &Actor) -> Result<Created, Error> {
        let above = match self.live_run(actor)? {
            Some(run) => {
                for open in self.tx.open_consults(run.id)? {
                    let task = self.expect_task(&open)?;
                    let is_same =
                        task.assignee == new.assignee && task.body == new.body && task.title == new.title;
                    if is_same && !self.is_given_up(&task)? {
                        return Ok(Created { task, existing: true });
                    }
                    self.give_up(&open)?;
                }
                self.expect_task(&run.task_id)?.lineage.consult.unwrap_or_default()
            }
            None => 0,
        };
        let deep = above.saturating_add(1);
        mission::consult_depth(deep)?;
        new.lineage.consult = Some(deep);
        self.create(new, actor)
    }

    /// Archives the task of a consult that its asker no longer waits for. Its run is ended first.
    pub fn drop_consult(&mut self, id: &TaskId, actor: &Actor) -> Result<(), Error> {
        let task = self.task_for(id, actor)?;
        let is_own = task.lineage.consult.is_some()
            && task.creator_task == actor.run.as_ref().map(|own| own.task.clone());
        if !is_own {
            return Err(Error::forbidden(
                format!("{id} is not a question of this caller"),
                "nothing was done",
            ));
        }
        if task.is_done() {
            return Ok(());
        }
        self.archive(id, Detach::Unlink, &Actor::system()).map(drop)
    }

    /// Archives the consults of a finished run, because their answers have no reader.
    pub(super) fn drop_consults_of(&mut self, run: RunId) -> Result<(), Error> {
        self.tx.open_consults(run)?.iter().try_for_each(|id| self.give_up(id))
    }

    /// Archives the task of a consult. Its run is ended first.
    fn give_up(&mut self, id: &TaskId) -> Result<(), Error> {
        match self.attempt(|board| board.archive(id, Detach::Unlink, &Actor::system()).map(drop)) {
            // A consult whose verdict is recorded ends without help.
            Ok(()) | Err(Error::Conflict { .. } | Error::Illegal { .. }) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Returns true if a consult will have no answer: it is blocked, or being archived.
    fn is_given_up(&self, task: &Task) -> Result<bool, Error> {
        let run = task.current_run_id.map(|run| self.expect_run(run)).transpose()?;
        let is_archived = run.is_some_and(|run| matches!(run.verdict, Some(Verdict::Archive { .. })));
        Ok(is_archived || matches!(task.status, Status::Blocked | Status::Triage))
    }
}

impl View<'_> {
    /// Offers the consults that may start, oldest first. The daemon starts them before all other tasks, because a worker
    /// waits for each. Consults under a hold are left out. All others are offered, so that a consult without a lane on this
    /// host does not prevent the start of others.
    pub fn consults(&self, accounts: &Accounts, mut offer: impl FnMut(Candidate)) -> Result<(), Error> {
        let mut after = None;
        loop {
            let page = self.tx.ready_consults(after.as_ref(), PAGE)?;
            let is_last = page.len() < PAGE;
            after = page.last().cloned();
            if after.is_some() {
                let ready = admission::not_held(page, self.holds()?, accounts, self.now());
                ready.into_iter().for_each(&mut offer);
            }
            if is_last {
                return Ok(());
            }
        }
    }
}
