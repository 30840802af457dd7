//! Texts that a person edits in an editor.

use std::io::{IsTerminal as _, Write as _};
use std::path::PathBuf;
use std::process::Command;

use api::blocking;
use base::environment;
use base::failure::Failure;

/// Returns true if an editor can be shown.
pub(super) fn has_terminal() -> bool {
    std::io::stdin().is_terminal() && std::io::stdout().is_terminal()
}

/// Opens a text in the editor of the environment, as a file with this suffix, and returns the edited text. Fails if the
/// text did not change.
pub(super) async fn edited(before: String, suffix: &'static str) -> Result<String, Failure> {
    let after = {
        let before = before.clone();
        blocking("failed to wait for the editor", move || run_editor(&before, suffix)).await??
    };
    if after == before {
        return Err(
            Failure::usage("nothing was changed").hint("save the text in the editor before you leave it")
        );
    }
    Ok(after)
}

fn run_editor(text: &str, suffix: &str) -> Result<String, Failure> {
    let failed = |e: &std::io::Error| Failure::failed(format!("the text cannot be edited: {e}"));
    let mut file = tempfile::Builder::new().suffix(suffix).tempfile().map_err(|e| failed(&e))?;
    file.write_all(text.as_bytes()).map_err(|e| failed(&e))?;
    let editor =
        ["VISUAL", "EDITOR"].into_iter().find_map(environment::text).unwrap_or_else(|| "vi".to_owned());
    // As in git, a shell runs the editor, because the variable may contain arguments.
    let status = Command::new("/bin/sh")
        .args(["-c", &format!("{editor} \"$@\""), "editor"])
        .arg(file.path())
        .status()
        .map_err(|e| failed(&e))?;
    if !status.success() {
        return Err(Failure::failed(format!("the editor `{editor}` failed: {status}"))
            .hint("nothing was changed; VISUAL or EDITOR names the editor"));
    }
    std::fs::read_to_string(file.path()).map_err(|e| failed(&e))
}

/// Saves a refused text to a file that only this user can read.
pub(super) fn keep_draft(name: &str, suffix: &str, text: &str) -> Option<PathBuf> {
    let mut file = tempfile::Builder::new().prefix(&format!("{name}-")).suffix(suffix).tempfile().ok()?;
    file.write_all(text.as_bytes()).ok()?;
    file.keep().ok().map(|(_, path)| path)
}
