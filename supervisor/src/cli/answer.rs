//! `answer` at the command line. Without an answer in its arguments it asks the person at the terminal.

use std::io::IsTerminal as _;

use kernel::{BlockKind, Question};

use crate::client::Client;
use crate::output::Output;
use base::failure::Failure;
use base::terminal::choose;
use verbs::{Answer, Show};

pub(super) async fn run(client: &Client, mut verb: Answer, output: Output) -> Result<u8, Failure> {
    let words = std::mem::take(&mut verb.words);
    verb.reply = match words.as_slice() {
        [] if std::io::stdin().is_terminal() && std::io::stderr().is_terminal() && !output.json() => {
            Some(ask(client, &verb).await?)
        }
        [] => None,
        words => Some(words.join(" ")),
    };
    super::call(client, verb, output).await
}

/// Shows the question and returns the answer as text: the number of a choice would be wrong if another question came
/// meanwhile.
async fn ask(client: &Client, verb: &Answer) -> Result<String, Failure> {
    let shown = client.call(&Show { task_id: verb.task_id.clone(), ..Show::default() }).await?;
    let task = shown.task;
    if task.block_kind != Some(BlockKind::NeedsInput) {
        let why = shown.why.map_or_else(|| task.status.to_string(), |why| why.text);
        return Err(Failure::new(
            base::exit::Code::Conflict,
            format!("{} has no open question: {why}", task.id),
        )
        .hint(format!("supervisor show {}", task.id)));
    }
    let question = task.question.unwrap_or_else(|| Question {
        text: task.block_reason.unwrap_or_else(|| task.title.clone()),
        ..Question::default()
    });
    let choice = tokio::task::spawn_blocking(move || choose::ask(&question)).await;
    let failed = |e: &dyn std::fmt::Display| Failure::failed(format!("the terminal cannot be read: {e}"));
    match choice.map_err(|e| failed(&e))?.map_err(|e| failed(&e))? {
        Some(answer) => Ok(answer),
        None => Err(Failure::usage("no answer was given").hint("nothing was changed; the task still waits")),
    }
}
