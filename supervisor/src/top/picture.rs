//! What was read of a board: its tasks in sections, the live workers, and how the daemon is.

use std::time::Duration;

use kernel::{AskingMission, BlockKind, Question, Spent, Status, Task, TaskId, Timestamp, WaitingCode};

use crate::diagnosis::why;
use crate::terminal::Ink;
use crate::verbs::{WorkerLine, amounts, status_ink};

/// More of a text is not kept: it is shown in a part of a screen.
const LONGEST: usize = 4000;

/// A group of tasks, in the order in which they are shown.
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

/// What a task is here, those that a person should see first before the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Kind {
    Question,
    Approval,
    /// A person has to review it.
    Review,
    GaveUp,
    /// Blocked for another reason.
    Blocked,
    Triage,
    Running,
    /// A profile reviews it, or its check runs.
    InReview,
    Ready,
    Scheduled,
    Todo,
    Done,
}

impl Kind {
    fn of(task: &Task) -> Self {
        match task.status {
            Status::Blocked => Kind::of_blocked(task),
            Status::Triage => Kind::Triage,
            Status::Review if task.waits_for_a_person() => Kind::Review,
            Status::Review => Kind::InReview,
            Status::Running => Kind::Running,
            Status::Ready => Kind::Ready,
            Status::Scheduled => Kind::Scheduled,
            Status::Todo => Kind::Todo,
            Status::Done | Status::Archived => Kind::Done,
        }
    }

    /// What the board says that it waits for. A reason alone is a question as well: `answer` takes words for it.
    fn of_blocked(task: &Task) -> Self {
        let asks_in_words = task.block_kind == Some(BlockKind::NeedsInput) && !task.is_cancelled();
        match task.why.as_ref().map(|why| why.code) {
            Some(WaitingCode::Question) => Kind::Question,
            Some(WaitingCode::Approval) => Kind::Approval,
            Some(WaitingCode::GaveUp) => Kind::GaveUp,
            Some(WaitingCode::Blocked) if asks_in_words => Kind::Question,
            Some(_) | None => Kind::Blocked,
        }
    }

    pub(super) fn section(self) -> Section {
        match self {
            Kind::Question | Kind::Approval | Kind::Review | Kind::GaveUp | Kind::Blocked | Kind::Triage => {
                Section::Person
            }
            Kind::Running => Section::Running,
            Kind::InReview => Section::Review,
            Kind::Ready => Section::Ready,
            Kind::Scheduled => Section::Scheduled,
            Kind::Todo => Section::Todo,
            Kind::Done => Section::Done,
        }
    }

    fn word(self) -> &'static str {
        match self {
            Kind::Question => "question",
            Kind::Approval => "approval",
            Kind::Review => "review",
            Kind::GaveUp => "gave up",
            Kind::Blocked => "blocked",
            Kind::Triage => "triage",
            Kind::Running => "running",
            Kind::InReview => "in review",
            Kind::Ready => "ready",
            Kind::Scheduled => "scheduled",
            Kind::Todo => "todo",
            Kind::Done => "done",
        }
    }
}

/// What a live worker uses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Load {
    /// Percent of one processor since the last look; none after the first one.
    pub(super) cpu: Option<u64>,
    pub(super) memory_bytes: Option<u64>,
    /// What its agent was given and has made.
    pub(super) tokens: Option<u64>,
}

/// A task. Its texts are those of its authors: only what draws them makes them printable.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Row {
    pub(super) id: TaskId,
    pub(super) kind: Kind,
    pub(super) word: &'static str,
    pub(super) ink: Ink,
    pub(super) who: String,
    pub(super) tenant: Option<String>,
    pub(super) priority: i64,
    pub(super) title: String,
    /// Why it waits, what it asks, or what holds it up.
    pub(super) says: String,
    /// Since when it is as it is; of a running task since when it runs.
    pub(super) age: Duration,
    pub(super) load: Load,
    pub(super) question: Option<Question>,
    /// What else there is to know, with the name of each.
    pub(super) details: Vec<(&'static str, String)>,
}

impl Row {
    /// A task as it is shown, with its live worker.
    pub(super) fn of(task: &Task, worker: Option<&WorkerLine>, cpu: Option<u64>, now: Timestamp) -> Self {
        let kind = Kind::of(task);
        let (word, ink) = match worker.filter(|_| kind == Kind::Running) {
            Some(worker) => worker.state(),
            None => (kind.word(), status_ink(task.status)),
        };
        let asked = task.question.as_ref().filter(|_| kind == Kind::Question);
        let says = asked
            .map(|question| question.text.clone())
            .or_else(|| worker.and_then(|worker| worker.run.note.clone().or(worker.last_note.clone())))
            .or_else(|| task.why.as_ref().map(why::line))
            .or_else(|| task.result.clone().filter(|_| kind == Kind::Done));
        let since = match kind {
            Kind::Running => task.started_at,
            Kind::Done => task.completed_at,
            _ => None,
        };
        let spent = worker.and_then(|worker| worker.run.spent.as_ref());
        let who = match kind {
            Kind::InReview => task.reviewer.as_ref().or(task.assignee.as_ref()),
            _ => task.assignee.as_ref(),
        };
        Row {
            id: task.id.clone(),
            kind,
            word,
            ink,
            who: who.map_or_else(|| "-".to_owned(), ToString::to_string),
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

impl Row {
    /// The question of a mission at a limit. It stands for the first task of the mission.
    pub(super) fn of_mission(mission: &AskingMission, now: Timestamp) -> Self {
        let AskingMission { id, title, tenant, assignee, priority, question, since } = mission;
        Row {
            id: id.clone(),
            kind: Kind::Question,
            word: Kind::Question.word(),
            ink: status_ink(Status::Blocked),
            who: assignee.as_ref().map_or_else(|| "-".to_owned(), ToString::to_string),
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

/// What a person is asked. A task that is blocked with a reason alone asks that.
fn asked_of(task: &Task, kind: Kind) -> Option<Question> {
    let in_words = || Question {
        text: task.block_reason.clone().unwrap_or_else(|| task.title.clone()),
        ..Question::default()
    };
    (kind == Kind::Question).then(|| task.question.clone().unwrap_or_else(in_words))
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

/// As much of a text as a screen could show.
fn start_of(text: &str) -> String {
    text.chars().take(LONGEST).collect()
}

/// The tasks of a section that were read, and how many there are.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Group {
    pub(super) section: Section,
    pub(super) rows: Vec<Row>,
    pub(super) total: Total,
}

impl Group {
    /// How many tasks were not read; none where all were.
    pub(super) fn left_out(&self) -> Option<Total> {
        let read = u64::try_from(self.rows.len()).unwrap_or(u64::MAX);
        match self.total {
            Total::Exactly(all) => all.checked_sub(read).filter(|left| *left > 0).map(Total::Exactly),
            Total::MoreThan(_) => Some(Total::MoreThan(0)),
        }
    }
}

/// How many tasks there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Total {
    Exactly(u64),
    /// More than these: nobody has counted those that a search finds.
    MoreThan(u64),
}

impl Total {
    /// With more tasks.
    pub(super) fn and(self, more: u64) -> Self {
        match self {
            Total::Exactly(count) => Total::Exactly(count + more),
            Total::MoreThan(count) => Total::MoreThan(count + more),
        }
    }

    /// With more tasks that nobody has counted.
    pub(super) fn or_more(self) -> Self {
        match self {
            Total::Exactly(count) | Total::MoreThan(count) => Total::MoreThan(count),
        }
    }
}

/// The daemon, as far as it is shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct DaemonFacts {
    pub(super) version: String,
    pub(super) uptime: Duration,
    pub(super) taken: usize,
    pub(super) slots: usize,
    /// Why nothing is started, where nothing is.
    pub(super) paused: Option<String>,
}

/// A look at the board.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Picture {
    pub(super) board: String,
    /// None where the board was read without one.
    pub(super) daemon: Option<DaemonFacts>,
    /// What keeps the daemon from its work.
    pub(super) troubles: Vec<String>,
    /// Those that have tasks, in their order.
    pub(super) groups: Vec<Group>,
}
