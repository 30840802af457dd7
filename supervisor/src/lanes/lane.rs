//! One lane: the command, how it gets its prompt, and what a clean exit means.

use std::borrow::Cow;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::formats::Format;
use crate::config::definitions::{Defect, Subject};
use crate::time::duration::WrittenDuration;

/// How a worker is started and how its ending is read.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Lane {
    /// The command. `{prompt_file}`, `{workspace}` and `{task}` are replaced in each word; any other `{name}` is an error.
    pub(crate) argv: Vec<String>,
    /// How the worker gets its prompt.
    #[serde(default)]
    pub(crate) prompt: Prompt,
    /// What its workers write to their standard output.
    #[serde(default)]
    pub(crate) stdout: Format,
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
    pub(crate) rate_limit_pause: WrittenDuration,
}

fn rate_limit_pause() -> WrittenDuration {
    WrittenDuration::from_secs(300)
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
    /// Reads the definition of the lane `name`; `origin` is the file that holds it.
    pub(super) fn parse(name: &str, text: &str, origin: &Path) -> Result<Self, Defect> {
        let defect = |message: String| Defect::new(Subject::Lane(name.to_owned()), origin, message);
        let lane: Lane = toml::from_str(text)
            .map_err(|e| Defect::toml(Subject::Lane(name.to_owned()), origin, text, &e))?;
        let argv = || Some("argv".to_owned());
        if lane.argv.is_empty() {
            let defect = defect(
                "it is empty, so there is nothing to run; name a program and its arguments".to_owned(),
            );
            return Err(defect.at(line_with(text, "argv"), argv()));
        }
        for word in &lane.argv {
            if let Some(unknown) = placeholders(word).find_map(|piece| match piece {
                Piece::Place(name) if Place::named(name).is_none() => Some(name),
                Piece::Place(_) | Piece::Text(_) => None,
            }) {
                let known: Vec<String> = Place::ALL.iter().map(|(name, _)| format!("{{{name}}}")).collect();
                let message = format!(
                    "`{{{unknown}}}` is not a placeholder; the known ones are {} (write {{{{{unknown}}}}} for the text itself)",
                    known.join(", ")
                );
                return Err(defect(message).at(line_with(text, &format!("{{{unknown}}}")), argv()));
            }
        }
        Ok(lane)
    }

    /// The command with its placeholders filled in.
    pub(crate) fn command(&self, prompt_file: &Path, workspace: &Path, task: &str) -> Vec<String> {
        let fill = |word: &String| {
            placeholders(word)
                .map(|piece| match piece {
                    Piece::Text(text) => Cow::Borrowed(text),
                    Piece::Place(name) => match Place::named(name) {
                        Some(Place::PromptFile) => prompt_file.to_string_lossy(),
                        Some(Place::Workspace) => workspace.to_string_lossy(),
                        Some(Place::Task) => Cow::Borrowed(task),
                        // No lane with such a word is read.
                        None => Cow::Borrowed(name),
                    },
                })
                .collect()
        };
        self.argv.iter().map(fill).collect()
    }
}

/// What a word of the command may have filled in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    PromptFile,
    Workspace,
    Task,
}

impl Place {
    const ALL: [(&str, Place); 3] =
        [("prompt_file", Place::PromptFile), ("workspace", Place::Workspace), ("task", Place::Task)];

    fn named(name: &str) -> Option<Self> {
        Self::ALL.iter().find(|(known, _)| *known == name).map(|(_, place)| *place)
    }
}

/// A part of a word of the command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Piece<'a> {
    Text(&'a str),
    /// The name of a placeholder, known or not.
    Place(&'a str),
}

/// Takes a word apart: `{name}` is a placeholder, `{{name}}` the text `{name}`, and any other brace is itself.
fn placeholders(word: &str) -> impl Iterator<Item = Piece<'_>> {
    let mut rest = word;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let found = rest.match_indices('{').find_map(|(at, _)| {
            let name = rest[at + 1..].split_once('}')?.0;
            is_name(name).then_some((at, name))
        });
        let Some((at, name)) = found else { return Some(Piece::Text(std::mem::take(&mut rest))) };
        let end = at + name.len() + 2;
        let is_escaped = rest[..at].ends_with('{') && rest[end..].starts_with('}');
        if is_escaped && at == 1 {
            let text = &rest[at..end];
            rest = &rest[end + 1..];
            return Some(Piece::Text(text));
        }
        let head = if is_escaped { at - 1 } else { at };
        if head > 0 {
            let text = &rest[..head];
            rest = &rest[head..];
            return Some(Piece::Text(text));
        }
        rest = &rest[end..];
        Some(Piece::Place(name))
    })
}

fn is_name(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_lowercase())
        && text.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_')
}

/// The first line, counted from 1, that has some words.
fn line_with(text: &str, words: &str) -> usize {
    text.lines().position(|line| line.contains(words)).map_or(1, |index| index + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Lane, Defect> {
        Lane::parse("l", text, Path::new("/etc/l.toml"))
    }

    #[test]
    fn placeholders_in_the_command_are_filled_in() {
        let lane = parse("argv = [\"x\", \"--in={prompt_file}\", \"{workspace}/{task}\"]").unwrap();
        let command = lane.command(Path::new("/p"), Path::new("/w{task}"), "t_1");
        assert_eq!(command, ["x", "--in=/p", "/w{task}/t_1"], "what is filled in is not looked at again");
        assert_eq!(lane.on_clean_exit, CleanExit::Unreported);
    }

    #[test]
    fn an_unknown_placeholder_is_refused_with_its_line_and_the_known_ones() {
        let defect =
            parse("prompt = \"file\"\nargv = [\n  \"agent\",\n  \"--task={prompt}\",\n]").unwrap_err();
        let text = defect.to_string();
        assert!(text.starts_with("/etc/l.toml:4 (argv): `{prompt}` is not a placeholder"), "{text}");
        assert!(text.contains("{prompt_file}, {workspace}, {task}"), "{text}");
    }

    #[test]
    fn braces_that_are_no_placeholder_are_themselves() {
        let words = ["{print $1}", "{\"a\":{\"b\":1}}", "{}", "{", "}", "{A}", "a{{task}}b", "{{{task}}}"];
        let text = format!("argv = {words:?}");
        let command = parse(&text).unwrap().command(Path::new("/p"), Path::new("/w"), "t_1");
        let expected = ["{print $1}", "{\"a\":{\"b\":1}}", "{}", "{", "}", "{A}", "a{task}b", "{{task}}"];
        assert_eq!(command, expected);
        assert_eq!(
            parse("argv = [\"{{prompt}}\"]").unwrap().command(Path::new(""), Path::new(""), ""),
            ["{prompt}"]
        );
    }

    #[test]
    fn a_lane_without_a_command_or_with_an_unknown_key_is_refused_with_its_place() {
        let text = parse("prompt = \"file\"\nargv = []").unwrap_err().to_string();
        assert!(text.starts_with("/etc/l.toml:2 (argv): it is empty"), "{text}");
        let text = parse("argv = [\"x\"]\nargs = 1").unwrap_err().to_string();
        assert!(text.starts_with("/etc/l.toml:2 (args): unknown field `args`"), "{text}");
    }
}
