//! `comment`: adds a note to a task, for people and for its workers. An `@name` in it creates a task for that profile.

use kernel::{ActorKind, Mention, Profile, TaskId, Tenant};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::obstacles;
use crate::views::parse;
use api::command::Command;
use api::{Call, Verb, verb};
use base::failure::Failure;
use base::invocation::Invocation;
use base::terminal::{Screen, printable};

/// Add a comment to a task
#[derive(Clone, Debug, Default, clap::Args, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[command(after_help = "\
`@name` of a profile creates a task for it, with the comment as its text: one for each
profile, in the mission of the task. Names in quotations and code are not meant.

Examples:
  supervisor comment t_0123abcd 'use the new endpoint'
  supervisor comment t_0123abcd '@reviewer look at this'
  supervisor comment t_0123abcd 'a long report' --max-len 4000
  supervisor comment 'halfway there'   (inside a run: the run's own task)")]
pub struct Comment {
    /// The task, then the text; inside a run the task may be left out
    #[arg(value_name = "TASK/TEXT", required = true, num_args = 1..)]
    #[serde(skip)]
    pub words: Vec<String>,
    /// The task; inside a run, the run's own task if none is named
    #[arg(skip)]
    pub task_id: Option<TaskId>,
    /// The text
    #[arg(skip)]
    pub body: String,
    /// The author [default: the caller]
    #[arg(long, value_name = "NAME")]
    pub author: Option<String>,
    /// Cut a longer text to this many characters and mark the cut
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub max_len: Option<u32>,
}

/// The reply: the comment, and the profiles that it mentions.
#[derive(Debug, Serialize, Deserialize)]
pub struct Commented {
    #[serde(flatten)]
    pub comment: kernel::Comment,
    /// Outcome of each `@name` of a profile.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub mentioned: Vec<Mention>,
    /// Obstacles that currently keep the tasks of these profiles from running, or the reason why no profile was asked.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}

/// Cuts a text to `most` characters. A cut text ends with a note of the cut if there is room for the note.
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
    verb! {
        "comment": Worker, Write,
        members,
        tool(Worker, "The people and the later workers of the task read it.")
        => Commented
    }

    fn default_to_own(&mut self, own: &TaskId) {
        self.task_id.get_or_insert_with(|| own.clone());
    }

    fn confine(&mut self, _tenant: &Tenant) -> Result<(), Failure> {
        self.author = None;
        Ok(())
    }

    async fn run(self, call: Call) -> Result<Commented, Failure> {
        let id = crate::views::parse::named(self.task_id)?;
        let author = if call.actor.kind == ActorKind::Worker { None } else { self.author };
        let body = match self.max_len {
            Some(most) => trimmed(self.body, most),
            None => self.body,
        };
        let task = id.clone();
        let (roster, config) = (call.service.roster(), call.service.config());
        let mut comment = call
            .write(move |board, actor| {
                let comment = board.comment(&id, &body, author.as_deref(), actor)?;
                let tenant = board.task_for(&id, actor)?.tenant;
                if let (Err(disabled), true) = (config.tenants.require(tenant.as_ref()), body.contains('@')) {
                    let warnings = vec![format!("nobody is asked: {}", disabled.message)];
                    return Ok(Commented { comment, mentioned: Vec::new(), warnings });
                }
                let known = |profile: &Profile| roster.profiles().any(|(name, _)| name == profile.as_str());
                // A mention by a person uses the policy of the tenant; a mention by a worker uses the policy that its
                // run may give.
                let policy = |tenant: &Tenant| config.tenants.get(tenant).and_then(|own| own.policy.clone());
                let mentioned = board.mention(&comment, known, policy, actor)?;
                Ok(Commented { comment, mentioned, warnings: Vec::new() })
            })
            .await?;
        // After the commit, so that the daemon finds the comment when it reads the messages for a running agent.
        crate::runs::steer::ring(&call, &task);
        for Mention { profile, .. } in comment.mentioned.iter().filter(|one| one.task.is_some()) {
            comment.warnings.extend(obstacles::unrunnable(profile, None, None, &call).await?);
        }
        Ok(comment)
    }
}

impl Command for Comment {
    fn localize(&mut self, here: &Invocation) -> Result<(), Failure> {
        let mut words = std::mem::take(&mut self.words);
        match (words.first().map(|word| parse::task_or_text(word, here)), here.worker()) {
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

    fn show(reply: &Commented, screen: &mut Screen) {
        screen.line(format!("Comment {} added to {}", reply.comment.id, reply.comment.task_id));
        for Mention { profile, task, refused } in &reply.mentioned {
            match (task, refused) {
                (Some(task), _) => screen.line(format!("Created {task} for {profile}")),
                (None, Some(refused)) => {
                    screen.line(printable(&format!("No task for {profile}: {refused}")));
                }
                (None, None) => {}
            }
        }
    }

    fn warnings(reply: &Commented) -> &[String] {
        &reply.warnings
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
