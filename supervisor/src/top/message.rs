//! Messages to the model of `top`, and actions that it requests. A [`TopMessage`] carries input or data to the model; the rest
//! of the program performs a [`TopAction`].

use std::time::Duration;

use kernel::{AskingMission, RunId, TaskId, Tenant};

use super::picture::{Picture, Section};
use base::terminal::full_screen::Key;
use setup::lanes::Format;

/// Input or data for the model.
#[derive(Debug)]
pub(super) enum TopMessage {
    Key(Key),
    /// Pasted text, which is never read as commands.
    Pasted(String),
    /// The terminal was resized.
    Resized,
    /// The board was read.
    Picture(Box<Picture>),
    /// The board could not be read, for this reason.
    Lost(String),
    /// The displayed log has another piece.
    Logged(LogPart),
    /// Facts for a dialog about a task were collected.
    Facts {
        task: TaskId,
        facts: Vec<String>,
    },
    /// An act succeeded or failed, with a text for the person.
    Acted(Result<String, String>),
    /// The time since the start of `top` is now this long.
    Time(Duration),
    /// The terminal can no longer be read.
    Gone,
}

/// A piece of a run's log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct LogPart {
    pub(super) task: TaskId,
    /// Run that wrote it; none if the task has had no run.
    pub(super) run: Option<RunId>,
    /// Format of the agent's output; none if unknown.
    pub(super) format: Option<Format>,
    pub(super) text: String,
    /// True if the run has ended, so that no further piece follows.
    pub(super) ended: bool,
}

/// Act that the model requests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum TopAction {
    Quit,
    /// Suspend the process, as Ctrl-Z does with a job of a shell.
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

/// Verb that a key of the screen sends for one task.
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
/// Limit on the tasks that are read of a section. A person finds further tasks by searching.
const MOST: u32 = 500;

impl Query {
    /// Returns the number of tasks to read of a section.
    pub(super) fn limit(&self, section: Section) -> u32 {
        PAGE * (1 + self.more_pages[section as usize])
    }

    /// Adds a page of a section. Returns false if the limit is reached, and then adds nothing.
    pub(super) fn add_page(&mut self, section: Section) -> bool {
        let has_room = self.limit(section) < MOST;
        self.more_pages[section as usize] += u32::from(has_room);
        has_room
    }

    /// Returns true if the id or the title of a mission contains the search text, or if there is none. Case is ignored.
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
