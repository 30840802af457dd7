//! What one caller may see, and what waits on a board.

use crate::actor::Actor;
use crate::authority;
use crate::error::Error;
use crate::filter::Filter;
use crate::id::TaskId;
use crate::status::Status;
use crate::task::Task;
use crate::view::View;

/// The statuses in which a task waits, the most pressing first.
const WAITING: [Status; 6] =
    [Status::Blocked, Status::Review, Status::Scheduled, Status::Todo, Status::Triage, Status::Ready];

impl View<'_> {
    /// Returns a task as a caller may see it: to a worker whose run has ended, and to one of another tenant, it does
    /// not exist.
    pub fn task_for(&self, id: &TaskId, actor: &Actor) -> Result<Task, Error> {
        authority::live_run(self, actor)?;
        let task = self.expect_task(id)?;
        authority::may_see(actor, &task)?;
        Ok(task)
    }

    /// Returns at most `limit` tasks that are neither running nor over.
    pub fn waiting_tasks(&self, limit: u32) -> Result<Vec<Task>, Error> {
        let mut found = Vec::new();
        for status in WAITING {
            let left = limit.saturating_sub(u32::try_from(found.len()).unwrap_or(u32::MAX));
            if left == 0 {
                break;
            }
            let filter = Filter { status: Some(status), limit: left, ..Filter::default() };
            found.extend(self.tasks(&filter)?.tasks);
        }
        Ok(found)
    }
}
