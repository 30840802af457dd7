//! `edit` at the command line. Without options it opens the task in an editor.

use super::editor;
use crate::client::Client;
use crate::output::Output;
use base::failure::Failure;
use verbs::{Edit, Show};

pub(super) async fn run(client: &Client, mut verb: Edit, output: Output) -> Result<u8, Failure> {
    if verb.is_empty() && editor::has_terminal() && !output.json() {
        let task = client.call(&Show { task_id: verb.task_id.clone(), ..Show::default() }).await?.task;
        let before = format!("{}\n\n{}\n", task.title, task.body.as_deref().unwrap_or_default().trim_end());
        let after = editor::edited(before, ".md").await?;
        let (title, body) = parted(&after);
        verb.title = Some(title.to_owned()).filter(|title| *title != task.title);
        verb.body = Some(body.to_owned()).filter(|body| *body != task.body.unwrap_or_default().trim_end());
    }
    super::call(client, verb, output).await
}

/// Splits a text into its first line and the rest after empty lines.
fn parted(text: &str) -> (&str, &str) {
    let (title, body) = text.split_once('\n').unwrap_or((text, ""));
    (title.trim(), body.trim_start_matches('\n').trim_end())
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
