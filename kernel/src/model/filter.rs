//! What to list, in which order, and from where on.

use crate::model::clock::Timestamp;
use crate::model::id::{EventId, Profile, TaskId, Tenant};
use crate::model::limits::REPLY_TO_PERSON;
use crate::model::status::Status;
use crate::model::task::Task;
use crate::model::words::words;

words! {
    /// The order of a list of tasks.
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
        /// By status, then as by priority.
        Status => "status",
        /// By assignee, then as by priority.
        Assignee => "assignee",
        /// By title.
        Title => "title",
        /// Latest change first.
        Updated => "updated",
    }
}

words! {
    /// Whether archived tasks are listed.
    "archived"
    Archived {
        /// No.
        Hide => "hide",
        /// With the others.
        Show => "show",
    }
}

/// Which tasks to list. The default lists the first 200 that are not archived.
#[derive(Clone, Debug)]
pub struct Filter {
    /// Only of this assignee.
    pub assignee: Option<Profile>,
    /// Only with one of these; none means any. `archived` shows archived ones.
    pub statuses: Vec<Status>,
    /// Only with this text in the title or the body; case matters for letters outside of ASCII alone.
    pub search: Option<String>,
    /// Only those that have changed at this time or later.
    pub since: Option<Timestamp>,
    /// Only of this tenant.
    pub tenant: Option<Tenant>,
    /// Whether archived tasks are listed.
    pub archived: Archived,
    /// Only of this client session.
    pub session: Option<String>,
    /// Only of this client workflow.
    pub workflow: Option<String>,
    /// Only at this client step.
    pub step: Option<String>,
    /// In which order.
    pub sort: Sort,
    /// At most this many, 1 to 10000.
    pub limit: u32,
    /// Where the page before ended.
    pub cursor: Option<String>,
    /// The most bytes that the texts of a page have; a page has one task at least.
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

/// One page of tasks.
#[derive(Clone, Debug)]
pub struct Page {
    /// At most as many as the filter asks for, in its order.
    pub tasks: Vec<Task>,
    /// Where the next page starts; none when this is the last.
    pub next: Option<String>,
}

/// Which events to list, oldest first. The default lists the first 1000 of all.
#[derive(Clone, Debug)]
pub struct EventFilter {
    /// Only later ones.
    pub since: EventId,
    /// At most this many.
    pub limit: u32,
    /// Only of this task.
    pub task: Option<TaskId>,
    /// Only of this tenant.
    pub tenant: Option<Tenant>,
    /// Only of these kinds; empty means all.
    pub kinds: Vec<String>,
    /// Only of tasks that are assigned to this profile now.
    pub assignee: Option<Profile>,
    /// Whether the limit keeps the newest instead of the oldest; the order stays.
    pub newest_first: bool,
    /// The most bytes that the payloads of a list have; a list has one event at least.
    pub bytes: usize,
}

/// Some of the rows of one kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Excerpt<T> {
    /// At most as many as were asked for.
    pub rows: Vec<T>,
    /// Whether there are more, beyond the end from which they were counted.
    pub more: bool,
}

impl<T> Excerpt<T> {
    /// Keeps at most `limit` of the rows that were read, one more than that where there are more.
    pub(crate) fn of(mut rows: Vec<T>, limit: usize) -> Self {
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
