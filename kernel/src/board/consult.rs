//! Questions to another profile, whose answer somebody waits for: tasks that start beside the run that asks.

use super::Board;
use super::archive::Detach;
use super::create::Created;
use crate::board::view::View;
use crate::model::actor::Actor;
use crate::model::candidate::{Accounts, Candidate};
use crate::model::error::Error;
use crate::model::id::{RunId, TaskId};
use crate::model::task::NewTask;
use crate::rules::{admission, mission};

/// How many questions are offered at once; the next look finds the others.
const OFFERED: u32 = 64;

impl Board<'_> {
    /// Makes the task of a question. A run asks one at a time, and questions are asked two deep.
    pub fn consult(&mut self, mut new: NewTask, actor: &Actor) -> Result<Created, Error> {
        let above = match self.live_run(actor)? {
            Some(run) => {
                if let Some(open) = self.tx.open_consults(run.id)?.first() {
                    return Err(Error::conflict(
                        format!("run {} waits for the answer of {open} already", run.id),
                        "wait for that answer, then ask again",
                    ));
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

    /// Archives the task of a question that its asker no longer waits for; its run is ended first.
    pub fn drop_consult(&mut self, id: &TaskId, actor: &Actor) -> Result<(), Error> {
        let task = self.task_for(id, actor)?;
        let is_own = task.lineage.consult.is_some()
            && task.creator_task == actor.run.as_ref().map(|own| own.task.clone());
        if !is_own {
            return Err(Error::forbidden(
                format!("{id} is no question of this caller's"),
                "nothing was done",
            ));
        }
        if task.is_done() {
            return Ok(());
        }
        self.archive(id, Detach::Unlink, &Actor::system()).map(drop)
    }

    /// Archives the questions of a run that is over: nobody waits for their answers.
    pub(super) fn drop_consults_of(&mut self, run: RunId) -> Result<(), Error> {
        for id in self.tx.open_consults(run)? {
            match self.attempt(|board| board.archive(&id, Detach::Unlink, &Actor::system()).map(drop)) {
                // One that is being decided about ends by itself.
                Ok(()) | Err(Error::Conflict { .. } | Error::Illegal { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

impl View<'_> {
    /// Returns the tasks of questions that may start, oldest first: they are started before all others, for somebody waits for
    /// each. Those that somebody holds are not among them.
    pub fn consults(&self, accounts: &Accounts) -> Result<Vec<Candidate>, Error> {
        let ready = self.tx.ready_consults(OFFERED)?;
        if ready.is_empty() {
            return Ok(ready);
        }
        Ok(admission::not_held(ready, self.holds()?, accounts, self.now()))
    }
}
