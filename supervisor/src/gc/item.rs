//! One thing that goes or stays, and why.

use std::path::Path;

use kernel::TaskId;
use serde::{Deserialize, Serialize};
use workspace::Size;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    /// There is nothing.
    Absent,
    /// It goes, and this is what it holds.
    Gone(Size),
    /// It stays: it is not this program's to remove.
    Foreign(String),
    /// It stays, although it should go: it is in use, holds work, or the host refuses.
    Stuck(String),
}

/// What kind of thing it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Kind {
    Workspace,
    Worktree,
    /// The log of a run, or all logs of a task that is gone.
    Log,
    /// The directory of a run that is over.
    RunDirectory,
    /// The private directories of a run that is over.
    Home,
    /// What the agents of a task keep between its runs.
    Sessions,
    /// The bytes of attachments that no task has any more.
    Attachment,
    /// Stored replies to requests that nobody repeats any more.
    Replies,
    /// What was used on days long ago.
    Ledger,
    Events,
}

impl Kind {
    /// Whether it is rows of the board, which have no place of their own.
    pub(crate) fn is_rows(self) -> bool {
        matches!(self, Kind::Replies | Kind::Ledger | Kind::Events)
    }

    /// Returns its name for people.
    pub(crate) fn name(self) -> &'static str {
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

/// One thing that goes, or that stays for a reason.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Item {
    pub(crate) kind: Kind,
    /// Where it is; for rows of the board, what they are.
    pub(crate) path: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) task: Option<TaskId>,
    pub(crate) bytes: u64,
    pub(crate) entries: u64,
    /// Why it stays; none for what goes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) why: Option<String>,
}

impl Item {
    /// Tells of a thing on disk; nothing where there is nothing.
    pub(super) fn of(kind: Kind, path: &Path, task: Option<&TaskId>, fate: Fate) -> Option<Self> {
        let (size, why) = match fate {
            Fate::Absent => return None,
            Fate::Gone(size) => (size, None),
            Fate::Foreign(why) | Fate::Stuck(why) => (Size::default(), Some(why)),
        };
        let path = path.display().to_string();
        Some(Item { kind, path, task: task.cloned(), bytes: size.bytes, entries: size.entries, why })
    }

    /// Adds more rows of the same kind.
    pub(crate) fn grow(&mut self, more: &Self) {
        self.entries += more.entries;
        self.bytes += more.bytes;
        let what = self.path.split_once(' ').map_or("", |(_, what)| what);
        self.path = format!("{} {what}", self.entries);
    }

    /// Tells of rows of the board; nothing where there are none.
    pub(super) fn rows(kind: Kind, what: &str, count: u64, bytes: u64) -> Option<Self> {
        let path = format!("{count} {what}");
        (count > 0).then_some(Item { kind, path, task: None, bytes, entries: count, why: None })
    }
}
