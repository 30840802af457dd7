//! One lane: the command, how it gets its prompt, and what a clean exit means.

use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::failure::Failure;
use crate::span::Span;

/// How a worker is started and how its ending is read.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Lane {
    /// The command. `{prompt_file}`, `{workspace}` and `{task}` are replaced in each word.
    pub(crate) argv: Vec<String>,
    /// How the worker gets its prompt.
    #[serde(default)]
    pub(crate) prompt: Prompt,
    /// What exit 0 without a verdict means.
    #[serde(default)]
    pub(crate) on_clean_exit: CleanExit,
    /// The policy of tasks that name none, instead of the configured one.
    #[serde(default)]
    pub(crate) policy: Option<String>,
    /// The account whose limits its workers share with those of other lanes that name it.
    #[serde(default)]
    pub(crate) account: Option<String>,
    /// Whom the limit of a service that one worker met holds up.
    #[serde(default)]
    pub(crate) rate_limit: RateLimit,
    /// How long, where the worker does not say it.
    #[serde(default = "rate_limit_pause")]
    pub(crate) rate_limit_pause: Span,
}

fn rate_limit_pause() -> Span {
    Span::from_secs(300)
}

/// Whom the limit of a service that one worker met holds up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum RateLimit {
    /// All tasks of the account, or of the lane where it names none.
    #[default]
    Account,
    /// That task alone.
    Task,
}

/// How a worker gets its prompt.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Prompt {
    /// The context of the task on standard input, then end of file.
    #[default]
    Stdin,
    /// The context of the task in a file that only the worker can read.
    File,
    /// The bare body of the task in a file that only the worker can read.
    BodyFile,
}

/// What exit 0 without a verdict means.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum CleanExit {
    /// The task is complete; the tail of standard output is its summary.
    Complete,
    /// The worker forgot to report: a failure.
    #[default]
    Unreported,
}

impl Lane {
    /// Reads a lane's definition.
    pub(crate) fn parse(text: &str, origin: &Path) -> Result<Self, Failure> {
        let lane: Lane = toml::from_str(text).map_err(|e| {
            Failure::usage(format!("{} is not a valid lane: {}", origin.display(), e.to_string().trim_end()))
                .hint("the keys are described in docs/lanes.md")
        })?;
        if lane.argv.is_empty() {
            return Err(Failure::usage(format!(
                "{}: argv is empty, so there is nothing to run",
                origin.display()
            ))
            .hint("name a program and its arguments, such as argv = [\"/usr/bin/agent\", \"--batch\"]"));
        }
        Ok(lane)
    }

    /// The command with its places filled in.
    pub(crate) fn command(&self, prompt_file: &Path, workspace: &Path, task: &str) -> Vec<String> {
        let fill = |word: &String| {
            word.replace("{prompt_file}", &prompt_file.to_string_lossy())
                .replace("{workspace}", &workspace.to_string_lossy())
                .replace("{task}", task)
        };
        self.argv.iter().map(fill).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_in_the_command_are_filled_in() {
        let lane =
            Lane::parse("argv = [\"x\", \"--in={prompt_file}\", \"{workspace}\"]", Path::new("t")).unwrap();
        assert_eq!(lane.command(Path::new("/p"), Path::new("/w"), "t_1"), ["x", "--in=/p", "/w"]);
        assert_eq!(lane.on_clean_exit, CleanExit::Unreported);
    }

    #[test]
    fn a_lane_without_a_command_or_with_an_unknown_key_is_refused_by_name() {
        assert!(Lane::parse("argv = []", Path::new("l.toml")).unwrap_err().message.contains("l.toml"));
        assert!(
            Lane::parse("argv = [\"x\"]\nargs = 1", Path::new("l.toml"))
                .unwrap_err()
                .message
                .contains("args")
        );
    }
}
