//! The reply of a verb about many tasks: one row for each, and an exit code that reports failures.

use kernel::{Board, Handoff, Settled, TaskId};
use serde::{Deserialize, Serialize};

use super::selection::Rows;
use base::exit::Code;
use base::failure::Failure;
use base::terminal::{Ink, Screen};

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct TaskResult {
    pub id: TaskId,
    pub ok: bool,
    /// The new status; none if the verb failed for this task.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<kernel::Status>,
    /// Further notes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub code: Option<Code>,
}

impl TaskResult {
    /// Returns the row of a request about a single task.
    pub fn from_result(id: TaskId, done: Result<kernel::Status, Failure>) -> Self {
        row(id, done.map(|status| (status, None)))
    }

    pub fn show(&self, verb: &str, screen: &mut Screen) {
        if let Some(error) = &self.error {
            let label = screen.paint(Ink::Red, "failed:");
            // Most error messages contain the task's id already.
            let named = error.contains(self.id.as_str());
            let task = if named { String::new() } else { format!("{}: ", self.id) };
            screen.line(format!("{label} {task}{error}"));
            if let Some(hint) = &self.hint {
                screen.line(format!("        hint: {hint}"));
            }
            return;
        }
        let status = self.status.map(|status| format!(" ({status})")).unwrap_or_default();
        let note = self.note.as_deref().map(|note| format!(": {note}")).unwrap_or_default();
        screen.line(format!("{verb} {}{status}{note}", self.id));
    }
}

/// The new status of a task with a note for the user, or the error.
pub(crate) type TaskOutcome = Result<(kernel::Status, Option<String>), kernel::Error>;

#[derive(Debug, Serialize, Deserialize)]
pub struct Bulk {
    /// Entries, one per task, in the order given.
    pub results: Vec<TaskResult>,
}

impl Rows for Bulk {
    fn none() -> Self {
        Bulk { results: Vec::new() }
    }

    fn add(&mut self, more: Self) {
        self.results.extend(more.results);
    }
}

impl Bulk {
    /// Takes a step for each task, each in a savepoint of its own.
    pub fn each(
        board: &mut Board<'_>,
        tasks: impl IntoIterator<Item = TaskId>,
        step: impl FnMut(&mut Board<'_>, &TaskId) -> TaskOutcome,
    ) -> Result<Self, kernel::Error> {
        Self::collect(attempts(board, tasks, step))
    }

    /// Like [`Bulk::each`], but a single task that failed gets a row too.
    pub(crate) fn rows(
        board: &mut Board<'_>,
        tasks: impl IntoIterator<Item = TaskId>,
        step: impl FnMut(&mut Board<'_>, &TaskId) -> TaskOutcome,
    ) -> Self {
        Bulk {
            results: attempts(board, tasks, step)
                .into_iter()
                .map(|(id, attempt)| tried(id, attempt))
                .collect(),
        }
    }

    /// Collects the results of the tasks. If the only task failed, the whole call fails.
    pub(crate) fn collect(mut results: Vec<(TaskId, TaskOutcome)>) -> Result<Self, kernel::Error> {
        match results.pop() {
            Some((_, Err(error))) if results.is_empty() => return Err(error),
            last => results.extend(last),
        }
        Ok(Bulk { results: results.into_iter().map(|(id, attempt)| tried(id, attempt)).collect() })
    }

    pub fn show(&self, verb: &str, screen: &mut Screen) {
        for one in &self.results {
            one.show(verb, screen);
        }
    }

    /// The exit code: the code of the first failure, else 0.
    pub fn verdict(&self) -> u8 {
        self.results.iter().find_map(|one| one.code).map_or(0, Code::exit)
    }
}

fn attempts(
    board: &mut Board<'_>,
    tasks: impl IntoIterator<Item = TaskId>,
    mut step: impl FnMut(&mut Board<'_>, &TaskId) -> TaskOutcome,
) -> Vec<(TaskId, TaskOutcome)> {
    let attempt = |id: TaskId| {
        let attempt = board.attempt(|board| step(board, &id));
        (id, attempt)
    };
    tasks.into_iter().map(attempt).collect()
}

fn tried(id: TaskId, attempt: TaskOutcome) -> TaskResult {
    row(id, attempt.map_err(Failure::from))
}

fn row(id: TaskId, attempt: Result<(kernel::Status, Option<String>), Failure>) -> TaskResult {
    match attempt {
        Ok((status, note)) => {
            TaskResult { id, ok: true, status: Some(status), note, error: None, hint: None, code: None }
        }
        Err(failure) => TaskResult {
            id,
            ok: false,
            status: None,
            note: None,
            error: Some(failure.message),
            hint: failure.hint,
            code: Some(failure.code),
        },
    }
}

/// Defines the parts of a command that replies with a [`Bulk`]: its output, with this word for each success, and the
/// exit code.
macro_rules! shown {
    ($done:literal) => {
        fn show(reply: &Bulk, screen: &mut base::terminal::Screen) {
            reply.show($done, screen);
        }

        fn verdict(reply: &Bulk) -> u8 {
            reply.verdict()
        }
    };
}

pub(crate) use shown;

/// Returns the status of a task and a note if its worker has to end first.
pub(crate) fn outcome(settled: &Settled) -> (kernel::Status, Option<String>) {
    (settled.task.status, pending(settled.effect))
}

/// Like [`outcome`], for a handoff with artifacts. Its note says if the files are not copied: the supervisor takes
/// files only from its own runs.
pub(crate) fn handed_over(settled: &Settled, handoff: &Handoff) -> (kernel::Status, Option<String>) {
    let (status, note) = outcome(settled);
    let in_metadata = handoff.metadata.as_ref().and_then(|metadata| metadata.get("artifacts")?.as_array());
    let declared = handoff.artifacts.len().max(in_metadata.map_or(0, Vec::len));
    if settled.effect == kernel::Effect::Now && declared > 0 {
        let warning = "its files stay where they are, because no run of this supervisor made them; keep them with \
                       `supervisor attach`";
        return (status, Some(warning.to_owned()));
    }
    (status, note)
}

/// Note about a change that waits for a worker's end.
pub(crate) fn pending(effect: kernel::Effect) -> Option<String> {
    match effect {
        kernel::Effect::Now => None,
        kernel::Effect::WhenRunEnds => Some("recorded; takes effect when its worker has ended".to_owned()),
    }
}
