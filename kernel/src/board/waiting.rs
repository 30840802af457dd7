//! Reads the reasons why tasks wait, with a few queries for any number of tasks.

use std::collections::BTreeMap;

use super::view::View;
use crate::model::candidate::Accounts;
use crate::model::error::Error;
use crate::model::id::TaskId;
use crate::model::status::Status;
use crate::model::task::Task;
use crate::model::waiting::Waiting;
use crate::rules::waiting::{WaitingFacts, of_task};

impl View<'_> {
    /// Returns the reason why a task waits, as far as the board knows it; none when it could run or is over.
    pub fn waiting(&self, id: &TaskId) -> Result<Option<Waiting>, Error> {
        Ok(self.waiting_all(std::slice::from_ref(&self.expect_task(id)?), &Accounts::new())?.pop().flatten())
    }

    /// Returns the reasons why these tasks wait, in their order, with a few queries for all. `accounts` has the profiles
    /// that share the limits of an account.
    pub fn waiting_all(&self, tasks: &[Task], accounts: &Accounts) -> Result<Vec<Option<Waiting>>, Error> {
        let known = self.known(tasks, accounts)?;
        Ok(tasks.iter().map(|task| of_task(task, &known, self.now())).collect())
    }

    fn known<'a>(&self, tasks: &[Task], accounts: &'a Accounts) -> Result<WaitingFacts<'a>, Error> {
        let with = |statuses: &[Status]| -> Vec<&TaskId> {
            tasks.iter().filter(|task| statuses.contains(&task.status)).map(|task| &task.id).collect()
        };
        let mut known = WaitingFacts {
            parents: BTreeMap::new(),
            nonspawnable: BTreeMap::new(),
            ending: BTreeMap::new(),
            limited: BTreeMap::new(),
            blocked: BTreeMap::new(),
            holds: self.holds()?,
            accounts,
        };
        let (waiting, spawnable, running) =
            (with(&[Status::Todo]), with(&[Status::Ready, Status::Review]), with(&[Status::Running]));
        if !waiting.is_empty() {
            self.tx.each_open_parent(&waiting, |open| {
                known.parents.entry(open.child).or_default().add(&open.parent, open.status, &open.title);
            })?;
        }
        if !spawnable.is_empty() {
            known.nonspawnable = self.tx.nonspawnable_of(&spawnable)?;
        }
        let scheduled = with(&[Status::Scheduled]);
        if !scheduled.is_empty() {
            known.limited = self.tx.limited_of(&scheduled)?.into_iter().collect();
        }
        let triage = with(&[Status::Triage]);
        if !triage.is_empty() {
            known.blocked = self.tx.blocked_of(&triage)?.into_iter().collect();
        }
        if !running.is_empty() {
            known.ending = self.tx.ending_runs_of(&running)?.into_iter().collect();
        }
        Ok(known)
    }
}
