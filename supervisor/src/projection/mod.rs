//! `supervisor __kanban PROGRAM …`: the worker of a lane whose program brings a board of its own, that of `hermes kanban`.
//!
//! ```text
//! board ──show──► a database with this task alone ◄──kanban_*── PROGRAM
//!   ▲                         │
//!   └──complete, comment, …───┘  of this run, with its token
//! ```
//!
//! It runs confined, as the worker's user, and starts the program: what that writes into its database is read here and nowhere else. Each
//! change becomes the verb that it stands for, with the types and the checks of every worker, while the program works and once more when
//! it has ended. What the board refuses is written back into the thread of the task, where the model reads it, and said at the end.

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

use self::carry::{Carrier, Stage};
use self::conversations::Conversations;
use crate::client::Client;
use crate::environment;
use crate::failure::Failure;
use crate::terminal::{complain, print};

/// How long a change waits until it is passed on. A database of another process has no notification, and a look costs a few pages.
const LOOK: Duration = Duration::from_millis(500);
/// What the program reads as the path of its board.
const DATABASE: &str = "HERMES_KANBAN_DB";
/// What the program reads as its task. Without it, it has no tools for a board.
const TASK: &str = "HERMES_KANBAN_TASK";
/// The codes of a shell for a command that cannot be executed, and for one that is not there.
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

/// Runs the program on a board of its own, and returns its exit code.
async fn work(words: &[OsString]) -> Result<u8, Failure> {
    let (program, rest) = words
        .split_first()
        .ok_or_else(|| Failure::failed("it names no program").hint("`supervisor help docs/lanes.md`"))?;
    let client = Client::of_this_run()?;
    let task = facts::gather(&client).await?;
    let path = place()?;
    let unmade = |e| Failure::failed(format!("its board cannot be made: {e}"));
    let board = Projection::make(&path, &task).map_err(unmade)?;
    let failed = |e: io::Error| Failure::failed(format!("failed to start: {e}"));
    let conversations = Conversations::prepare()
        .map_err(|e| Failure::failed(format!("the database of its conversations cannot be linked: {e}")))?;
    // The program gets the signal as well; this process lives to tell what the program has done.
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
    carrier.look(Stage::Over).await;
    if let Some(line) = conversations.used(code(status)) {
        drop(print(&format!("\n{line}\n")));
    }
    let refused = carrier.refused();
    if !refused.is_empty() {
        // The last words of the run.
        drop(print(&format!("\nThe supervisor refused:\n{refused}\n")));
    }
    Ok(code(status))
}

/// Tells the board what the program does, until it has ended.
async fn follow(
    child: &mut Child,
    ended: &mut tokio::signal::unix::Signal,
    carrier: &mut Carrier<'_>,
) -> io::Result<ExitStatus> {
    let mut looks = tokio::time::interval(LOOK);
    looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            // Cancel-safe: a child that is not waited for now is waited for next time.
            status = child.wait() => return status,
            _ = ended.recv() => {}
            _ = looks.tick() => carrier.look(Stage::Working).await,
        }
    }
}

/// Where the database is: in the home of the run, in a directory of its own, with nothing of an earlier run.
fn place() -> Result<PathBuf, Failure> {
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

/// The exit code as a shell has it.
fn code(status: ExitStatus) -> u8 {
    let code = status.code().or_else(|| status.signal().map(|number| 128 + number));
    code.and_then(|code| u8::try_from(code).ok()).unwrap_or(1)
}
