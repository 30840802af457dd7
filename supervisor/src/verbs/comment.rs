//! `comment`: a note on a task, read by its next worker.

use kernel::{ActorKind, TaskId, Tenant};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::api::{Audience, Call, Effect, Scope, Tool, Verb};
use crate::command::Command;
use crate::failure::Failure;
use crate::invocation::Invocation;
use crate::terminal::Screen;

/// Add a comment to a task
#[derive(Clone, Debug, Default, clap::Args, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[command(after_help = "\
Examples:
  supervisor comment t_0123abcd 'use the new endpoint'
  supervisor comment t_0123abcd 'a long report' --max-len 4000
  supervisor comment 'halfway there'   (inside a run: the run's own task)")]
pub(crate) struct Comment {
    /// The task, then the text; inside a run the task may be left out
    #[arg(value_name = "TASK/TEXT", required = true, num_args = 1..)]
    #[serde(skip)]
    pub(crate) words: Vec<String>,
    /// The task; inside a run, the run's own task if none is named
    #[arg(skip)]
    pub(crate) task_id: Option<TaskId>,
    /// The text
    #[arg(skip)]
    pub(crate) body: String,
    /// The author [default: the caller]
    #[arg(long, value_name = "NAME")]
    pub(crate) author: Option<String>,
    /// Cut a longer text to this many characters and mark the cut
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) max_len: Option<u32>,
}

/// A text of at most `most` characters. A cut text ends with a note of that if there is room for it.
fn trimmed(text: String, most: u32) -> String {
    let most_chars = usize::try_from(most).unwrap_or(usize::MAX);
    if text.chars().count() <= most_chars {
        return text;
    }
    let note = format!("\n\n[cut to {most} characters by --max-len]");
    let room = most_chars.saturating_sub(note.chars().count());
    if room == 0 {
        return text.chars().take(most_chars).collect();
    }
    let head: String = text.chars().take(room).collect();
    format!("{}{note}", head.trim_end())
}

impl Verb for Comment {
    const NAME: &'static str = "comment";
    const AUDIENCE: Audience = Audience::Worker;
    const EFFECT: Effect = Effect::Write;
    const MEMBERS: bool = true;
    const TOOL: Option<Tool> =
        Some(Tool { scope: Scope::Worker, about: "The people and the later workers of the task read it." });
    type Reply = kernel::Comment;

    fn default_to_own(&mut self, own: &TaskId) {
        self.task_id.get_or_insert_with(|| own.clone());
    }

    fn confine(&mut self, _tenant: &Tenant) -> Result<(), Failure> {
        self.author = None;
        Ok(())
    }

    async fn run(self, call: Call) -> Result<kernel::Comment, Failure> {
        let id = super::texts::named(self.task_id)?;
        let author = if call.actor.kind == ActorKind::Worker { None } else { self.author };
        let body = match self.max_len {
            Some(most) => trimmed(self.body, most),
            None => self.body,
        };
        let task = id.clone();
        let comment =
            call.write(move |board, actor| board.comment(&id, &body, author.as_deref(), actor)).await?;
        super::steer::ring(&call, &task);
        Ok(comment)
    }
}

impl Command for Comment {
    fn localize(&mut self, here: &Invocation) -> Result<(), Failure> {
        let mut words = std::mem::take(&mut self.words);
        match (words.first().map(|word| word.parse::<TaskId>()), here.worker()) {
            (Some(Ok(id)), _) => {
                self.task_id = Some(id);
                words.remove(0);
            }
            (_, Some(worker)) => self.task_id = Some(worker.task.clone()),
            (Some(Err(e)), None) => return Err(Failure::usage(e.to_string())),
            (None, None) => {}
        }
        self.body = words.join(" ");
        Ok(())
    }

    fn show(reply: &kernel::Comment, screen: &mut Screen) {
        screen.line(format!("Comment {} added to {}", reply.id, reply.task_id));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_that_is_too_long_is_cut_and_says_so_and_never_gets_longer() {
        assert_eq!(trimmed("short".to_owned(), 5), "short");
        let long = "ü".repeat(100);
        let cut = trimmed(long.clone(), 60);
        assert!(cut.starts_with('ü') && cut.ends_with("[cut to 60 characters by --max-len]"), "{cut}");
        assert_eq!(cut.chars().count(), 60);
        assert_eq!(trimmed(long, 3), "üüü");
    }
}
