//! Repeats the global options of the command line in the commands that hints suggest. Without them the next step
//! would act on another root or board.

use std::ffi::OsString;
use std::sync::OnceLock;

/// Global options of this command line, and a test for the names of commands.
struct CliContext {
    /// `--root`, `--system` or `--user` as written, quoted for a shell.
    root: Option<String>,
    /// `--board` as written, quoted for a shell.
    board: Option<String>,
    is_command: fn(&str) -> bool,
}

static CLI_CONTEXT: OnceLock<CliContext> = OnceLock::new();

/// Commands that do not depend on root and board.
const ANYWHERE: [&str; 4] = ["completions", "demo", "help", "man"];
/// Texts that precede a command in a sentence.
const BEFORE: [&str; 7] = ["`", ": ", "; ", ", or ", " or ", " and ", "("];

/// Remembers the global options of a command line for its hints. `verb` is the index of the verb. Options after `run`
/// are not searched: they may belong to the command that `run` starts.
pub fn keep(words: &[OsString], verb: usize, is_command: fn(&str) -> bool) {
    let end = if words.get(verb).is_some_and(|word| word == "run") { verb } else { words.len() };
    let words = words.get(1..end).unwrap_or_default();
    let mut words = words.iter().map(|word| word.to_string_lossy()).take_while(|word| *word != "--");
    let (mut root, mut board) = (None, None);
    while let Some(word) = words.next() {
        let (option, value) = match word.split_once('=') {
            Some((option, value)) => (option, Some(value.to_owned())),
            None => (&*word, None),
        };
        let mut with = |value: Option<String>| {
            let value = value.or_else(|| words.next().map(std::borrow::Cow::into_owned))?;
            Some(format!("{option} {}", shlex::try_quote(&value).ok()?))
        };
        match option {
            "--root" => root = with(value),
            "--board" => board = with(value),
            "--system" | "--user" => root = Some(option.to_owned()),
            _ => {}
        }
    }
    if root.is_some() || board.is_some() {
        drop(CLI_CONTEXT.set(CliContext { root, board, is_command }));
    }
}

/// Returns true if the command line names a root. Always false in a completion, which never calls `keep`.
pub fn names_root() -> bool {
    CLI_CONTEXT.get().is_some_and(|given| given.root.is_some())
}

/// Returns a text of this program in which each suggested command repeats the global options. Callers never pass text
/// from others.
pub fn repeated(text: &str) -> String {
    CLI_CONTEXT.get().map_or_else(|| text.to_owned(), |given| given.in_text(text))
}

impl CliContext {
    fn in_text(&self, text: &str) -> String {
        const NAME: &str = "supervisor ";
        let mut out = String::new();
        let mut rest = text;
        while let Some(at) = rest.find(NAME) {
            let (before, from) = rest.split_at(at);
            out.push_str(before);
            out.push_str(NAME);
            rest = &from[NAME.len()..];
            // A command name counts only at the start of the text or after a text of `BEFORE`.
            let begins = out.len() == NAME.len()
                || BEFORE.iter().any(|end| out[..out.len() - NAME.len()].ends_with(end));
            if begins {
                out.push_str(&self.missing(rest));
            }
        }
        out.push_str(rest);
        out
    }

    /// Returns the options that a suggested command lacks, each followed by a blank.
    fn missing(&self, command: &str) -> String {
        let end = ["`", "; ", ", or ", "\n"].iter().filter_map(|end| command.find(end)).min();
        let command = &command[..end.unwrap_or(command.len())];
        let length = command.find(|c: char| !c.is_ascii_lowercase() && c != '-').unwrap_or(command.len());
        let word = &command[..length];
        let has = |option: &str| command.contains(option);
        let is_meant = (self.is_command)(word) && !ANYWHERE.contains(&word) && !has("--help");
        if !is_meant {
            return String::new();
        }
        let root = self.root.as_ref().filter(|_| !has("--root ") && !has("--system") && !has("--user"));
        let board = self.board.as_ref().filter(|_| !has("--board "));
        root.into_iter().chain(board).flat_map(|option| [option.as_str(), " "]).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn given() -> CliContext {
        let is_command = |word: &str| ["show", "retry", "daemon", "list", "help", "boards"].contains(&word);
        CliContext {
            root: Some("--root '/a b'".to_owned()),
            board: Some("--board infra".to_owned()),
            is_command,
        }
    }

    #[test]
    fn a_command_in_a_hint_has_the_options_that_were_given() {
        let all = "supervisor --root '/a b' --board infra";
        for (text, told) in [
            ("supervisor show t_1; supervisor retry t_1", format!("{all} show t_1; {all} retry t_1")),
            ("start one with: supervisor daemon; or wait", format!("start one with: {all} daemon; or wait")),
            (
                "`supervisor list` has all, or supervisor show X",
                format!("`{all} list` has all, or {all} show X"),
            ),
        ] {
            assert_eq!(given().in_text(text), told);
        }
    }

    #[test]
    fn what_is_no_command_has_its_options_or_needs_none_stays_as_it_is() {
        for text in [
            "the supervisor daemon is stopped",
            "supervisor is busy: supervisor of the host",
            "supervisor help states",
            "supervisor show --help",
            "supervisor --board x show t_1",
            "systemctl restart supervisor",
        ] {
            assert_eq!(given().in_text(text), text);
        }
        let hint = given().in_text("`supervisor list --board other`");
        assert_eq!(hint, "`supervisor --root '/a b' list --board other`");
    }
}
