//! Messages between the parts of `top`: keys and news come in, orders go out.

use std::time::Duration;

use kernel::{AskingMission, RunId, TaskId, Tenant};

use super::picture::{Picture, Section};
use base::terminal::full_screen::Key;
use setup::lanes::Format;

#[derive(Debug)]
pub(super) enum TopMessage {
    Key(Key),
    /// Pasted text, which contains no commands.
    Pasted(String),
    /// The terminal was resized, or must be redrawn.
    Resized,
    /// The board was read.
    Picture(Box<Picture>),
    /// The board could not be read, for this reason.
    Lost(String),
    /// A piece of the displayed log.
    Logged(LogPart),
    /// Further facts for a dialog about a task.
    Facts {
        task: TaskId,
        facts: Vec<String>,
    },
    /// Result of an act, as text.
    Acted(Result<String, String>),
    /// Time since the start of `top`.
    Time(Duration),
    Gone,
}

/// A piece of a run's log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct LogPart {
    pub(super) task: TaskId,
    /// The run; none if the task has had none.
    pub(super) run: Option<RunId>,
    /// Format of its agent's output.
    pub(super) format: Option<Format>,
    pub(super) text: String,
    /// True if this run writes no more.
    pub(super) ended: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum TopAction {
    Quit,
    /// Stop, like a job of a shell.
    Suspend,
    Redraw,
    /// Read another part of the board.
    Read(Query),
    /// Follow the log of a task.
    Follow(TaskId),
    /// Stop following a log.
    Unfollow,
    /// Collect facts for a dialog about a task.
    Find(TaskId),
    Act(TaskVerb),
}

/// A verb on one task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum TaskVerb {
    Answer {
        task: TaskId,
        answer: String,
    },
    Approve {
        task: TaskId,
    },
    RequestChanges {
        task: TaskId,
        reason: String,
    },
    Deny {
        task: TaskId,
        reason: String,
    },
    Retry {
        task: TaskId,
    },
    Cancel {
        task: TaskId,
    },
    /// Set the priority.
    Prioritize {
        task: TaskId,
        priority: i64,
    },
}

/// Part of the board to read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Query {
    pub(super) tenant: Option<Tenant>,
    pub(super) search: Option<String>,
    /// Number of further pages to read of each section.
    more_pages: [u32; Section::ALL.len()],
}

/// Number of tasks per page of a section.
const PAGE: u32 = 50;
/// Limit on the tasks read of a section; a person searches for others.
const MOST: u32 = 500;

impl Query {
    /// Returns the number of tasks to read of a section.
    pub(super) fn limit(&self, section: Section) -> u32 {
        PAGE * (1 + self.more_pages[section as usize])
    }

    /// Adds a page of a section. Returns false at the limit.
    pub(super) fn add_page(&mut self, section: Section) -> bool {
        let has_room = self.limit(section) < MOST;
        self.more_pages[section as usize] += u32::from(has_room);
        has_room
    }

    /// True if the question of a mission matches the search.
    pub(super) fn finds(&self, mission: &AskingMission) -> bool {
        let AskingMission { id, title, .. } = mission;
        let finds = |text: &String| format!("{id} {title}").to_lowercase().contains(&text.to_lowercase());
        self.search.as_ref().is_none_or(finds)
    }

    /// Returns the query for a tenant, from the first page on.
    pub(super) fn of_tenant(&self, tenant: Option<Tenant>) -> Self {
        Query { tenant, search: self.search.clone(), ..Query::default() }
    }

    /// Returns the query for a search text, from the first page on.
    pub(super) fn searching(&self, search: Option<String>) -> Self {
        Query { tenant: self.tenant.clone(), search, ..Query::default() }
    }
}
