//! What `top` knows: the last picture of the board, which task is chosen, and what a person is doing with it.

use std::time::Duration;

use kernel::{Question, TaskId};

use super::message::{Order, Query};
use super::peek::Peek;
use super::picture::{Kind, Picture, Row, Section};

/// How near the end of the rows that were read the next ones are asked for.
const NEAR_THE_END: usize = 5;

/// What the keys are about.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) enum Mode {
    #[default]
    Browse,
    Help,
    Peek(Peek),
    Answer(Answering),
    Approve(Approving),
    Cancel(Target),
    Prompt(Prompt),
}

/// The task that a dialog is about: it stays the same, however the list moves.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Target {
    pub(super) task: TaskId,
    pub(super) title: String,
}

/// A question that a person answers.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Answering {
    pub(super) target: Target,
    pub(super) question: Question,
    /// The entry with the mark.
    pub(super) at: usize,
}

impl Answering {
    /// How many entries there are to choose from.
    pub(super) fn entries(&self) -> usize {
        self.question.choices.len() + usize::from(self.question.free_text)
    }
}

/// What is approved, or not.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Approving {
    pub(super) target: Target,
    pub(super) of: Approved,
    /// What else is known of it.
    pub(super) facts: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Approved {
    /// Work that is done.
    Work,
    /// A task before it starts.
    Start,
}

/// A line of text that a person types.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Prompt {
    pub(super) purpose: Purpose,
    pub(super) text: String,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Purpose {
    Tenant,
    Search,
    Answer(Target, Question),
    Changes(Target),
    Denial(Target),
}

/// What was said last.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Notice {
    Done(String),
    Refused(String),
}

impl Notice {
    /// How long it is shown: a refusal says more, and has to be read.
    fn lasts(&self) -> Duration {
        match self {
            Notice::Done(_) => Duration::from_secs(6),
            Notice::Refused(_) => Duration::from_secs(12),
        }
    }
}

/// All that is shown.
#[derive(Clone, Debug, Default)]
pub(super) struct Model {
    pub(super) picture: Option<Picture>,
    /// Why the picture is an old one, where it is.
    pub(super) lost: Option<String>,
    pub(super) query: Query,
    pub(super) mode: Mode,
    notice: Option<(Notice, Duration)>,
    /// The time since `top` began, as it was given last.
    now: Duration,
    chosen: Option<Chosen>,
}

/// The row with the mark.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Chosen {
    task: TaskId,
    section: Section,
    /// Where it is in its section.
    at: usize,
}

impl Chosen {
    /// Whether it is this row. The first task of a mission that asks is there twice: where it stands, and with the question.
    fn is(&self, row: &Row) -> bool {
        row.id == self.task && row.kind.section() == self.section
    }
}

impl Model {
    /// Nothing yet, of a part of a board.
    pub(super) fn of(query: Query) -> Self {
        Model { query, ..Model::default() }
    }

    /// Shows a notice from now on, in the place of the one before.
    pub(super) fn say(&mut self, notice: Notice) {
        let until = self.now + notice.lasts();
        self.notice = Some((notice, until));
    }

    /// Shows no notice any more.
    pub(super) fn hush(&mut self) {
        self.notice = None;
    }

    /// What was said last, as long as it is shown.
    pub(super) fn notice(&self) -> Option<&Notice> {
        self.notice.as_ref().map(|(notice, _)| notice)
    }

    /// When the notice is shown no more, in time since `top` began.
    pub(super) fn notice_ends(&self) -> Option<Duration> {
        self.notice.as_ref().map(|(_, until)| *until)
    }

    /// Takes the time.
    pub(super) fn pass_to(&mut self, now: Duration) {
        self.now = now;
        self.notice.take_if(|(_, until)| *until <= now);
    }

    /// All rows, in the order in which they are shown.
    pub(super) fn rows(&self) -> impl Iterator<Item = &Row> {
        self.picture.iter().flat_map(|picture| &picture.groups).flat_map(|group| &group.rows)
    }

    /// The row with the mark.
    pub(super) fn row(&self) -> Option<&Row> {
        let chosen = self.chosen.as_ref()?;
        self.rows().find(|row| chosen.is(row))
    }

    /// Returns whether a row has the mark.
    pub(super) fn has_mark(&self, row: &Row) -> bool {
        self.chosen.as_ref().is_some_and(|chosen| chosen.is(row))
    }

    /// Takes a new picture. The mark stays on its task as long as that stays in its section; else it stays where it was.
    pub(super) fn look_at(&mut self, picture: Picture) {
        self.lost = None;
        self.picture = Some(picture);
        let Some(chosen) = self.chosen.take() else { return self.choose(0) };
        let same = self.rows().position(|row| chosen.is(row));
        if let Some(at) = same {
            return self.choose(at);
        }
        let before = self.rows().filter(|row| row.kind.section() < chosen.section).count();
        let beside = self.rows().filter(|row| row.kind.section() == chosen.section).count();
        self.choose(before + chosen.at.min(beside.saturating_sub(1)));
    }

    /// Puts the mark on a row, or on the last one.
    pub(super) fn choose(&mut self, at: usize) {
        let last = self.rows().count().saturating_sub(1);
        let at = at.min(last);
        let chosen = self.rows().nth(at).map(|row| (row.id.clone(), row.kind.section()));
        self.chosen = chosen.map(|(task, section)| {
            let before = self.rows().filter(|row| row.kind.section() < section).count();
            Chosen { task, section, at: at - before }
        });
    }

    /// Which row has the mark, counted over all sections.
    pub(super) fn at(&self) -> usize {
        self.chosen.as_ref().and_then(|chosen| self.rows().position(|row| chosen.is(row))).unwrap_or_default()
    }

    /// Asks for the next page of the section with the mark, where the mark is near the end of what was read.
    pub(super) fn more(&mut self) -> Option<Order> {
        let section = self.chosen.as_ref()?.section;
        let group = self.picture.as_ref()?.groups.iter().find(|group| group.section == section)?;
        let is_near = self.chosen.as_ref()?.at + NEAR_THE_END >= group.rows.len();
        (is_near && group.left_out().is_some() && self.query.add_page(section))
            .then(|| Order::Read(self.query.clone()))
    }

    /// Chooses another part of the board, from its beginning on.
    pub(super) fn read(&mut self, query: Query) -> Order {
        self.query = query;
        self.chosen = None;
        Order::Read(self.query.clone())
    }

    /// The keys that do something with the row with the mark, and what they do.
    pub(super) fn offers(&self) -> Vec<(&'static str, &'static str)> {
        let own: &[(&str, &str)] = match self.row().map(|row| row.kind) {
            Some(Kind::Question) => &[("a", "answer"), ("c", "cancel")],
            Some(Kind::Approval | Kind::Review) => &[("A", "approve …"), ("c", "cancel")],
            Some(Kind::GaveUp | Kind::Blocked) => &[("r", "retry")],
            Some(Kind::Running | Kind::InReview) => &[("c", "cancel")],
            Some(Kind::Scheduled) => &[("r", "retry"), ("c", "cancel"), ("+-", "priority")],
            Some(Kind::Ready | Kind::Todo | Kind::Triage) => &[("c", "cancel"), ("+-", "priority")],
            Some(Kind::Done) | None => &[],
        };
        let log = self.row().map(|_| ("Enter", "log"));
        let always = [("t", "tenant"), ("/", "search"), ("?", "help"), ("q", "quit")];
        log.into_iter().chain(own.iter().copied()).chain(always).collect()
    }
}
