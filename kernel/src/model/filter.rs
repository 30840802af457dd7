//! Filters for lists of tasks and events: selection, order and page.

use crate::model::clock::Timestamp;
use crate::model::id::{EventId, Profile, TaskId, Tenant};
use crate::model::limits::REPLY_TO_PERSON;
use crate::model::status::Status;
use crate::model::task::Task;
use crate::model::words::words;

words! {
    /// Order of a list of tasks.
    "sort"
    Sort {
        /// Greatest priority first, then oldest.
        Priority => "priority",
        /// Greatest priority first, then oldest.
        PriorityDesc => "priority-desc",
        /// Oldest first.
        Created => "created",
        /// Newest first.
        CreatedDesc => "created-desc",
        /// By status; within a status, as by priority.
        Status => "status",
        /// By assignee; of one assignee, as by priority.
        Assignee => "assignee",
        Title => "title",
        /// Latest change first.
        Updated => "updated",
    }
}

words! {
    /// Visibility of archived tasks in a list.
    "archived"
    Archived {
        /// Archived tasks are left out.
        Hide => "hide",
        /// Archived tasks are listed with the others.
        Show => "show",
    }
}

/// Selection of tasks. The default selects the first 200 that are not archived.
#[derive(Clone, Debug)]
pub struct Filter {
    /// Only tasks of this assignee.
    pub assignee: Option<Profile>,
    /// Only tasks in one of these statuses; empty means any. `archived` in the list shows archived tasks.
    pub statuses: Vec<Status>,
    /// Only tasks with this text in the title or the body. Case matters only for letters outside of ASCII.
    pub search: Option<String>,
    /// Only tasks that have changed at this time or later.
    pub since: Option<Timestamp>,
    /// Only tasks of this tenant.
    pub tenant: Option<Tenant>,
    /// Visibility of archived tasks.
    pub archived: Archived,
    /// Only tasks of this client session.
    pub session: Option<String>,
    /// Only tasks of this client workflow.
    pub workflow: Option<String>,
    /// Only tasks at this client step.
    pub step: Option<String>,
    /// Order of the list.
    pub sort: Sort,
    /// Largest number of tasks, 1 to 10000.
    pub limit: u32,
    /// Cursor of the previous page, after which this page starts.
    pub cursor: Option<String>,
    /// Largest size of the texts of a page, in bytes. A page has at least one task, even if its texts are larger.
    pub bytes: usize,
}

impl Default for Filter {
    fn default() -> Self {
        Self {
            assignee: None,
            statuses: Vec::new(),
            search: None,
            since: None,
            tenant: None,
            archived: Archived::Hide,
            session: None,
            workflow: None,
            step: None,
            sort: Sort::Priority,
            limit: 200,
            cursor: None,
            bytes: REPLY_TO_PERSON,
        }
    }
}

/// Page of the tasks that a filter selects.
#[derive(Clone, Debug)]
pub struct Page {
    /// Tasks in the filter's order, at most as many as it asks for.
    pub tasks: Vec<Task>,
    /// Cursor of the next page; none when this page is the last.
    pub next: Option<String>,
}

/// Selection of events, oldest first. The default selects the first 1000 of all.
#[derive(Clone, Debug)]
pub struct EventFilter {
    /// Only events after this id.
    pub since: EventId,
    /// Largest number of events.
    pub limit: u32,
    /// Only events of this task.
    pub task: Option<TaskId>,
    /// Only events of this tenant.
    pub tenant: Option<Tenant>,
    /// Only events of these kinds; empty means all.
    pub kinds: Vec<String>,
    /// Only events of tasks that are assigned to this profile now.
    pub assignee: Option<Profile>,
    /// True to keep the newest events, not the oldest, when there are more than the limit. The order stays the same.
    pub newest_first: bool,
    /// Largest size of the payloads of a list, in bytes. A list has at least one event, even if its payload is larger.
    pub bytes: usize,
}

/// Limited number of rows of a query, with a flag for further rows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Excerpt<T> {
    /// Rows, at most as many as the caller asked for.
    pub rows: Vec<T>,
    /// True if there are more rows.
    pub more: bool,
}

impl<T> Excerpt<T> {
    /// Creates an excerpt of at most `limit` rows. The caller reads `limit` + 1 rows, so that an extra row proves that
    /// there are more.
    pub(crate) fn from_rows(mut rows: Vec<T>, limit: usize) -> Self {
        let more = rows.len() > limit;
        rows.truncate(limit);
        Self { rows, more }
    }
}

impl Default for EventFilter {
    fn default() -> Self {
        Self {
            since: EventId(0),
            limit: 1000,
            task: None,
            tenant: None,
            kinds: Vec::new(),
            assignee: None,
            newest_first: false,
            bytes: REPLY_TO_PERSON,
        }
    }
}
