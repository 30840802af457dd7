//! Runs the commands of schedules, each as a process of this program, and records the results on the board.
//!
//! If the daemon dies meanwhile, the tick stays due, and the next daemon runs its command again. The command gets the
//! tick as an argument, and skips work that it has already done for that tick.
//!
//! See decision 0143.

use std::process::Stdio;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use kernel::{BoardName, DueCommand, View};
use tokio::io::{AsyncRead, AsyncReadExt as _};

use crate::run::context::Context;
use crate::run::workspace_setup::unknown_creator;
use base::failure::Failure;
use setup::automation::schedules::require_command;

/// Number of commands of one board started per read.
const AT_ONCE: u32 = 8;
/// Time limit of a command.
const LONGEST: Duration = Duration::from_mins(10);
/// Size limit of a command's recorded output, in bytes.
const SAID: usize = 4096;

/// Reads the first commands of a board that are due.
pub(super) fn due(view: &View<'_>) -> Result<Vec<DueCommand>, kernel::Error> {
    view.due_commands(AT_ONCE)
}

/// Starts the due commands that are not running yet. They go on in the background.
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

/// Runs one command until it ends. The error is the reason of its failure.
async fn execute(context: &Context, name: &BoardName, command: &DueCommand) -> Result<(), String> {
    let root = context.service.root();
    require_command(&command.words)?;
    let creator = creator(command)?;
    let (verb, words) = command.words.split_first().ok_or("the schedule has no command")?;
    let mut process = tokio::process::Command::new("/proc/self/exe");
    process
        .arg0("supervisor")
        .args(root.own_options())
        .arg("--board")
        .arg(name.as_str())
        .arg(verb)
        .args(creator)
        .args(words);
    process.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
    // Inherited settings would override the arguments, and a child must not speak to the service manager.
    for variable in ["SUPERVISOR_BOARD", "HERMES_KANBAN_BOARD", "SUPERVISOR_TENANT", "NOTIFY_SOCKET"] {
        process.env_remove(variable);
    }
    let mut child = process.spawn().map_err(|e| format!("the command cannot be started: {e}"))?;
    let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
    let ended = async {
        // A fleet reports refused directories on stdout; a failure of the whole call is on stderr.
        let (report, error) = tokio::join!(last_of(stdout), last_of(stderr));
        (child.wait().await, in_a_line(&format!("{error}\n{report}")))
    };
    match tokio::time::timeout(LONGEST, ended).await {
        Err(_) => Err(format!("the command took longer than {} min", LONGEST.as_secs() / 60)),
        Ok((Err(e), _)) => Err(format!("the end of the command is not known: {e}")),
        Ok((Ok(status), _)) if status.success() => Ok(()),
        Ok((Ok(status), output_lines)) => Err(format!("the command ended with {status}: {output_lines}")),
    }
}

/// Returns the arguments that name the user for whom the command acts. Only root acts for others.
fn creator(command: &DueCommand) -> Result<Vec<String>, String> {
    match command.creator_uid {
        _ if !nix::unistd::geteuid().is_root() => Ok(Vec::new()),
        Some(uid) => Ok(vec!["--creator".to_owned(), uid.to_string()]),
        None => Err(unknown_creator(&command.schedule)),
    }
}

/// Joins the lines of a text into one, for a note that a table shows in a cell.
fn in_a_line(text: &str) -> String {
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    lines.collect::<Vec<_>>().join("; ")
}

/// Reads to the end, and returns at most the last [`SAID`] bytes, from the beginning of a line.
async fn last_of(output: Option<impl AsyncRead + Unpin>) -> String {
    let (mut output_lines, mut part, mut is_cut) = (Vec::new(), vec![0; SAID], false);
    let Some(mut output) = output else { return String::new() };
    // A read error only shortens the text; the command's exit status decides.
    while let Ok(count) = output.read(&mut part).await
        && count > 0
    {
        output_lines.extend_from_slice(part.get(..count).unwrap_or_default());
        is_cut |= output_lines.len() > SAID;
        output_lines.drain(..output_lines.len().saturating_sub(SAID));
    }
    let text = String::from_utf8_lossy(&output_lines);
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
