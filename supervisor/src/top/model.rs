//! State of `top`: the last picture of the board, the selected task, and the mode of the keys.

use std::time::Duration;

use kernel::{Question, TaskId};

use super::message::{Query, TopAction};
use super::peek::LogView;
use super::picture::{Picture, Section, TaskKind, TaskRow};

/// Distance from the end of the read rows at which the next ones are requested.
const NEAR_THE_END: usize = 5;

#[derive(Clone, Debug, Default, PartialEq)]
pub(super) enum ScreenMode {
    #[default]
    Browse,
    Help,
    Peek(LogView),
    Answer(Answering),
    Approve(Approving),
    Cancel(DialogTask),
    Prompt(InputLine),
}

/// Task of a dialog, which stays the same when the list moves.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct DialogTask {
    pub(super) task: TaskId,
    pub(super) title: String,
}

/// A question being answered.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Answering {
    pub(super) target: DialogTask,
    pub(super) question: Question,
    /// Index of the selected entry.
    pub(super) at: usize,
}

impl Answering {
    /// Returns the number of entries.
    pub(super) fn entries(&self) -> usize {
        self.question.choices.len() + usize::from(self.question.free_text)
    }
}

/// An approval in progress.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Approving {
    pub(super) target: DialogTask,
    pub(super) of: Approved,
    /// Further facts about it.
    pub(super) facts: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Approved {
    /// Completed work of a task.
    Work,
    /// Start of a task that requires approval.
    Start,
}

/// A line of text being typed.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct InputLine {
    pub(super) purpose: Purpose,
    pub(super) text: String,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Purpose {
    Tenant,
    Search,
    Answer(DialogTask, Question),
    Changes(DialogTask),
    Denial(DialogTask),
}

/// Last notice to the person.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum ScreenNotice {
    Done(String),
    Refused(String),
}

impl ScreenNotice {
    /// Returns its duration. A refusal is longer, and needs more time.
    fn lasts(&self) -> Duration {
        match self {
            ScreenNotice::Done(_) => Duration::from_secs(6),
            ScreenNotice::Refused(_) => Duration::from_secs(12),
        }
    }
}

/// State of the display.
#[derive(Clone, Debug, Default)]
pub(super) struct TopModel {
    pub(super) picture: Option<Picture>,
    /// Reason why the picture is outdated, if it is.
    pub(super) lost: Option<String>,
    pub(super) query: Query,
    pub(super) mode: ScreenMode,
    notice: Option<(ScreenNotice, Duration)>,
    /// Time since the start of `top`, as last received.
    now: Duration,
    chosen: Option<Chosen>,
}

/// The selected row.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Chosen {
    task: TaskId,
    section: Section,
    /// Index in its section.
    at: usize,
}

impl Chosen {
    /// Returns true for the selected row. The first task of an asking mission appears twice: in its own section, and
    /// with the question.
    fn is(&self, row: &TaskRow) -> bool {
        row.id == self.task && row.kind.section() == self.section
    }
}

impl TopModel {
    /// Makes an empty state for a part of a board.
    pub(super) fn for_query(query: Query) -> Self {
        TopModel { query, ..TopModel::default() }
    }

    /// Shows a notice from now on, in place of the last one.
    pub(super) fn say(&mut self, notice: ScreenNotice) {
        let until = self.now + notice.lasts();
        self.notice = Some((notice, until));
    }

    /// Removes the notice.
    pub(super) fn hush(&mut self) {
        self.notice = None;
    }

    /// Returns the present notice.
    pub(super) fn notice(&self) -> Option<&ScreenNotice> {
        self.notice.as_ref().map(|(notice, _)| notice)
    }

    /// Returns the end of the notice, in time since the start.
    pub(super) fn notice_ends(&self) -> Option<Duration> {
        self.notice.as_ref().map(|(_, until)| *until)
    }

    /// Updates the time.
    pub(super) fn pass_to(&mut self, now: Duration) {
        self.now = now;
        self.notice.take_if(|(_, until)| *until <= now);
    }

    /// Returns all rows, in display order.
    pub(super) fn rows(&self) -> impl Iterator<Item = &TaskRow> {
        self.picture.iter().flat_map(|picture| &picture.groups).flat_map(|group| &group.rows)
    }

    /// Returns the selected row.
    pub(super) fn row(&self) -> Option<&TaskRow> {
        let chosen = self.chosen.as_ref()?;
        self.rows().find(|row| chosen.is(row))
    }

    /// True for the selected row.
    pub(super) fn has_mark(&self, row: &TaskRow) -> bool {
        self.chosen.as_ref().is_some_and(|chosen| chosen.is(row))
    }

    /// Shows a new picture. The selection follows its task within its section; otherwise it stays at its position.
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

    /// Selects a row, or the last one.
    pub(super) fn choose(&mut self, at: usize) {
        let last = self.rows().count().saturating_sub(1);
        let at = at.min(last);
        let chosen = self.rows().nth(at).map(|row| (row.id.clone(), row.kind.section()));
        self.chosen = chosen.map(|(task, section)| {
            let before = self.rows().filter(|row| row.kind.section() < section).count();
            Chosen { task, section, at: at - before }
        });
    }

    /// Returns the index of the selected row over all sections.
    pub(super) fn at(&self) -> usize {
        self.chosen.as_ref().and_then(|chosen| self.rows().position(|row| chosen.is(row))).unwrap_or_default()
    }

    /// Requests the next page of the selected section if the selection is near its end.
    pub(super) fn more(&mut self) -> Option<TopAction> {
        let section = self.chosen.as_ref()?.section;
        let group = self.picture.as_ref()?.groups.iter().find(|group| group.section == section)?;
        let is_near = self.chosen.as_ref()?.at + NEAR_THE_END >= group.rows.len();
        (is_near && group.left_out().is_some() && self.query.add_page(section))
            .then(|| TopAction::Read(self.query.clone()))
    }

    /// Changes to another part of the board, from its beginning.
    pub(super) fn read(&mut self, query: Query) -> TopAction {
        self.query = query;
        self.chosen = None;
        TopAction::Read(self.query.clone())
    }

    /// Returns the keys that apply to the selected row, with their meaning.
    pub(super) fn offers(&self) -> Vec<(&'static str, &'static str)> {
        let own: &[(&str, &str)] = match self.row().map(|row| row.kind) {
            Some(TaskKind::Question) => &[("a", "answer"), ("c", "cancel")],
            Some(TaskKind::Approval | TaskKind::Review) => &[("A", "approve …"), ("c", "cancel")],
            Some(TaskKind::GaveUp | TaskKind::Blocked) => &[("r", "retry")],
            Some(TaskKind::Running | TaskKind::InReview) => &[("c", "cancel")],
            Some(TaskKind::Scheduled) => &[("r", "retry"), ("c", "cancel"), ("+-", "priority")],
            Some(TaskKind::Ready | TaskKind::Todo | TaskKind::Triage) => {
                &[("c", "cancel"), ("+-", "priority")]
            }
            Some(TaskKind::Done) | None => &[],
        };
        let log = self.row().map(|_| ("Enter", "log"));
        let always = [("t", "tenant"), ("/", "search"), ("?", "help"), ("q", "quit")];
        log.into_iter().chain(own.iter().copied()).chain(always).collect()
    }
}
