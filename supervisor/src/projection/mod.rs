//! `supervisor __kanban PROGRAM …`: worker of a lane whose program has a board of its own, as `hermes kanban` does.
//!
//! ```text
//! board ──show──► a database with this task alone ◄──kanban_*── PROGRAM
//!   ▲                         │
//!   └──complete, comment, …───┘  of this run, with its token
//! ```
//!
//! The process runs confined, as the worker's user, and starts the program. The program's database is read only here.
//! Each change becomes the corresponding verb, with the types and checks of every worker, while the program works and
//! once more after its end. A refusal is written back into the task's comments, where the model reads it, and listed at
//! the end.
//!
//! See decision 0195.

mod carry;
mod conversations;
mod facts;

use std::ffi::OsString;
use std::io;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{ExitCode, ExitStatus};
use std::time::Duration;

use kernel::Projection;
use tokio::process::{Child, Command};
use tokio::signal::unix::{SignalKind, signal};
use tokio::time::MissedTickBehavior;

use self::carry::{Carrier, ProgramStage};
use self::conversations::Conversations;
use crate::client::Client;
use base::environment;
use base::failure::Failure;
use base::terminal::{complain, print};

/// Interval between two reads of the database. Another process's database sends no notifications, and a read costs only
/// a few pages.
const INTERVAL: Duration = Duration::from_millis(500);
/// Variable with the path of the program's board.
const DATABASE: &str = "HERMES_KANBAN_DB";
/// Variable with the program's task. Without it, the program has no board tools.
const TASK: &str = "HERMES_KANBAN_TASK";
/// Exit codes of a shell for a command that cannot be executed, and for a missing one.
const NOT_EXECUTED: u8 = 126;
const NOT_FOUND: u8 = 127;

pub(crate) fn main(arguments: impl Iterator<Item = OsString>) -> ExitCode {
    let words: Vec<OsString> = arguments.collect();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|e| Failure::failed(format!("failed to start: {e}")));
    match runtime.and_then(|runtime| runtime.block_on(work(&words))) {
        Ok(code) => ExitCode::from(code),
        Err(failure) => {
            complain(&format!("error: {}", failure.message));
            if let Some(hint) = &failure.hint {
                complain(&format!("hint: {hint}"));
            }
            ExitCode::from(failure.code.exit())
        }
    }
}

/// Runs the program on a board of its own. Returns its exit code.
async fn work(words: &[OsString]) -> Result<u8, Failure> {
    let (program, rest) = words
        .split_first()
        .ok_or_else(|| Failure::failed("it names no program").hint("`supervisor help docs/lanes.md`"))?;
    let client = Client::of_this_run()?;
    let task = facts::gather(&client).await?;
    let path = make_database_directory()?;
    let unmade = |e| Failure::failed(format!("its board cannot be made: {e}"));
    let board = Projection::make(&path, &task).map_err(unmade)?;
    let failed = |e: io::Error| Failure::failed(format!("failed to start: {e}"));
    let conversations = Conversations::prepare()
        .map_err(|e| Failure::failed(format!("the database of its conversations cannot be linked: {e}")))?;
    // The program gets the signal as well; this process stays to report the program's changes.
    let mut ended = signal(SignalKind::terminate()).map_err(failed)?;
    let started = Command::new(program).args(rest).env(DATABASE, &path).env(TASK, &task.own.id).spawn();
    let mut child = match started {
        Ok(child) => child,
        Err(error) => {
            complain(&format!("{}: {error}", program.display()));
            return Ok(if error.kind() == io::ErrorKind::NotFound { NOT_FOUND } else { NOT_EXECUTED });
        }
    };
    let mut carrier = Carrier::new(&client, board, &task);
    let status = follow(&mut child, &mut ended, &mut carrier).await.map_err(failed)?;
    carrier.report_changes(ProgramStage::Over).await;
    if let Some(line) = conversations.used(code(status)) {
        drop(print(&format!("\n{line}\n")));
    }
    let refused = carrier.refused();
    if !refused.is_empty() {
        // Last line of the run's output.
        drop(print(&format!("\nThe supervisor refused:\n{refused}\n")));
    }
    Ok(code(status))
}

/// Reports the program's changes until it has ended.
async fn follow(
    child: &mut Child,
    ended: &mut tokio::signal::unix::Signal,
    carrier: &mut Carrier<'_>,
) -> io::Result<ExitStatus> {
    let mut ticks = tokio::time::interval(INTERVAL);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            // Cancel-safe: the child is awaited again in the next turn.
            status = child.wait() => return status,
            _ = ended.recv() => {}
            _ = ticks.tick() => carrier.report_changes(ProgramStage::Working).await,
        }
    }
}

/// Makes the empty directory of the database, in the home of the run. Returns the database's path.
fn make_database_directory() -> Result<PathBuf, Failure> {
    let home = environment::text("HOME").ok_or_else(|| Failure::failed("HOME is not set"))?;
    let dir = Path::new(&home).join(".kanban-of-the-run");
    let removed = std::fs::remove_dir_all(&dir);
    let made = match removed {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        Ok(()) | Err(_) => std::fs::create_dir(&dir),
    };
    made.map_err(|e| Failure::failed(format!("{}: {e}", dir.display())))?;
    Ok(dir.join("kanban.db"))
}

/// Returns the exit code in the form of a shell.
fn code(status: ExitStatus) -> u8 {
    let code = status.code().or_else(|| status.signal().map(|number| 128 + number));
    code.and_then(|code| u8::try_from(code).ok()).unwrap_or(1)
}
