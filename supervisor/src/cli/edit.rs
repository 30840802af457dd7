//! `edit` at the command line: with nothing named it opens the task in an editor.

use std::io::{IsTerminal as _, Write as _};
use std::process::Command;

use crate::api::blocking;
use crate::client::Client;
use crate::environment;
use crate::failure::Failure;
use crate::output::Output;
use crate::verbs::{Edit, Show};

pub(super) async fn run(client: &Client, mut verb: Edit, output: Output) -> Result<u8, Failure> {
    let terminal = std::io::stdin().is_terminal() && std::io::stdout().is_terminal() && !output.json();
    if verb.is_empty() && terminal {
        let task = client.call(&Show { task_id: verb.task_id.clone(), ..Show::default() }).await?.task;
        let before = format!("{}\n\n{}\n", task.title, task.body.as_deref().unwrap_or_default().trim_end());
        let text = before.clone();
        let after = blocking("failed to wait for the editor", move || edited(&text)).await??;
        if after == before {
            return Err(Failure::usage("nothing was changed").hint("the task is as it was"));
        }
        let (title, body) = parted(&after);
        verb.title = Some(title.to_owned()).filter(|title| *title != task.title);
        verb.body = Some(body.to_owned()).filter(|body| *body != task.body.unwrap_or_default().trim_end());
    }
    super::call(client, verb, output).await
}

/// The first line, and what follows the empty lines after it.
fn parted(text: &str) -> (&str, &str) {
    let (title, body) = text.split_once('\n').unwrap_or((text, ""));
    (title.trim(), body.trim_start_matches('\n').trim_end())
}

/// Lets the person change a text in the editor of the environment.
pub(super) fn edited(text: &str) -> Result<String, Failure> {
    let failed = |e: &std::io::Error| Failure::failed(format!("the text cannot be edited: {e}"));
    let mut file = tempfile::Builder::new().suffix(".md").tempfile().map_err(|e| failed(&e))?;
    file.write_all(text.as_bytes()).map_err(|e| failed(&e))?;
    let editor =
        ["VISUAL", "EDITOR"].into_iter().find_map(environment::text).unwrap_or_else(|| "vi".to_owned());
    // As git does: the variable may hold arguments, so a shell takes it apart.
    let status = Command::new("/bin/sh")
        .args(["-c", &format!("{editor} \"$@\""), "editor"])
        .arg(file.path())
        .status()
        .map_err(|e| failed(&e))?;
    if !status.success() {
        return Err(Failure::failed(format!("the editor `{editor}` ended with {status}"))
            .hint("nothing was changed; set EDITOR to another one"));
    }
    std::fs::read_to_string(file.path()).map_err(|e| failed(&e))
}

#[cfg(test)]
mod tests {
    use super::parted;

    #[test]
    fn the_first_line_is_the_title_and_the_rest_the_body() {
        assert_eq!(parted("a title\n\nline 1\n\nline 3\n"), ("a title", "line 1\n\nline 3"));
        assert_eq!(parted("only a title\n\n\n"), ("only a title", ""));
        assert_eq!(parted(""), ("", ""));
    }
}
