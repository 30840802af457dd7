//! Words of other programs, and what does the same here.

use std::ffi::OsString;

use kernel::TaskId;

use super::compat;
use crate::failure::Failure;

/// A word that pueue, docker, gh, systemctl, kubectl or slurm has, and the commands that do what it does there.
const FOREIGN: [(&str, &[&str]); 38] = [
    ("add", &["create", "run"]),
    ("clean", &["archive", "gc"]),
    ("close", &["complete"]),
    ("delete", &["archive --rm"]),
    ("describe", &["show"]),
    ("disable", &["hold"]),
    ("down", &["stop"]),
    ("enable", &["release"]),
    ("enqueue", &["create", "promote"]),
    ("exec", &["run"]),
    ("follow", &["logs --follow"]),
    ("get", &["list", "show"]),
    ("history", &["runs"]),
    ("info", &["show", "status"]),
    ("inspect", &["show"]),
    ("issue", &["list", "show"]),
    ("jobs", &["list"]),
    ("journal", &["logs"]),
    ("new", &["create"]),
    ("output", &["logs"]),
    ("pause", &["hold"]),
    ("ps", &["status", "list --status running"]),
    ("queue", &["list"]),
    ("remove", &["archive"]),
    ("rerun", &["retry"]),
    ("restart", &["retry"]),
    ("resume", &["release", "unblock"]),
    ("rm", &["archive"]),
    ("search", &["list"]),
    ("serve", &["daemon"]),
    ("start", &["promote", "dispatch", "daemon"]),
    ("stash", &["hold"]),
    ("submit", &["create", "run"]),
    ("task", &["show", "list"]),
    ("tasks", &["list"]),
    ("terminate", &["cancel"]),
    ("up", &["daemon"]),
    ("view", &["show"]),
];

/// What to say to a line whose verb is another program's.
pub(super) fn answer(words: &[OsString]) -> Option<Failure> {
    let verb = compat::first_verb(words);
    let word = words.get(verb)?.to_str()?;
    let (_, ours) = FOREIGN.iter().find(|(foreign, _)| *foreign == word)?;
    let rest = words.get(verb + 1..).unwrap_or_default();
    let task = rest.iter().filter_map(|word| word.to_str()).find(|word| word.parse::<TaskId>().is_ok());
    let task = task.map(|task| format!(" {task}")).unwrap_or_default();
    let way = |way: &&str| {
        let (verb, flags) =
            way.split_once(' ').map_or((*way, String::new()), |(verb, flags)| (verb, format!(" {flags}")));
        format!("supervisor {verb}{task}{flags}")
    };
    let ways: Vec<String> = ours.iter().map(way).collect();
    Some(Failure::usage(format!("there is no command `{word}`")).hint(ways.join(", or ")))
}

/// What to say to `stop TASK`: `stop` is for the daemon.
pub(super) fn stopped_task(words: &[OsString]) -> Option<Failure> {
    let mut words = words.get(compat::first_verb(words)..)?.iter().filter_map(|word| word.to_str());
    let verb = words.next().filter(|verb| *verb == "stop")?;
    let task = words.find(|word| word.parse::<TaskId>().is_ok())?;
    Some(
        Failure::usage(format!("`{verb}` stops the daemon, not the task {task}"))
            .hint(format!("supervisor cancel {task}")),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_foreign_word_is_none_of_ours_and_leads_to_one_that_is() {
        let command = crate::cli::command();
        for (foreign, ours) in FOREIGN {
            assert!(command.find_subcommand(foreign).is_none(), "{foreign} is a command");
            for way in ours {
                let (verb, flag) = way.split_once(' ').unwrap_or((way, ""));
                let verb = command.find_subcommand(verb).unwrap_or_else(|| panic!("there is no `{way}`"));
                let flag = flag.trim_start_matches('-').split(' ').next().unwrap_or_default();
                let has_flag = verb.get_arguments().any(|argument| argument.get_long() == Some(flag));
                assert!(flag.is_empty() || has_flag, "{foreign}: there is no `{way}`");
            }
        }
        assert!(FOREIGN.is_sorted(), "the table is sorted");
    }

    #[test]
    fn a_task_is_taken_along() {
        let words = ["supervisor", "--json", "restart", "t_0123abcd"].map(OsString::from);
        assert_eq!(answer(&words).unwrap().hint.as_deref(), Some("supervisor retry t_0123abcd"));
        let words = ["supervisor", "stop", "t_0123abcd"].map(OsString::from);
        assert_eq!(stopped_task(&words).unwrap().hint.as_deref(), Some("supervisor cancel t_0123abcd"));
    }
}
