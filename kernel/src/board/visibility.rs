//! Visibility: the tasks that a caller may see, and the waiting tasks of a board.

use std::collections::BTreeMap;

use crate::board::view::View;
use crate::model::actor::Actor;
use crate::model::error::Error;
use crate::model::filter::Filter;
use crate::model::id::{Profile, TaskId, Tenant};
use crate::model::run::Run;
use crate::model::status::Status;
use crate::model::task::Task;
use crate::rules::authority;

/// Statuses of waiting tasks, the most urgent first.
const WAITING: [Status; 6] =
    [Status::Blocked, Status::Review, Status::Scheduled, Status::Todo, Status::Triage, Status::Ready];

impl View<'_> {
    /// Refuses a worker whose run has ended; returns the run of any other worker.
    pub(crate) fn live_run(&self, actor: &Actor) -> Result<Option<Run>, Error> {
        let Some(reference) = authority::spoken_for(actor)? else { return Ok(None) };
        authority::live(reference, self.run(reference.run)?).map(Some)
    }

    /// Returns a task that the caller may see. A worker whose run has ended is refused, and a task of another tenant does
    /// not exist for the caller.
    pub fn task_for(&self, id: &TaskId, actor: &Actor) -> Result<Task, Error> {
        self.live_run(actor)?;
        let task = self.expect_task(id)?;
        authority::may_see(actor, &task)?;
        Ok(task)
    }

    /// Returns at most `limit` tasks that are neither running nor over, of one tenant and assignee or of all.
    pub fn waiting_tasks(
        &self,
        tenant: Option<&Tenant>,
        assignee: Option<&Profile>,
        limit: u32,
    ) -> Result<Vec<Task>, Error> {
        let mut visible_tasks = Vec::new();
        for status in WAITING {
            let remaining = limit.saturating_sub(u32::try_from(visible_tasks.len()).unwrap_or(u32::MAX));
            if remaining == 0 {
                break;
            }
            let filter = Filter {
                statuses: vec![status],
                tenant: tenant.cloned(),
                assignee: assignee.cloned(),
                limit: remaining,
                ..Filter::default()
            };
            visible_tasks.extend(self.tasks(&filter)?.tasks);
        }
        Ok(visible_tasks)
    }
}

/// Returns the number of tasks that are neither running nor over.
pub fn waiting_count(counts: &BTreeMap<Status, i64>) -> i64 {
    WAITING.iter().filter_map(|status| counts.get(status)).sum()
}
