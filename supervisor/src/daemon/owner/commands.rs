//! The commands of schedules: each tick's is carried out by a process of this program, and what became of it is noted on the board.
//!
//! A daemon that dies meanwhile leaves the tick as it was, and the next one carries it out again: the command is given the tick, and
//! does nothing that it has done for it.

use std::process::Stdio;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use kernel::{BoardName, DueCommand};
use tokio::io::AsyncReadExt as _;

use crate::daemon::run::context::{Context, submit};
use crate::failure::Failure;

/// How many commands of one board are begun at once.
const AT_ONCE: u32 = 8;
/// How long a command may take.
const LONGEST: Duration = Duration::from_mins(10);
/// How much of what a command says is kept.
const SAID: u64 = 4096;

/// Carries out what is due on a board and not under way. Blocking; what is begun goes on by itself.
pub(super) fn carry_out_due(context: &Arc<Context>, name: &BoardName) {
    let Ok(board) = context.service.board(name) else { return };
    // A board that cannot be read is told of by the look that follows.
    let due = board.readers().with(|view| view.due_commands(AT_ONCE)).unwrap_or_default();
    for command in due {
        let key = (name.clone(), command.schedule.clone(), command.tick);
        if !context.commands.lock().unwrap_or_else(PoisonError::into_inner).insert(key.clone()) {
            continue;
        }
        let (shared, name) = (Arc::clone(context), name.clone());
        context.tasks.spawn(async move {
            let failure = carry_out(&shared, &name, &command).await.err();
            if let Err(error) = note(&shared, &name, command, failure).await {
                tracing::warn!(board = %name, %error, "command_not_noted");
            }
            shared.commands.lock().unwrap_or_else(PoisonError::into_inner).remove(&key);
        });
    }
}

async fn note(
    context: &Context,
    name: &BoardName,
    command: DueCommand,
    failure: Option<String>,
) -> Result<(), Failure> {
    let board = context.service.board(name)?;
    submit(&board, move |board| board.settle_command(&command, failure.as_deref())).await
}

/// Runs one command to its end. An error says why it came to nothing.
async fn carry_out(context: &Context, name: &BoardName, command: &DueCommand) -> Result<(), String> {
    let root = context.service.root();
    let mut process = tokio::process::Command::new("/proc/self/exe");
    process
        .arg0("supervisor")
        .args(root.own_options())
        .arg("--board")
        .arg(name.as_str())
        .args(&command.words);
    process.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).kill_on_drop(true);
    for variable in ["SUPERVISOR_BOARD", "HERMES_KANBAN_BOARD", "SUPERVISOR_TENANT", "NOTIFY_SOCKET"] {
        process.env_remove(variable);
    }
    let mut child = process.spawn().map_err(|e| format!("the command cannot be started: {e}"))?;
    let stderr = child.stderr.take();
    let ended = async {
        let mut said = Vec::new();
        if let Some(stderr) = stderr {
            let mut stderr = stderr;
            // What cannot be read says nothing; how the command ends is what counts.
            drop((&mut stderr).take(SAID).read_to_end(&mut said).await);
            drop(tokio::io::copy(&mut stderr, &mut tokio::io::sink()).await);
        }
        (child.wait().await, String::from_utf8_lossy(&said).trim().to_owned())
    };
    match tokio::time::timeout(LONGEST, ended).await {
        Err(_) => Err(format!("the command took longer than {} min", LONGEST.as_secs() / 60)),
        Ok((Err(e), _)) => Err(format!("the end of the command is not known: {e}")),
        Ok((Ok(status), _)) if status.success() => Ok(()),
        Ok((Ok(status), said)) => Err(format!("the command ended with {status}: {said}")),
    }
}
