//! `wait`: waits for tasks to end, and exits with their outcome.

use kernel::{TaskId, Waiting};
use serde::Serialize;

use super::CommandLine;
use super::settling::Settling;
use crate::client::Client;
use crate::output::Output;
use base::exit::Code;
use base::failure::Failure;
use base::terminal::{cut, printable};
use base::time::duration::WrittenDuration;
use verbs::ShownTask;

/// Wait for tasks, and exit with their outcome
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "\
It waits until each task is done, or goes on only if a person does something, and
prints a line for each. With --timeout it ends after that time with 75.

Exit code, of the first task in the given order that is not done:
  0    all are done
  5    blocked, or waiting for a review or for triage: a person has to act
  124  its last run took too long
  N    gave up after failures: the exit code of its last run, 128 and the number
       of the signal that ended it, or 1

Examples:
  supervisor wait t_0123abcd
  supervisor wait t_0123abcd t_4567cdef --timeout 10m
  supervisor wait --any t_0123abcd t_4567cdef")]
pub(super) struct Wait {
    /// The tasks
    #[arg(value_name = "TASK", required = true)]
    task_ids: Vec<TaskId>,
    /// Return when the first of them ends, with its outcome
    #[arg(long)]
    any: bool,
    /// End after this time: seconds, or 30s, 5m, 2h, 1d
    #[arg(long, value_name = "DURATION")]
    timeout: Option<WrittenDuration>,
}

/// End of a task, as `--json` prints it.
#[derive(Debug, Serialize)]
struct TaskEnd<'a> {
    task_id: &'a TaskId,
    status: kernel::Status,
    outcome: Option<kernel::Outcome>,
    exit_code: u8,
    summary: Option<&'a str>,
    why: Option<&'a Waiting>,
    /// Commits and uncommitted changes of its work in a worktree.
    #[serde(skip_serializing_if = "Option::is_none")]
    branch_note: Option<&'a str>,
}

pub(super) async fn run(line: &CommandLine, mut wait: Wait) -> Result<u8, Failure> {
    let client = &line.client()?;
    // The ids are compared with those of events, which are complete.
    wait.task_ids = client.whole_ids(&wait.task_ids).await?;
    let mut settling = Settling::watch(client, &wait.task_ids).await?;
    let mut report = WaitReport { wait: &wait, codes: vec![0; wait.task_ids.len()], output: line.output };
    // Tasks that have ended already are reported first, so that they are reported even with a time limit of 0.
    while let Some((shown, code)) = settling.settled(client).await? {
        if report.report(&shown, code)? {
            return Ok(code);
        }
    }
    let Some(limit) = wait.timeout else {
        return report.all(client, &mut settling).await;
    };
    let limit = limit.duration();
    if let Ok(code) = tokio::time::timeout(limit, report.all(client, &mut settling)).await {
        return code;
    }
    let open: Vec<&str> = settling.open().iter().map(TaskId::as_str).collect();
    let open = open.join(" ");
    let limit = kernel::brief(limit);
    Err(Failure::new(Code::TryAgain, format!("not ended within {limit}: {open}"))
        .hint(format!("supervisor wait {open}")))
}

/// Printer of the outcomes, with the exit codes so far.
struct WaitReport<'a> {
    wait: &'a Wait,
    /// Exit code of each task in the given order; 0 for an open task.
    codes: Vec<u8>,
    output: Output,
}

impl WaitReport<'_> {
    /// Waits for the remaining tasks, or with `--any` for the first of them. Returns the exit code of the first task in
    /// the given order that is not done, or 0.
    async fn all(&mut self, client: &Client, settling: &mut Settling) -> Result<u8, Failure> {
        settling.warn_without_daemon(client).await;
        while let Some((shown, code)) = settling.next(client).await? {
            if self.report(&shown, code)? {
                return Ok(code);
            }
        }
        Ok(self.codes.iter().copied().find(|code| *code != 0).unwrap_or_default())
    }

    /// Prints and records the outcome of a task. Returns true if no other task has to be waited for.
    fn report(&mut self, shown: &ShownTask, exit_code: u8) -> Result<bool, Failure> {
        let task = &shown.task;
        for (code, _) in self.codes.iter_mut().zip(&self.wait.task_ids).filter(|(_, id)| **id == task.id) {
            *code = exit_code;
        }
        if self.output.json() {
            self.output.value(&TaskEnd {
                task_id: &task.id,
                status: task.status,
                outcome: shown.runs.last().and_then(|run| run.outcome),
                exit_code,
                summary: shown.latest_summary.as_deref(),
                why: shown.why.as_ref(),
                branch_note: task.branch_note.as_deref(),
            })?;
        } else {
            let note = task.branch_note.as_deref().map(|note| format!("  {}\n", printable(note)));
            let note = note.unwrap_or_default();
            self.output.text(&format!("{}  {}{}\n{note}", task.id, task.status, ending(shown)))?;
        }
        Ok(self.wait.any)
    }
}

/// Returns the end of the line about an ended task: the reason why the task does not continue, else the summary of its
/// work. Only the first line is used, with at most 200 characters.
pub(super) fn ending(shown: &ShownTask) -> String {
    const WIDTH: usize = 200;
    let why = shown.why.as_ref().map(upkeep::diagnosis::why::line);
    let summary = why.or_else(|| shown.latest_summary.clone());
    let summary = summary.and_then(|text| text.lines().next().map(printable)).unwrap_or_default();
    if summary.is_empty() { summary } else { format!(": {}", cut(&summary, WIDTH)) }
}
