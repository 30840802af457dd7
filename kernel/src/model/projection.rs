//! A task on a board of its worker's own, as the established program keeps it, and what the worker has done there.

use std::collections::BTreeSet;
use std::path::PathBuf;

/// A task with what its worker is to know.
#[derive(Clone, Debug)]
pub struct Projected {
    /// The task itself.
    pub own: ProjectedTask,
    /// The tasks that it waited for, which are done.
    pub parents: Vec<ProjectedTask>,
    /// Its thread, oldest first.
    pub comments: Vec<ProjectedComment>,
    /// The number of its run.
    pub run: i64,
    /// The claim of the run.
    pub claim: String,
    /// Where it works.
    pub workspace: PathBuf,
    /// Now, in epoch seconds.
    pub now: i64,
}

/// What of a task is in such a database. Times are epoch seconds.
#[derive(Clone, Debug, Default)]
pub struct ProjectedTask {
    /// Its id.
    pub id: String,
    /// One line.
    pub title: String,
    /// What is to be done.
    pub body: Option<String>,
    /// The profile, by its name.
    pub assignee: Option<String>,
    /// Its namespace.
    pub tenant: Option<String>,
    /// Greater goes first.
    pub priority: i64,
    /// Who asked for it.
    pub created_by: Option<String>,
    /// When it was made.
    pub created_at: i64,
    /// What came of it.
    pub result: Option<String>,
    /// The summary of the run that finished it.
    pub summary: Option<String>,
    /// The facts that this run handed over: JSON.
    pub metadata: Option<String>,
}

/// A comment of the thread.
#[derive(Clone, Debug)]
pub struct ProjectedComment {
    /// Who wrote it.
    pub author: String,
    /// The text.
    pub body: String,
    /// When, in epoch seconds.
    pub created_at: i64,
}

/// What a worker has done on its board since the last look.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProjectedWork {
    /// The tasks that it has made, oldest first.
    pub created: Vec<ProjectedCard>,
    /// What is to be done before what: the parent and the child.
    pub linked: Vec<(String, String)>,
    /// What it has said, oldest first.
    pub said: Vec<ProjectedRemark>,
    /// The note of its last sign of life, where its model has given one since.
    pub alive: Option<String>,
    /// How it has ended its task.
    pub verdict: Option<ProjectedEnd>,
    /// Whether there is more than is read of one database.
    pub more: bool,
}

/// A task that a worker has made on its own board.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProjectedCard {
    /// Its id there.
    pub id: String,
    /// One line.
    pub title: String,
    /// What is to be done.
    pub body: Option<String>,
    /// The profile, by its name.
    pub assignee: Option<String>,
    /// Its namespace.
    pub tenant: Option<String>,
    /// Greater goes first.
    pub priority: i64,
    /// Where it stands there.
    pub status: String,
    /// The kind of its workspace, and its path.
    pub workspace: (Option<String>, Option<String>),
    /// The branch of a worktree.
    pub branch: Option<String>,
    /// A second one with this key is the same task.
    pub idempotency_key: Option<String>,
    /// How long a run may take, in seconds.
    pub max_runtime: Option<i64>,
    /// A JSON list of the skills of its worker.
    pub skills: Option<String>,
    /// Whether it is continued turn by turn.
    pub goal: bool,
    /// After how many turns somebody is asked.
    pub goal_turns: Option<i64>,
}

/// A comment that a worker has written on its own board.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProjectedRemark {
    /// The task.
    pub task: String,
    /// The text.
    pub body: String,
}

/// How a worker has ended its task on its own board.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProjectedEnd {
    /// It is done.
    Completed {
        /// The result itself.
        result: Option<String>,
        /// What was done.
        summary: Option<String>,
        /// JSON.
        metadata: Option<String>,
        /// JSON of the event: the tasks that the worker says it has made are in it.
        event: Option<String>,
    },
    /// It cannot go on.
    Blocked {
        /// Why.
        reason: Option<String>,
        /// For what kind of reason.
        kind: Option<String>,
    },
}

/// The board of one worker, as it is followed. Each change is returned once.
#[derive(Debug)]
pub struct Projection {
    pub(crate) path: PathBuf,
    pub(crate) own: String,
    pub(crate) run: i64,
    pub(crate) claim: String,
    pub(crate) seen: Seen,
    /// Its files when a look found nothing new in them: until they change there is nothing to read.
    pub(crate) rest: Option<Stamp>,
}

/// The files of a database at one time: itself and its log, which has what is not yet in the file. None for a file that is not there.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Stamp(pub(crate) [Option<FileStamp>; 2]);

/// One file at one time: it has changed where any of these has.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct FileStamp {
    pub(crate) device: u64,
    pub(crate) inode: u64,
    /// In bytes.
    pub(crate) length: u64,
    /// The time of its last write (seconds, then nanoseconds).
    pub(crate) written: (i64, i64),
    /// The time of its last change (seconds, then nanoseconds), which a program cannot set.
    pub(crate) changed: (i64, i64),
}

/// What has been returned, and what was there before.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    pub(crate) tasks: BTreeSet<String>,
    pub(crate) links: BTreeSet<(String, String)>,
    /// The last comment, and those that are not the worker's.
    pub(crate) comment: i64,
    pub(crate) answers: BTreeSet<i64>,
    /// How many comments were read.
    pub(crate) comments: i64,
    pub(crate) event: i64,
    pub(crate) has_ended: bool,
    /// Whether it was said that there is more than is read.
    pub(crate) is_full: bool,
}
