//! Results of a collection: an item that is removed or stays, with the reason.

use std::path::Path;

use kernel::TaskId;
use serde::{Deserialize, Serialize};
use workspace::Size;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CollectResult {
    /// The item does not exist.
    Absent,
    /// Removed; this is its size.
    Gone(Size),
    /// Stays, because this program does not own it.
    Foreign(String),
    /// Stays although it should be removed: it is in use, holds work, or the host refuses.
    Stuck(String),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    Workspace,
    Worktree,
    /// Log of a run, or all logs of a deleted task.
    Log,
    /// Directory of a run that is over.
    RunDirectory,
    /// Private directories of a run that is over.
    Home,
    /// Sessions that agents of a task keep between runs.
    Sessions,
    /// Contents of attachments that no task refers to.
    Attachment,
    /// Stored replies to requests that are too old to be repeated.
    Replies,
    /// Use of long past days.
    Ledger,
    Events,
}

impl Kind {
    /// True for rows of the board, which have no path.
    pub fn is_rows(self) -> bool {
        matches!(self, Kind::Replies | Kind::Ledger | Kind::Events)
    }

    /// Returns its name for people.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Workspace => "workspace",
            Kind::Worktree => "worktree",
            Kind::Log => "log",
            Kind::RunDirectory => "run directory",
            Kind::Home => "home",
            Kind::Sessions => "sessions",
            Kind::Attachment => "attachment",
            Kind::Replies => "old replies",
            Kind::Ledger => "old ledger",
            Kind::Events => "old events",
        }
    }
}

/// An item that is removed, or that stays for a reason.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Item {
    pub kind: Kind,
    /// Path; for rows of the board, their description.
    pub path: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub task: Option<TaskId>,
    pub bytes: u64,
    pub entries: u64,
    /// Reason why it stays; none if it is removed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
}

impl Item {
    /// Makes the item of a path; none if nothing exists.
    pub(super) fn for_path(
        kind: Kind,
        path: &Path,
        task: Option<&TaskId>,
        result: CollectResult,
    ) -> Option<Self> {
        let (size, why) = match result {
            CollectResult::Absent => return None,
            CollectResult::Gone(size) => (size, None),
            CollectResult::Foreign(why) | CollectResult::Stuck(why) => (Size::default(), Some(why)),
        };
        let path = path.display().to_string();
        Some(Item { kind, path, task: task.cloned(), bytes: size.bytes, entries: size.entries, why })
    }

    /// Adds the counts of more rows of the same kind.
    pub fn grow(&mut self, more: &Self) {
        self.entries += more.entries;
        self.bytes += more.bytes;
        let what = self.path.split_once(' ').map_or("", |(_, what)| what);
        self.path = format!("{} {what}", self.entries);
    }

    /// Makes the item of board rows; none for a count of 0.
    pub(super) fn rows(kind: Kind, what: &str, count: u64, bytes: u64) -> Option<Self> {
        let path = format!("{count} {what}");
        (count > 0).then_some(Item { kind, path, task: None, bytes, entries: count, why: None })
    }
}
