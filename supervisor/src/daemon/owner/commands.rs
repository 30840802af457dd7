//! The commands of schedules: each tick's is carried out by a process of this program, and what became of it is noted on the board.
//!
//! A daemon that dies meanwhile leaves the tick as it was, and the next one carries it out again: the command is given the tick, and
//! does nothing that it has done for it.

use std::process::Stdio;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use kernel::{BoardName, DueCommand, View};
use tokio::io::{AsyncRead, AsyncReadExt as _};

use crate::daemon::run::context::Context;
use crate::failure::Failure;

/// How many commands of one board are begun at once.
const AT_ONCE: u32 = 8;
/// How long a command may take.
const LONGEST: Duration = Duration::from_mins(10);
/// How much of what a command says is kept.
const SAID: usize = 4096;

/// Reads the first commands that are due on a board.
pub(super) fn due(view: &View<'_>) -> Result<Vec<DueCommand>, kernel::Error> {
    view.due_commands(AT_ONCE)
}

/// Carries out those of what is due that are not under way. What is begun goes on by itself.
pub(super) fn carry_out(context: &Arc<Context>, name: &BoardName, due: Vec<DueCommand>) {
    for command in due {
        let key = (name.clone(), command.schedule.clone(), command.tick);
        if !context.commands.lock().unwrap_or_else(PoisonError::into_inner).insert(key.clone()) {
            continue;
        }
        let (shared, name) = (Arc::clone(context), name.clone());
        context.tasks.spawn(async move {
            let failure = execute(&shared, &name, &command).await.err();
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
    board.write(move |board| board.settle_command(&command, failure.as_deref())).await
}

/// Runs one command until it ends. An error says why it failed.
async fn execute(context: &Context, name: &BoardName, command: &DueCommand) -> Result<(), String> {
    let root = context.service.root();
    let mut process = tokio::process::Command::new("/proc/self/exe");
    process
        .arg0("supervisor")
        .args(root.own_options())
        .arg("--board")
        .arg(name.as_str())
        .args(&command.words);
    process.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
    for variable in ["SUPERVISOR_BOARD", "HERMES_KANBAN_BOARD", "SUPERVISOR_TENANT", "NOTIFY_SOCKET"] {
        process.env_remove(variable);
    }
    let mut child = process.spawn().map_err(|e| format!("the command cannot be started: {e}"))?;
    let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
    let ended = async {
        // What is refused of a fleet stands in the report, and what ends the whole call in an error.
        let (report, error) = tokio::join!(last_of(stdout), last_of(stderr));
        (child.wait().await, in_a_line(&format!("{error}\n{report}")))
    };
    match tokio::time::timeout(LONGEST, ended).await {
        Err(_) => Err(format!("the command took longer than {} min", LONGEST.as_secs() / 60)),
        Ok((Err(e), _)) => Err(format!("the end of the command is not known: {e}")),
        Ok((Ok(status), _)) if status.success() => Ok(()),
        Ok((Ok(status), said)) => Err(format!("the command ended with {status}: {said}")),
    }
}

/// The lines of a text as one: it becomes a note, which a table shows in a cell.
fn in_a_line(text: &str) -> String {
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    lines.collect::<Vec<_>>().join("; ")
}

/// Reads to the end, and returns the last [`SAID`] bytes from the beginning of a line on.
async fn last_of(output: Option<impl AsyncRead + Unpin>) -> String {
    let (mut said, mut part, mut is_cut) = (Vec::new(), vec![0; SAID], false);
    let Some(mut output) = output else { return String::new() };
    // What cannot be read says nothing; how the command ends is what counts.
    while let Ok(count) = output.read(&mut part).await
        && count > 0
    {
        said.extend_from_slice(part.get(..count).unwrap_or_default());
        is_cut |= said.len() > SAID;
        said.drain(..said.len().saturating_sub(SAID));
    }
    let text = String::from_utf8_lossy(&said);
    let text = if is_cut { text.split_once('\n').map_or(&*text, |(_, rest)| rest) } else { &text };
    text.trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_command_says_is_one_line() {
        assert_eq!(in_a_line("error: no\n\n  hint: try\n"), "error: no; hint: try");
    }

    #[tokio::test]
    async fn the_last_lines_are_kept() {
        let lines = (0..10_000).map(|at| format!("line {at}\n")).collect::<Vec<_>>().concat();
        let kept = last_of(Some(lines.as_bytes())).await;
        assert!(kept.len() <= SAID && kept.starts_with("line ") && kept.ends_with("line 9999"), "{kept}");
        assert_eq!(last_of(Some(&b"all\nof it\n"[..])).await, "all\nof it");
        assert_eq!(last_of(None::<&[u8]>).await, "");
    }
}
