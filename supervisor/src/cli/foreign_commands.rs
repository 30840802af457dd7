//! Commands of other programs, and the corresponding commands here.

use std::ffi::OsString;

use clap::error::{ContextKind, ContextValue, Error, ErrorKind};
use kernel::TaskId;

use super::compat;
use base::failure::Failure;

/// The hint to create a task.
const CREATE: &str = "create '…' --assignee shell --body '…'";
const RUN: &str = "run -- …";
/// The tasks that are not over.
const OPEN: &str = "supervisor list --status triage,todo,scheduled,ready,running,review,blocked";

/// Subcommands of pueue, docker, gh, systemctl, kubectl or slurm, and the commands here with the same effect. An entry
/// of two words begins with a subcommand here. `{task}` stands for the task of the line.
const FOREIGN: [(&str, &[&str]); 60] = [
    ("add", &[CREATE, RUN]),
    ("cat", &["logs {task}"]),
    ("clean", &["archive {task}", "gc"]),
    ("close", &["complete {task}"]),
    ("delete", &["archive {task} --rm {task}"]),
    ("describe", &["show {task}"]),
    ("disable", &["hold {task} --reason '…'"]),
    ("down", &["stop"]),
    ("enable", &["release {task}"]),
    ("enqueue", &[CREATE, "promote {task}"]),
    ("exec", &[RUN]),
    ("follow", &["logs {task} --follow"]),
    ("get", &["list", "show {task}"]),
    ("group", &["tenant list", concat!("help ", "docs/configuration.md")]),
    ("history", &["runs {task}"]),
    ("info", &["show {task}", "status"]),
    ("inspect", &["show {task}"]),
    ("is-active", &["status"]),
    ("issue", &["list", "show {task}"]),
    ("jobs", &["list"]),
    ("journal", &["logs {task}"]),
    ("new", &[CREATE]),
    ("output", &["logs {task}"]),
    ("parallel", &["status", concat!("help ", "docs/configuration.md")]),
    ("pause", &["hold {task} --reason '…'"]),
    ("priority", &["edit {task} --priority 10"]),
    ("prune", &["gc", "archive --status done"]),
    ("ps", &["status", "list --status running"]),
    ("queue", &["list"]),
    ("reload", &["service reload"]),
    ("remove", &["archive {task}"]),
    ("rerun", &["retry {task}"]),
    ("reset", &["archive --status done", "retry {task}"]),
    ("reset-failed", &["retry --failed", "release --host"]),
    ("restart", &["retry {task}", "stop"]),
    ("resume", &["release {task}", "unblock {task}"]),
    ("rm", &["archive {task}"]),
    ("run list", &["runs {task}", "list"]),
    ("run ls", &["runs {task}", "list"]),
    ("run rerun", &["retry {task}"]),
    ("run view", &["show {task}", "logs {task}"]),
    ("run watch", &["logs {task} --follow", "watch"]),
    ("search", &["list --search '…'"]),
    ("send", &["steer {task} '…'"]),
    ("serve", &["daemon"]),
    ("service restart", &["service reload", "stop"]),
    ("service start", &["daemon"]),
    ("service stop", &["stop"]),
    ("start", &["promote {task}", "dispatch", "daemon"]),
    ("stash", &["hold {task} --reason '…'"]),
    ("status supervisor", &["status"]),
    ("submit", &[CREATE, RUN]),
    ("switch", &["edit {task} --priority 10"]),
    ("task", &["show {task}", "list"]),
    ("tasks", &["list"]),
    ("terminate", &["cancel {task}"]),
    ("up", &["daemon"]),
    ("version", &["--version"]),
    ("view", &["show {task}"]),
    ("why", &["show {task}", "diagnostics --task {task}"]),
];

/// Commands here that take no task, and the corresponding commands for a task.
const WITHOUT_TASK: [(&str, &str, &str); 3] = [
    ("attach-get", "takes the number of a file alone, and not", "attachments {task}"),
    ("status", "shows the service, not the task", "show {task}"),
    ("stop", "stops the daemon, not the task", "cancel {task}"),
];

/// Flags and values of other programs, by the command here that they were given to, and the equivalents here.
const VALUES: [(&str, &str, &str); 25] = [
    ("approve", "--reason", "supervisor approve t_0123abcd 'what you looked at'"),
    ("create", "--title", "supervisor create 'what is to be done'"),
    (
        "events",
        "--since <ID>",
        "supervisor events --json prints the `cursor` to go on from; supervisor list --since 10m takes a time",
    ),
    ("kill", "--all", "supervisor kill --status running"),
    ("list", "--failed", "supervisor list --status blocked --why"),
    ("list", "--filter", "supervisor list --status running --tenant acme"),
    ("list", "--format <FORMAT>", "supervisor list --format tsv --columns id,title"),
    ("list", "age", "supervisor list --sort created"),
    ("list", "failed", "supervisor list --status blocked --why"),
    ("list", "open", OPEN),
    ("logs", "--timestamps", "supervisor tail t_0123abcd"),
    ("run", "--cwd", "supervisor run --workspace dir:/srv/app -- make test"),
    ("run", "--env", "supervisor run -- env A=1 make test"),
    ("run", "--name", "supervisor run --title 'nightly tests' -- make test"),
    ("run", "--timeout", "supervisor run --max-runtime 5m -- make test"),
    ("run", "-e", "supervisor run -- env A=1 make test"),
    ("run", "-i", "supervisor attach t_0123abcd"),
    ("run", "-w", "supervisor run --workspace dir:/srv/app -- make test"),
    ("schedule", "add", "supervisor schedules add --help"),
    ("schedule", "list", "supervisor schedules list"),
    ("schedule", "ls", "supervisor schedules list"),
    ("schedule", "show", "supervisor schedules list"),
    ("tail", "-n", "supervisor logs t_0123abcd --lines 20"),
    ("wait", "--all", "supervisor list --status ready,running --quiet | xargs supervisor wait"),
    (
        "watch",
        "--since <ID>",
        "supervisor events --json prints the `cursor` to go on from; supervisor list --since 10m takes a time",
    ),
];

/// Returns a command to type, with the task if one is known.
fn filled(way: &str, task: Option<&str>) -> String {
    format!("supervisor {}", way.replace("{task}", task.unwrap_or("TASK")))
}

/// Returns a command with the task of the line, if there is one.
pub(super) fn with_task(way: &str, words: &[OsString]) -> String {
    let task = verb_and_rest(words).and_then(|(_, mut rest)| rest.find(|word| TaskId::in_full(word).is_ok()));
    filled(way, task)
}

/// Splits a line into its verb and the rest.
fn verb_and_rest(words: &[OsString]) -> Option<(&str, impl Iterator<Item = &str>)> {
    let mut words = words.get(compat::first_verb(words)..)?.iter();
    Some((words.next()?.to_str()?, words.filter_map(|word| word.to_str())))
}

/// Returns the error for a line that begins with a command of another program. `further` is one more suggestion.
fn foreign(command: &str, words: &[OsString], further: Option<String>) -> Option<Failure> {
    let (_, ours) = FOREIGN.iter().find(|(foreign, _)| *foreign == command)?;
    let ways: Vec<String> = ours.iter().map(|way| with_task(way, words)).chain(further).collect();
    Some(Failure::usage(format!("there is no command `{command}`")).hint(ways.join(", or ")))
}

/// Returns the error for a line with a verb of another program.
pub(super) fn answer(words: &[OsString]) -> Option<Failure> {
    foreign(verb_and_rest(words)?.0, words, None)
}

/// Returns the error for a line that begins with a command here but is meant for another program. Words after `--` are
/// not examined.
pub(super) fn pair(words: &[OsString]) -> Option<Failure> {
    let (first, mut rest) = verb_and_rest(words)?;
    let second = rest.next()?;
    let program =
        (first == "run").then(|| format!("for a program of that name: supervisor run -- {second} …"));
    foreign(&format!("{first} {second}"), words, program)
}

/// Returns the error for a task after a command that takes none: `stop TASK`, `status TASK`.
pub(super) fn without_task(words: &[OsString]) -> Option<Failure> {
    let (word, mut rest) = verb_and_rest(words)?;
    let (verb, does, way) = WITHOUT_TASK.iter().find(|(verb, ..)| *verb == word)?;
    let task = rest.find(|word| TaskId::in_full(word).is_ok())?;
    Some(Failure::usage(format!("`{verb}` {does} {task}")).hint(filled(way, Some(task))))
}

/// Returns our equivalent of a flag or a value of another program.
pub(super) fn value(error: &Error, words: &[OsString]) -> Option<&'static str> {
    let refused = match error.kind() {
        ErrorKind::UnknownArgument => [ContextKind::InvalidArg, ContextKind::InvalidArg],
        ErrorKind::InvalidValue | ErrorKind::ValueValidation => {
            [ContextKind::InvalidValue, ContextKind::InvalidArg]
        }
        _ => return None,
    };
    let (verb, _) = verb_and_rest(words)?;
    let verb = if verb == "ls" { "list" } else { verb };
    let values = refused.map(|kind| match error.get(kind) {
        Some(ContextValue::String(value)) => Some(value.as_str()),
        Some(_) | None => None,
    });
    let row = VALUES.iter().find(|(of, value, _)| *of == verb && values.contains(&Some(value)));
    row.map(|(.., hint)| *hint)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(words: &[&str]) -> Error {
        crate::cli::command().try_get_matches_from(words).unwrap_err()
    }

    /// True if a hint is a line that can be typed, once `…` is replaced.
    fn require_understood(hint: &str) {
        let words = shlex::split(hint).unwrap();
        if crate::cli::topics::asked(&words.iter().map(OsString::from).collect::<Vec<_>>()).is_some() {
            return;
        }
        match crate::cli::command().try_get_matches_from(&words) {
            Ok(_) => {}
            Err(error) => assert_eq!(error.kind(), ErrorKind::DisplayVersion, "{hint}: {error}"),
        }
    }

    #[test]
    fn each_foreign_word_is_none_of_ours_and_leads_to_lines_that_are_understood_with_a_task() {
        let command = crate::cli::command();
        for (foreign, ours) in FOREIGN {
            match foreign.split_once(' ') {
                Some((first, _)) => {
                    assert!(command.find_subcommand(first).is_some(), "{first} is no command");
                }
                None => assert!(command.find_subcommand(foreign).is_none(), "{foreign} is a command"),
            }
            for way in ours {
                require_understood(&filled(way, Some("t_0123abcd")));
            }
        }
        assert!(FOREIGN.is_sorted(), "the table is sorted");
    }

    #[test]
    fn a_task_is_taken_along() {
        for (line, hint) in [
            ("supervisor --json restart t_0123abcd", "supervisor retry t_0123abcd, or supervisor stop"),
            ("supervisor prune", "supervisor gc, or supervisor archive --status done"),
            ("supervisor pause t_0123abcd", "supervisor hold t_0123abcd --reason '…'"),
            ("supervisor pause", "supervisor hold TASK --reason '…'"),
            ("supervisor queue t_0123abcd", "supervisor list"),
            ("supervisor version", "supervisor --version"),
        ] {
            let words: Vec<OsString> = line.split(' ').map(OsString::from).collect();
            assert_eq!(answer(&words).unwrap().hint.as_deref(), Some(hint), "{line}");
        }
        for (line, hint) in [
            ("supervisor stop t_0123abcd", "supervisor cancel t_0123abcd"),
            ("supervisor status t_0123abcd", "supervisor show t_0123abcd"),
            ("supervisor attach-get t_0123abcd 1", "supervisor attachments t_0123abcd"),
        ] {
            let words: Vec<OsString> = line.split(' ').map(OsString::from).collect();
            assert_eq!(without_task(&words).unwrap().hint.as_deref(), Some(hint), "{line}");
            require_understood(hint);
        }
    }

    #[test]
    fn two_words_of_another_program_lead_to_ours_and_behind_dashes_they_are_a_command() {
        for (line, hint) in [
            ("supervisor run view t_0123abcd", "supervisor show t_0123abcd, or supervisor logs t_0123abcd"),
            ("supervisor run watch", "supervisor run -- watch …"),
            ("supervisor service stop", "supervisor stop"),
            ("supervisor --json status supervisor", "supervisor status"),
        ] {
            let words: Vec<OsString> = line.split(' ').map(OsString::from).collect();
            let shown = pair(&words).unwrap().hint.unwrap();
            assert!(shown.contains(hint), "{line}: {shown}");
        }
        for line in ["supervisor run -- watch date", "supervisor run make", "supervisor service reload"] {
            let words: Vec<OsString> = line.split(' ').map(OsString::from).collect();
            assert!(pair(&words).is_none(), "{line}");
        }
    }

    #[test]
    fn a_first_guess_at_a_flag_of_a_list_leads_to_ours() {
        for (line, hint) in [
            ("supervisor list --failed", "supervisor list --status blocked --why"),
            ("supervisor ls --status failed", "supervisor list --status blocked --why"),
            ("supervisor list --filter status=running", "supervisor list --status running --tenant acme"),
            ("supervisor list --format id,title", "supervisor list --format tsv --columns id,title"),
            ("supervisor list --sort age", "supervisor list --sort created"),
            ("supervisor kill --all", "supervisor kill --status running"),
            ("supervisor logs --timestamps t_0123abcd", "supervisor tail t_0123abcd"),
            ("supervisor run -it bash", "supervisor attach t_0123abcd"),
            ("supervisor run -e A=1 -- env", "supervisor run -- env A=1 make test"),
            ("supervisor run --name x -- true", "supervisor run --title 'nightly tests' -- make test"),
            ("supervisor run --timeout 5 true", "supervisor run --max-runtime 5m -- make test"),
            ("supervisor run -w /tmp true", "supervisor run --workspace dir:/srv/app -- make test"),
            ("supervisor run --cwd /tmp true", "supervisor run --workspace dir:/srv/app -- make test"),
            ("supervisor list --status open", OPEN),
            ("supervisor schedule list", "supervisor schedules list"),
            ("supervisor approve t_0123abcd --reason fine", VALUES[0].2),
            ("supervisor create --title x", "supervisor create 'what is to be done'"),
            ("supervisor tail -n 3 t_0123abcd", "supervisor logs t_0123abcd --lines 20"),
        ] {
            let words: Vec<&str> = line.split(' ').collect();
            let typed: Vec<OsString> = words.iter().map(OsString::from).collect();
            assert_eq!(value(&refusal(&words), &typed), Some(hint), "{line}");
            require_understood(hint);
        }
        for line in ["supervisor events --since 10m", "supervisor watch --since yesterday"] {
            let words: Vec<&str> = line.split(' ').collect();
            let typed: Vec<OsString> = words.iter().map(OsString::from).collect();
            assert!(value(&refusal(&words), &typed).is_some_and(|hint| hint.contains("cursor")), "{line}");
        }
        let words = ["supervisor", "list", "--nope"];
        assert_eq!(value(&refusal(&words), &words.map(OsString::from)), None);
    }
}
