//! Task on a board of the worker's own, in the format of Hermes Kanban, and the worker's changes there.

use std::collections::BTreeSet;
use std::path::PathBuf;

/// Task with all that its worker has to know.
#[derive(Clone, Debug)]
pub struct Projected {
    /// The task itself.
    pub own: ProjectedTask,
    /// Parents of the task, which are done.
    pub parents: Vec<ProjectedTask>,
    /// Comments of the task, oldest first.
    pub comments: Vec<ProjectedComment>,
    pub run: i64,
    pub claim: String,
    pub workspace: PathBuf,
    /// Current time, in epoch seconds.
    pub now: i64,
}

/// Fields of a task in such a database. Times are epoch seconds.
#[derive(Clone, Debug, Default)]
pub struct ProjectedTask {
    pub id: String,
    /// Title, on one line.
    pub title: String,
    /// Text of the task.
    pub body: Option<String>,
    /// Name of the assigned profile.
    pub assignee: Option<String>,
    pub tenant: Option<String>,
    /// Priority; greater goes first.
    pub priority: i64,
    /// Caller who asked for the task.
    pub created_by: Option<String>,
    /// Creation time.
    pub created_at: i64,
    pub result: Option<String>,
    /// Summary of the run that finished it.
    pub summary: Option<String>,
    /// Metadata that this run handed over: JSON.
    pub metadata: Option<String>,
}

/// Comment that a projected program reads or has written.
#[derive(Clone, Debug)]
pub struct ProjectedComment {
    pub author: String,
    /// Text of the comment.
    pub body: String,
    /// Creation time, in epoch seconds.
    pub created_at: i64,
}

/// Changes that a worker has made on its board since the last look.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProjectedWork {
    /// Tasks that the worker made, oldest first.
    pub created: Vec<ProjectedCard>,
    /// New links, each as parent and child.
    pub linked: Vec<(String, String)>,
    /// New comments, oldest first.
    pub said: Vec<ProjectedRemark>,
    /// Note of the latest heartbeat, if the model has written one since the last look.
    pub alive: Option<String>,
    /// Verdict about the task.
    pub verdict: Option<ProjectedEnd>,
    /// True if there is more than is read from one database.
    pub more: bool,
}

/// Task that a worker has made on its own board.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProjectedCard {
    /// Id on the worker's board.
    pub id: String,
    /// Title, on one line.
    pub title: String,
    /// Text of the task.
    pub body: Option<String>,
    /// Name of the assigned profile.
    pub assignee: Option<String>,
    pub tenant: Option<String>,
    /// Priority; greater goes first.
    pub priority: i64,
    /// Status on the worker's board.
    pub status: String,
    /// Kind of the workspace, and its path.
    pub workspace: (Option<String>, Option<String>),
    pub branch: Option<String>,
    /// Idempotency key: a second task with this key is the same task.
    pub idempotency_key: Option<String>,
    /// Time limit of a run, in seconds.
    pub max_runtime: Option<i64>,
    /// Skills of the worker, as a JSON list.
    pub skills: Option<String>,
    /// True if the worker continues turn by turn toward a goal.
    pub goal: bool,
    /// Number of turns after which a person is asked.
    pub goal_turns: Option<i64>,
}

/// Comment that a worker has written on its own board.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProjectedRemark {
    pub task: String,
    /// Text of the comment.
    pub body: String,
}

/// Verdict of a worker about its task, on its own board.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProjectedEnd {
    /// The task is done.
    Completed {
        result: Option<String>,
        summary: Option<String>,
        /// JSON.
        metadata: Option<String>,
        /// JSON of the event, with the tasks that the worker says it has made.
        event: Option<String>,
    },
    /// The task cannot go on.
    Blocked { reason: Option<String>, kind: Option<String> },
}

/// Board of one worker that the supervisor follows. Each change is returned once.
#[derive(Debug)]
pub struct Projection {
    pub(crate) path: PathBuf,
    pub(crate) own: String,
    pub(crate) run: i64,
    pub(crate) claim: String,
    pub(crate) seen: Seen,
    /// Stamp of the files when a look found nothing new. There is nothing to read until they change.
    pub(crate) rest: Option<Stamp>,
}

/// Stamp of a database at one time: of its file and its write-ahead log, which has the latest writes. None for a missing
/// file.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Stamp(pub(crate) [Option<FileStamp>; 2]);

/// Stamp of a file at one time. The file has changed if any field differs.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct FileStamp {
    pub(crate) device: u64,
    pub(crate) inode: u64,
    /// Size in bytes.
    pub(crate) length: u64,
    /// Time of the last write (seconds, then nanoseconds).
    pub(crate) written: (i64, i64),
    /// Time of the last change of the inode (seconds, then nanoseconds), which a program cannot set.
    pub(crate) changed: (i64, i64),
}

/// Rows that were already returned, or were there before the worker.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    pub(crate) tasks: BTreeSet<String>,
    pub(crate) links: BTreeSet<(String, String)>,
    /// Id of the last comment that was read.
    pub(crate) comment: i64,
    pub(crate) answers: BTreeSet<i64>,
    /// Number of comments that were read.
    pub(crate) comments: i64,
    pub(crate) event: i64,
    pub(crate) has_ended: bool,
    /// True once the limit on reading has been reported.
    pub(crate) is_full: bool,
}
