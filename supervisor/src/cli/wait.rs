//! `wait`: ends when tasks have, with their outcome.

use kernel::{TaskId, Waiting};
use serde::Serialize;

use super::CommandLine;
use super::settle::Settling;
use crate::client::Client;
use crate::exit::Code;
use crate::failure::Failure;
use crate::output::Output;
use crate::owner::OwnerLock;
use crate::terminal::{complain, cut, printable};
use crate::time::duration::WrittenDuration;
use crate::verbs::Shown;

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
    /// End with the first one that has ended, and its outcome
    #[arg(long)]
    any: bool,
    /// End after this time: seconds, or 30s, 5m, 2h, 1d
    #[arg(long, value_name = "DURATION")]
    timeout: Option<WrittenDuration>,
}

/// How a task has ended, as `--json` prints it.
#[derive(Debug, Serialize)]
struct Ended<'a> {
    task_id: &'a TaskId,
    status: kernel::Status,
    outcome: Option<kernel::Outcome>,
    exit_code: u8,
    summary: Option<&'a str>,
    why: Option<&'a Waiting>,
}

pub(super) async fn run(line: &CommandLine, mut wait: Wait) -> Result<u8, Failure> {
    let client = &line.client()?;
    // Events name the tasks by their whole ids.
    wait.task_ids = client.whole_ids(&wait.task_ids).await?;
    let mut settling = Settling::of(client, &wait.task_ids).await?;
    let Some(limit) = wait.timeout else {
        return all(client, &mut settling, &wait, line.output).await;
    };
    let limit = limit.duration();
    if let Ok(code) = tokio::time::timeout(limit, all(client, &mut settling, &wait, line.output)).await {
        return code;
    }
    let open: Vec<&str> = settling.open().iter().map(TaskId::as_str).collect();
    let open = open.join(" ");
    let limit = crate::time::duration::brief(limit);
    Err(Failure::new(Code::TryAgain, format!("not ended within {limit}: {open}"))
        .hint(format!("supervisor wait {open}")))
}

async fn all(client: &Client, settling: &mut Settling, wait: &Wait, output: Output) -> Result<u8, Failure> {
    if OwnerLock::owner(client.root()).is_none() && client.worker().is_none() {
        complain("warning: no daemon is running, so nothing runs them: supervisor daemon");
    }
    let mut codes = vec![0; wait.task_ids.len()];
    while let Some((shown, code)) = settling.next(client).await? {
        tell(&shown, code, output)?;
        if wait.any {
            return Ok(code);
        }
        for (of, task) in codes.iter_mut().zip(&wait.task_ids) {
            if *task == shown.task.id {
                *of = code;
            }
        }
    }
    Ok(codes.into_iter().find(|code| *code != 0).unwrap_or_default())
}

fn tell(shown: &Shown, exit_code: u8, output: Output) -> Result<(), Failure> {
    let task = &shown.task;
    if output.json() {
        return output.value(&Ended {
            task_id: &task.id,
            status: task.status,
            outcome: shown.runs.last().and_then(|run| run.outcome),
            exit_code,
            summary: shown.latest_summary.as_deref(),
            why: shown.why.as_ref(),
        });
    }
    output.text(&format!("{}  {}{}\n", task.id, task.status, ending(shown)))
}

/// What a task that has ended came to, in a line behind its status: its result, or why it does not go on.
pub(super) fn ending(shown: &Shown) -> String {
    const WIDTH: usize = 200;
    let why = shown.why.as_ref().map(crate::diagnosis::why::line);
    let said = why.or_else(|| shown.latest_summary.clone());
    let said = said.and_then(|text| text.lines().next().map(printable)).unwrap_or_default();
    if said.is_empty() { said } else { format!(": {}", cut(&said, WIDTH)) }
}
