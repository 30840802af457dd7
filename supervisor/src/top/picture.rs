//! Data that `top` displays: the tasks of a board in sections, the live workers, and the state of the daemon.

use std::time::Duration;

use kernel::{AskingMission, BlockKind, Question, Spent, Status, Task, TaskId, Timestamp, WaitingCode};

use base::terminal::Ink;
use upkeep::diagnosis::why;
use verbs::{WorkerLine, amounts, status_ink};

/// Limit on the characters of a text, more than its part of the screen can show.
const LONGEST: usize = 4000;

/// Section of tasks, in display order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Section {
    Person,
    Running,
    Review,
    Ready,
    Scheduled,
    Todo,
    Done,
}

impl Section {
    pub(super) const ALL: [Section; 7] = [
        Section::Person,
        Section::Running,
        Section::Review,
        Section::Ready,
        Section::Scheduled,
        Section::Todo,
        Section::Done,
    ];

    pub(super) fn heading(self) -> &'static str {
        match self {
            Section::Person => "NEEDS A PERSON",
            Section::Running => "RUNNING",
            Section::Review => "IN REVIEW",
            Section::Ready => "READY",
            Section::Scheduled => "SCHEDULED",
            Section::Todo => "TODO",
            Section::Done => "DONE",
        }
    }
}

/// Kind of a task, in the order in which a person should see them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum TaskKind {
    Question,
    Approval,
    /// A person has to review the work.
    Review,
    GaveUp,
    /// Blocked for another reason.
    Blocked,
    Triage,
    Running,
    /// A profile reviews the work, or its check runs.
    InReview,
    Ready,
    Scheduled,
    Todo,
    Done,
}

impl TaskKind {
    fn from_task(task: &Task) -> Self {
        match task.status {
            Status::Blocked => TaskKind::of_blocked(task),
            Status::Triage => TaskKind::Triage,
            Status::Review if task.waits_for_a_person() => TaskKind::Review,
            Status::Review => TaskKind::InReview,
            Status::Running => TaskKind::Running,
            Status::Ready => TaskKind::Ready,
            Status::Scheduled => TaskKind::Scheduled,
            Status::Todo => TaskKind::Todo,
            Status::Done | Status::Archived => TaskKind::Done,
        }
    }

    /// Returns the kind of a blocked task, by its reason. A task that needs input and has a reason without choices counts as
    /// a question too, since `answer` takes a text for it.
    fn of_blocked(task: &Task) -> Self {
        let asks_in_words = task.block_kind == Some(BlockKind::NeedsInput) && !task.is_cancelled();
        match task.why.as_ref().map(|why| why.code) {
            Some(WaitingCode::Question) => TaskKind::Question,
            Some(WaitingCode::Approval) => TaskKind::Approval,
            Some(WaitingCode::GaveUp) => TaskKind::GaveUp,
            Some(WaitingCode::Blocked) if asks_in_words => TaskKind::Question,
            Some(_) | None => TaskKind::Blocked,
        }
    }

    pub(super) fn section(self) -> Section {
        match self {
            TaskKind::Question
            | TaskKind::Approval
            | TaskKind::Review
            | TaskKind::GaveUp
            | TaskKind::Blocked
            | TaskKind::Triage => Section::Person,
            TaskKind::Running => Section::Running,
            TaskKind::InReview => Section::Review,
            TaskKind::Ready => Section::Ready,
            TaskKind::Scheduled => Section::Scheduled,
            TaskKind::Todo => Section::Todo,
            TaskKind::Done => Section::Done,
        }
    }

    fn word(self) -> &'static str {
        match self {
            TaskKind::Question => "question",
            TaskKind::Approval => "approval",
            TaskKind::Review => "review",
            TaskKind::GaveUp => "gave up",
            TaskKind::Blocked => "blocked",
            TaskKind::Triage => "triage",
            TaskKind::Running => "running",
            TaskKind::InReview => "in review",
            TaskKind::Ready => "ready",
            TaskKind::Scheduled => "scheduled",
            TaskKind::Todo => "todo",
            TaskKind::Done => "done",
        }
    }
}

/// Resource use of a live worker.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Load {
    /// Percent of one processor since the last read; none after the first read.
    pub(super) cpu: Option<u64>,
    pub(super) memory_bytes: Option<u64>,
    /// Tokens of its agent, input and output.
    pub(super) tokens: Option<u64>,
}

/// Line of a task. Its texts are as they come from the board; the view makes them printable.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct TaskRow {
    pub(super) id: TaskId,
    pub(super) kind: TaskKind,
    pub(super) word: &'static str,
    pub(super) ink: Ink,
    pub(super) assignee: String,
    pub(super) tenant: Option<String>,
    pub(super) priority: i64,
    pub(super) title: String,
    /// Reason for waiting, question, or problem.
    pub(super) says: String,
    /// Time in the present status; for a running task, the time since its start.
    pub(super) age: Duration,
    pub(super) load: Load,
    pub(super) question: Option<Question>,
    /// Further facts for the details of the task, each with its name.
    pub(super) details: Vec<(&'static str, String)>,
}

impl TaskRow {
    /// Makes the row of a task, with its live worker.
    pub(super) fn from_task(
        task: &Task,
        worker: Option<&WorkerLine>,
        cpu: Option<u64>,
        now: Timestamp,
    ) -> Self {
        let kind = TaskKind::from_task(task);
        let (word, ink) = match worker.filter(|_| kind == TaskKind::Running) {
            Some(worker) => worker.state(),
            None => (kind.word(), status_ink(task.status)),
        };
        let asked = task.question.as_ref().filter(|_| kind == TaskKind::Question);
        let says = asked
            .map(|question| question.text.clone())
            .or_else(|| worker.and_then(|worker| worker.run.note.clone().or(worker.last_note.clone())))
            .or_else(|| task.why.as_ref().map(why::line))
            .or_else(|| task.result.clone().filter(|_| kind == TaskKind::Done));
        let since = match kind {
            TaskKind::Running => task.started_at,
            TaskKind::Done => task.completed_at,
            _ => None,
        };
        let spent = worker.and_then(|worker| worker.run.spent.as_ref());
        let assignee = match kind {
            TaskKind::InReview => task.reviewer.as_ref().or(task.assignee.as_ref()),
            _ => task.assignee.as_ref(),
        };
        TaskRow {
            id: task.id.clone(),
            kind,
            word,
            ink,
            assignee: assignee.map_or_else(|| "-".to_owned(), ToString::to_string),
            tenant: task.tenant.as_ref().map(ToString::to_string),
            priority: task.priority,
            title: start_of(&task.title),
            says: start_of(says.as_deref().unwrap_or_default()),
            age: now.since(since.or(task.status_since).unwrap_or(task.updated_at)),
            load: Load {
                cpu,
                memory_bytes: worker.and_then(|worker| Some(worker.usage?.memory_bytes)),
                tokens: spent.map(Spent::all_tokens),
            },
            question: asked_of(task, kind),
            details: details(task, worker),
        }
    }
}

impl TaskRow {
    /// Makes the row of a question that a mission at a limit asks. The row stands for the first task of the mission.
    pub(super) fn of_mission(mission: &AskingMission, now: Timestamp) -> Self {
        let AskingMission { id, title, tenant, assignee, priority, question, since } = mission;
        TaskRow {
            id: id.clone(),
            kind: TaskKind::Question,
            word: TaskKind::Question.word(),
            ink: status_ink(Status::Blocked),
            assignee: assignee.as_ref().map_or_else(|| "-".to_owned(), ToString::to_string),
            tenant: tenant.as_ref().map(ToString::to_string),
            priority: *priority,
            title: start_of(title),
            says: start_of(&question.text),
            age: now.since(*since),
            load: Load::default(),
            question: Some(question.clone()),
            details: vec![("why", start_of(&question.text))],
        }
    }
}

/// Returns the question of a task; none if it asks none. For a task that is blocked with a reason alone, the reason is the
/// question.
fn asked_of(task: &Task, kind: TaskKind) -> Option<Question> {
    let in_words = || Question {
        text: task.block_reason.clone().unwrap_or_else(|| task.title.clone()),
        ..Question::default()
    };
    (kind == TaskKind::Question).then(|| task.question.clone().unwrap_or_else(in_words))
}

fn details(task: &Task, worker: Option<&WorkerLine>) -> Vec<(&'static str, String)> {
    let run = worker.map(|worker| &worker.run);
    let sandbox = run.filter(|run| run.sandbox_lacks).and_then(|run| run.sandbox.clone());
    let found = [
        ("why", task.why.as_ref().map(why::line)),
        ("result", task.result.clone()),
        ("last failure", task.last_failure_error.clone()),
        ("last note", worker.and_then(|worker| worker.last_note.clone())),
        ("trouble", run.and_then(|run| run.note.clone())),
        ("used", run.and_then(|run| run.spent.as_ref()).map(amounts)),
        ("sandbox", sandbox),
        ("run", run.map(|run| run.run.to_string())),
        ("policy", task.policy.clone()),
        ("workspace", Some(task.workspace_path.clone().unwrap_or_else(|| task.workspace.clone()))),
        ("branch", task.branch_name.clone()),
        ("created by", task.created_by.clone()),
        ("body", task.body.clone()),
    ];
    found.into_iter().filter_map(|(name, text)| Some((name, start_of(&text?)))).collect()
}

/// Returns the first [`LONGEST`] characters of a text.
fn start_of(text: &str) -> String {
    text.chars().take(LONGEST).collect()
}

/// Tasks of a section that were read, with the number of all its tasks.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct TaskGroup {
    pub(super) section: Section,
    pub(super) rows: Vec<TaskRow>,
    pub(super) total: Total,
}

impl TaskGroup {
    /// Returns the number of unread tasks; none if all were read.
    pub(super) fn left_out(&self) -> Option<Total> {
        let read = u64::try_from(self.rows.len()).unwrap_or(u64::MAX);
        match self.total {
            Total::Exactly(all) => all.checked_sub(read).filter(|left| *left > 0).map(Total::Exactly),
            Total::MoreThan(_) => Some(Total::MoreThan(0)),
        }
    }
}

/// Number of tasks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Total {
    Exactly(u64),
    /// More than this number: the results of a search are not counted.
    MoreThan(u64),
}

impl Total {
    /// Adds more tasks.
    pub(super) fn and(self, more: u64) -> Self {
        match self {
            Total::Exactly(count) => Total::Exactly(count + more),
            Total::MoreThan(count) => Total::MoreThan(count + more),
        }
    }

    /// Adds an unknown number of tasks.
    pub(super) fn or_more(self) -> Self {
        match self {
            Total::Exactly(count) | Total::MoreThan(count) => Total::MoreThan(count),
        }
    }
}

/// Displayed facts about the daemon.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct DaemonFacts {
    pub(super) version: String,
    pub(super) uptime: Duration,
    pub(super) taken: usize,
    pub(super) slots: usize,
    /// Reason why nothing is started; none unless starts are paused.
    pub(super) paused: Option<String>,
}

/// Data of one read.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Picture {
    pub(super) board: String,
    /// None if the board was read without a daemon.
    pub(super) daemon: Option<DaemonFacts>,
    /// Problems of the daemon.
    pub(super) troubles: Vec<String>,
    /// Sections with tasks, in order.
    pub(super) groups: Vec<TaskGroup>,
}
