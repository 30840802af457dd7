//! What the parts of `top` say to each other: keys and news come in, orders go out.

use std::time::Duration;

use kernel::{AskingMission, RunId, TaskId, Tenant};

use super::picture::{Picture, Section};
use crate::lanes::Format;
use crate::terminal::full_screen::Key;

/// What has happened.
#[derive(Debug)]
pub(super) enum Message {
    Key(Key),
    /// Text that was pasted: nothing of it is a command.
    Pasted(String),
    /// The terminal has another size, or has to be drawn anew.
    Resized,
    /// The board was read.
    Picture(Box<Picture>),
    /// The board could not be read, and why.
    Lost(String),
    /// A piece of the log that is looked at.
    Logged(Piece),
    /// What else is known of a task that a dialog is about.
    Facts {
        task: TaskId,
        facts: Vec<String>,
    },
    /// What became of an act, in words.
    Acted(Result<String, String>),
    /// How long `top` has been running.
    Time(Duration),
    /// The terminal is gone.
    Gone,
}

/// A piece of a run's log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Piece {
    pub(super) task: TaskId,
    /// The run; none where the task has had none.
    pub(super) run: Option<RunId>,
    /// The form of its agent's output.
    pub(super) format: Option<Format>,
    pub(super) text: String,
    /// Whether nothing more comes of this run.
    pub(super) ended: bool,
}

/// What is to be done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Order {
    Quit,
    /// Stop, as a shell's job does.
    Suspend,
    /// Draw everything anew.
    Redraw,
    /// Read another part of the board.
    Read(Query),
    /// Follow the log of a task.
    Follow(TaskId),
    /// Follow no log any more.
    Unfollow,
    /// Find out what a dialog about a task should show.
    Find(TaskId),
    Act(Act),
}

/// A verb about one task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Act {
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
    /// Its priority becomes this.
    Prioritize {
        task: TaskId,
        priority: i64,
    },
}

/// Which part of the board is read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Query {
    pub(super) tenant: Option<Tenant>,
    pub(super) search: Option<String>,
    /// The pages of each section that are read beyond the first one.
    more_pages: [u32; Section::ALL.len()],
}

/// How many tasks of a section are read at once.
const PAGE: u32 = 50;
/// The most tasks of a section that are read: beyond that a person searches.
const MOST: u32 = 500;

impl Query {
    /// Returns how many tasks of a section are read.
    pub(super) fn limit(&self, section: Section) -> u32 {
        PAGE * (1 + self.more_pages[section as usize])
    }

    /// Adds a page of a section. Returns whether there was room for one.
    pub(super) fn add_page(&mut self, section: Section) -> bool {
        let has_room = self.limit(section) < MOST;
        self.more_pages[section as usize] += u32::from(has_room);
        has_room
    }

    /// Returns whether the question of a mission is of what is searched for.
    pub(super) fn finds(&self, mission: &AskingMission) -> bool {
        let AskingMission { id, title, .. } = mission;
        let finds = |text: &String| format!("{id} {title}").to_lowercase().contains(&text.to_lowercase());
        self.search.as_ref().is_none_or(finds)
    }

    /// The same of a tenant, from the first page on.
    pub(super) fn of_tenant(&self, tenant: Option<Tenant>) -> Self {
        Query { tenant, search: self.search.clone(), ..Query::default() }
    }

    /// The same with a text that is searched for, from the first page on.
    pub(super) fn searching(&self, search: Option<String>) -> Self {
        Query { tenant: self.tenant.clone(), search, ..Query::default() }
    }
}
