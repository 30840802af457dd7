//! `supervisor __turn_end [FORM]`: hook that agent programs call when their model ends a turn. A turn that ends without
//! a verdict goes on, with a reminder to report.
//!
//! The hook runs inside the run, confined like its program. The turn ends in any unexpected situation, and if the
//! program already goes on because of a hook. The same holds after [`REMINDERS`] in a run, so that no run becomes
//! endless.
//!
//! Codex runs a hook only after a person has trusted it; the lane has the option that skips the question, because its
//! own hook is part of its command. Settings of a repository stay unread.

use std::ffi::OsString;
use std::fs::OpenOptions;
use std::io::{Read as _, Write as _};
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use clap::ValueEnum as _;
use kernel::Purpose;
use serde::Deserialize;
use shim::lenient;

use crate::client::Client;
use base::environment;
use base::failure::Failure;
use base::terminal::print;
use setup::lanes::{Form, reminder};

/// Number of reminders per run.
const REMINDERS: u64 = 2;
/// Longest wait for the board's reply.
const ASKED: Duration = Duration::from_secs(10);
/// Limit on the input; a program's description of its turn is shorter.
const INPUT_BYTES: u64 = 1 << 20;
/// File in the run's home that counts reminders, one byte each.
const COUNT: &str = ".turn-ends";

/// Input from Claude Code, Codex and Gemini CLI.
#[derive(Deserialize)]
struct HookInput {
    /// True if the turn already goes on because of a hook.
    #[serde(default)]
    stop_hook_active: bool,
}

/// Handles the hook. `FORM` is the form of the tool names in the model's program; Claude Code's by default.
pub(crate) fn main(mut arguments: impl Iterator<Item = OsString>) -> ExitCode {
    let form = arguments.next().and_then(|word| Form::from_str(word.to_str()?, false).ok());
    let mut text = Vec::new();
    let read = std::io::stdin().lock().take(INPUT_BYTES).read_to_end(&mut text);
    // It may hold the model's last message, with a bad character in it.
    let turn: Option<HookInput> = read.ok().and_then(|_| lenient::read(&text));
    let home = environment::variable("HOME");
    let (Some(HookInput { stop_hook_active: false }), Some(home)) = (turn, home) else {
        return ExitCode::SUCCESS;
    };
    if is_reported() == Some(false) && counted(Path::new(&home)) {
        let purpose = environment::text("SUPERVISOR_PURPOSE").and_then(|word| word.parse().ok());
        let reason = reminder(purpose.unwrap_or(Purpose::Work), form.unwrap_or(Form::Claude));
        let answer = serde_json::json!({ "decision": "block", "reason": reason });
        // A program that does not read the reply ends its turn.
        drop(print(&format!("{answer}\n")));
    }
    ExitCode::SUCCESS
}

/// Returns true if the board has this run's verdict; none if unknown.
fn is_reported() -> Option<bool> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().ok()?;
    let asked = runtime.block_on(async { tokio::time::timeout(ASKED, ask()).await });
    asked.ok()?.ok()?
}

async fn ask() -> Result<Option<bool>, Failure> {
    let client = Client::of_this_run()?;
    let task = client.worker().map(|worker| worker.task.clone());
    let shown = client.call(&verbs::Show { task_id: task, ..verbs::Show::default() }).await?;
    let run_id = environment::text("SUPERVISOR_RUN_ID");
    let run = shown.runs.iter().find(|run| Some(run.id.to_string()) == run_id);
    Ok(run.map(|run| run.verdict.is_some()))
}

/// Counts a reminder. Returns false at the limit, or if it cannot be counted.
fn counted(home: &Path) -> bool {
    let file = OpenOptions::new().create(true).append(true).open(home.join(COUNT));
    let Ok(mut file) = file else { return false };
    file.metadata().is_ok_and(|meta| meta.is_file() && meta.len() < REMINDERS) && file.write_all(b".").is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_is_reminded_twice_and_never_where_that_cannot_be_counted() {
        let home = tempfile::tempdir().unwrap();
        let counted: Vec<bool> = (0..4).map(|_| counted(home.path())).collect();
        assert_eq!(counted, [true, true, false, false]);
        assert!(!super::counted(&home.path().join("missing")));
        std::fs::create_dir(home.path().join("d")).unwrap();
        std::fs::create_dir(home.path().join("d").join(COUNT)).unwrap();
        assert!(!super::counted(&home.path().join("d")));
    }
}
