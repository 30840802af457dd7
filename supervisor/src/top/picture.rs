//! Picture of a board: its tasks in sections, the live workers, and the daemon's state.

use std::time::Duration;

use kernel::{AskingMission, BlockKind, Question, Spent, Status, Task, TaskId, Timestamp, WaitingCode};

use base::terminal::Ink;
use upkeep::diagnosis::why;
use verbs::{WorkerLine, amounts, status_ink};

/// Limit on the characters kept of a text, more than a part of the screen can show.
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

/// Kind of a task. Kinds that a person should see first come first.
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

    /// Returns the kind of a blocked task, by its reason. A plain reason is a question too, which `answer` accepts text
    /// for.
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

/// Resource use of a live worker.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Load {
    /// Percent of one processor since the last read; none after the first read.
    pub(super) cpu: Option<u64>,
    pub(super) memory_bytes: Option<u64>,
    /// Tokens of its agent, input and output.
    pub(super) tokens: Option<u64>,
}

/// A task. Its texts are not yet made printable; only the view does that.
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
    /// Reason for waiting, question, or problem.
    pub(super) says: String,
    /// Time in its present state; for a running task since its start.
    pub(super) age: Duration,
    pub(super) load: Load,
    pub(super) question: Option<Question>,
    /// Further facts, with names.
    pub(super) details: Vec<(&'static str, String)>,
}

impl Row {
    /// Makes the row of a task, with its live worker.
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
    /// Makes the row of a mission's question at a limit. The row stands for the mission's first task.
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

/// Returns the question of a task. For a task that is blocked with a reason only, that is the question.
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
        ("workspace", Some(task.workspace_path.clone().unwrap_or_else(|| task.workspace.to_string()))),
        ("branch", task.branch_name.clone()),
        ("created by", task.created_by.clone()),
        ("body", task.body.clone()),
    ];
    found.into_iter().filter_map(|(name, text)| Some((name, start_of(&text?)))).collect()
}

/// Returns as much of a text as a screen could show.
fn start_of(text: &str) -> String {
    text.chars().take(LONGEST).collect()
}

/// Tasks of a section that were read, and the number of all.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Group {
    pub(super) section: Section,
    pub(super) rows: Vec<Row>,
    pub(super) total: Total,
}

impl Group {
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
    /// More than this number, because search results are not counted.
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
    /// Reason why nothing is started, during a pause.
    pub(super) paused: Option<String>,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) struct Picture {
    pub(super) board: String,
    /// None if the board was read without a daemon.
    pub(super) daemon: Option<DaemonFacts>,
    /// Problems of the daemon.
    pub(super) troubles: Vec<String>,
    /// Sections with tasks, in order.
    pub(super) groups: Vec<Group>,
}
