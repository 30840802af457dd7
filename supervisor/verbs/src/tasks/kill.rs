//! `kill`: ends a run at once, or sends its worker a signal.

use std::fmt;
use std::str::FromStr;

use kernel::{RunId, Status, TaskId};
use nix::sys::signal::Signal;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::bulk::{Bulk, TaskResult, outcome};
use super::selection::{FLAGS, Matching, Rows, on_tasks};
use api::command::Command;
use api::{Call, Verb, blocking, verb};
use base::exit::Code;
use base::failure::{Failure, with_causes};
use base::terminal::Screen;
use host::worker_signal::{self, SignalError};

/// End the runs of tasks at once, or send their workers a signal
#[derive(Clone, Debug, Default, clap::Args, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[command(after_help = "\
Without --signal it is `cancel` without time to clean up: the worker and everything that
it has started get SIGKILL, and the task is blocked until `retry` or `archive`.

With --signal the first process of the worker gets that signal, and nothing else is
done: how the run and the task continue is up to the worker. An agent
that takes messages gets HUP, INT, QUIT, TERM, USR1, USR2 and KILL, and no other.

Examples:
  supervisor kill t_0123abcd
  supervisor kill t_0123abcd t_4567cdef --reason 'it wrote to the wrong disk'
  supervisor kill --tenant acme --dry-run
  supervisor kill --signal USR1 t_0123abcd
  supervisor kill -9 t_0123abcd   (the same as --signal 9)")]
pub struct Kill {
    /// The tasks
    #[arg(value_name = "TASK", required_unless_present_any = FLAGS, conflicts_with_all = FLAGS)]
    pub task_ids: Vec<TaskId>,
    /// Send only this signal: a name such as USR1 or SIGUSR1, or a number
    #[arg(long, short, value_name = "SIGNAL")]
    pub signal: Option<SignalName>,
    /// The reason; kept as a comment
    #[arg(long, value_name = "TEXT", conflicts_with = "signal")]
    pub reason: Option<String>,
    #[command(flatten)]
    #[serde(skip)]
    pub matching: Matching,
}

on_tasks!(Kill, Running);

/// A signal, by name or number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(with = "String")]
pub struct SignalName(Signal);

/// Error for a text that is neither the name nor the number of a signal.
#[derive(Debug, thiserror::Error)]
#[error("`{0}` is not a signal: write a name such as TERM or SIGUSR1, or a number from 1 to 31")]
pub struct SignalNameError(String);

impl FromStr for SignalName {
    type Err = SignalNameError;

    fn from_str(text: &str) -> Result<Self, SignalNameError> {
        let name = text.to_ascii_uppercase();
        let named = || format!("SIG{}", name.strip_prefix("SIG").unwrap_or(&name)).parse::<Signal>().ok();
        let signal = match text.parse::<i32>() {
            Ok(number) => Signal::try_from(number).ok(),
            Err(_) => named(),
        };
        signal.map(SignalName).ok_or_else(|| SignalNameError(text.to_owned()))
    }
}

impl TryFrom<String> for SignalName {
    type Error = SignalNameError;

    fn try_from(text: String) -> Result<Self, SignalNameError> {
        text.parse()
    }
}

impl From<SignalName> for String {
    fn from(signal: SignalName) -> String {
        signal.to_string()
    }
}

impl fmt::Display for SignalName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.as_str())
    }
}

/// Signal that was sent, with the pid of the process that got it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Sent {
    pub signal: String,
    pub pid: i32,
}

/// Result for a task.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct KilledOne {
    #[serde(flatten)]
    pub one: TaskResult,
    /// Signal that was sent to the worker; none for a request without `--signal`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sent: Option<Sent>,
}

#[derive(Debug, Serialize, Deserialize)]
pub struct Killed {
    /// Entries, one per task, in the order given.
    pub results: Vec<KilledOne>,
}

impl Rows for Killed {
    fn none() -> Self {
        Killed { results: Vec::new() }
    }

    fn add(&mut self, more: Self) {
        self.results.extend(more.results);
    }
}

impl Verb for Kill {
    verb! { "kill": Operator, Write, members => Killed }

    async fn run(self, call: Call) -> Result<Killed, Failure> {
        call.refuse_live_without_daemon(&self.task_ids).await?;
        match self.signal {
            Some(signal) => send(&call, self.task_ids, signal).await,
            None => end(&call, self.task_ids, self.reason).await,
        }
    }
}

impl Command for Kill {
    fn show(reply: &Killed, screen: &mut Screen) {
        for KilledOne { one, sent } in &reply.results {
            match sent {
                None => one.show("Killed", screen),
                Some(Sent { signal, pid }) => {
                    let status = one.status.map(|status| format!(" ({status})")).unwrap_or_default();
                    screen.line(format!("Sent {signal} to process {pid} of {}{status}", one.id));
                }
            }
        }
    }

    fn verdict(reply: &Killed) -> u8 {
        reply.results.iter().find_map(|killed| killed.one.code).map_or(0, Code::exit)
    }
}

/// Sends a signal to the workers of tasks, and writes nothing to the board.
async fn send(call: &Call, tasks: Vec<TaskId>, signal: SignalName) -> Result<Killed, Failure> {
    let ids = tasks.clone();
    let found =
        call.read(move |view| Ok(ids.iter().map(|id| view.expect_task(id)).collect::<Vec<_>>())).await?;
    let (mut attempts, mut sent) = (Vec::new(), Vec::new());
    for (id, task) in tasks.into_iter().zip(found) {
        let delivered = match task {
            Ok(task) => match task.current_run_id {
                Some(run) => deliver(call, run, signal)
                    .await?
                    .map(|pid| (task.status, pid))
                    .map_err(|why| not_delivered(&id, task.status, &why)),
                None => Err(no_worker(&id, task.status, "it is not running")),
            },
            Err(error) => Err(error),
        };
        sent.push(delivered.as_ref().ok().map(|(_, pid)| Sent { signal: signal.to_string(), pid: *pid }));
        attempts.push((id, delivered.map(|(status, _)| (status, None))));
    }
    let results = Bulk::collect(attempts)?.results.into_iter().zip(sent);
    Ok(Killed { results: results.map(|(one, sent)| KilledOne { one, sent }).collect() })
}

/// Cancels the runs of tasks, then sends SIGKILL to their workers, so that these have no time to clean up.
async fn end(call: &Call, tasks: Vec<TaskId>, reason: Option<String>) -> Result<Killed, Failure> {
    // The runs are read before the cancellation, which can close a run. The worker of a run that starts in between is
    // cancelled too, but gets the usual grace period.
    let ids = tasks.clone();
    let runs =
        call.read(move |view| Ok(ids.iter().map(|id| view.expect_task(id)).collect::<Vec<_>>())).await?;
    let bulk = call
        .write(move |board, actor| {
            Bulk::each(board, tasks, |board, id| {
                let task = board.expect_task(id)?;
                if task.current_run_id.is_none() {
                    return Err(not_running(id, task.status));
                }
                Ok(outcome(&board.cancel(id, reason.as_deref(), actor)?))
            })
        })
        .await?;
    let cancelled = bulk.results.iter().zip(runs).filter(|(one, _)| one.ok);
    for run in cancelled.filter_map(|(_, task)| task.ok()?.current_run_id) {
        // A failed signal is only logged: the cancellation ends the run anyway after its grace period.
        if let Err(error) = deliver(call, run, SignalName(Signal::SIGKILL)).await? {
            tracing::info!(%run, error = with_causes(&error), "worker_not_killed");
        }
    }
    Ok(Killed { results: bulk.results.into_iter().map(|one| KilledOne { one, sent: None }).collect() })
}

/// Sends a signal to the worker of a run. Returns the pid of the process that got it. The inner error concerns this run
/// alone; the outer error ends the request.
async fn deliver(call: &Call, run: RunId, signal: SignalName) -> Result<Result<i32, SignalError>, Failure> {
    let dir = call.service.root().run_dir(call.board()?.name(), run);
    let Some(signal) = rustix::process::Signal::from_named_raw(signal.0 as i32) else {
        return Err(Failure::usage(format!("{signal} has no name on this host")));
    };
    blocking("the signal was not sent", move || worker_signal::send(&dir, signal)).await
}

fn not_delivered(id: &TaskId, status: Status, why: &SignalError) -> kernel::Error {
    let (message, hint) = match why {
        SignalError::NotPassedOn { .. } => (
            format!("{id} cannot be signalled: {why}"),
            format!("name one of those, or end the run: `supervisor kill {id}`"),
        ),
        SignalError::NotStarted => (
            format!("{id} has no worker to signal: {why}"),
            format!(
                "send it again when `supervisor status` shows it as running, or end it: `supervisor kill {id}`"
            ),
        ),
        _ => return no_worker(id, status, &with_causes(why)),
    };
    kernel::Error::Conflict { message, hint: Some(hint) }
}

fn not_running(id: &TaskId, status: Status) -> kernel::Error {
    kernel::Error::Conflict { message: format!("{id} is not running"), hint: Some(instead(id, status)) }
}

fn no_worker(id: &TaskId, status: Status, why: &str) -> kernel::Error {
    kernel::Error::Conflict {
        message: format!("{id} has no worker to signal: {why}"),
        hint: Some(instead(id, status)),
    }
}

/// Returns commands that help with a task without a worker: `show`, and the command that ends such a task.
fn instead(id: &TaskId, status: Status) -> String {
    let end = match status {
        Status::Todo | Status::Scheduled | Status::Ready => {
            format!("; to end a waiting task: `supervisor cancel {id}`")
        }
        Status::Blocked | Status::Triage | Status::Review | Status::Done => {
            format!("; `supervisor archive {id}` takes it off the board")
        }
        Status::Running | Status::Archived => String::new(),
    };
    format!("`supervisor show {id}`{end}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signal_is_a_name_with_or_without_its_beginning_or_a_number() {
        for text in ["USR1", "SIGUSR1", "usr1", "10"] {
            assert_eq!(text.parse::<SignalName>().unwrap().to_string(), "SIGUSR1", "{text}");
        }
        for text in ["", "SIG", "NOPE", "0", "99", "-9"] {
            assert!(text.parse::<SignalName>().is_err(), "{text}");
        }
    }
}
