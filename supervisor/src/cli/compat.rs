//! Compatibility with the grammar of `hermes kanban` and of kill(1), where it differs from this program's.
//!
//! See decision 0014.

use std::ffi::{OsStr, OsString};

/// Returns a command line in this program's words: drops `kanban` in front of the verb, leaves the `--color` of `boards
/// create` to the board, joins `attachments get`, `rm` and `list` into single words, turns `--format json` of a list
/// into `--json`, makes the `--tail` of `log` count bytes and the `--tail` of `logs` count lines, and reads `-9` and
/// `-KILL` directly behind `kill` as its signal.
pub(super) fn translated(words: impl IntoIterator<Item = OsString>) -> Vec<OsString> {
    let mut words: Vec<OsString> = words.into_iter().collect();
    let verb = first_verb(&words);
    if words.get(verb).is_some_and(|word| word == "kanban") {
        words.remove(verb);
    }
    if words.get(verb).is_some_and(|word| word == "attachments") {
        let meant = match words.get(verb + 1).and_then(|word| word.to_str()) {
            Some("get") => Some("attach-get"),
            Some("rm") => Some("attach-rm"),
            Some("list" | "ls") => Some("attachments"),
            Some(_) | None => None,
        };
        if let Some(meant) = meant {
            words.splice(verb..verb + 2, [meant.into()]);
        }
    }
    if words.get(verb).is_some_and(|word| word == "kill")
        && let Some(signal) = words.get(verb + 1).and_then(|word| signal(word))
    {
        words[verb + 1] = signal;
    }
    if words.get(verb).is_some_and(|word| word == "list" || word == "ls") {
        as_json(&mut words, verb);
    }
    if words.get(verb).is_some_and(|word| word == "log") {
        for word in words.iter_mut().skip(verb) {
            if let Some(meant) = of_bytes(word) {
                *word = meant;
            }
        }
    }
    let create =
        words.windows(2).position(|pair| pair[0] == "boards" && (pair[1] == "create" || pair[1] == "new"));
    for word in words.iter_mut().skip(create.map_or(usize::MAX, |at| at.saturating_add(2))) {
        if let Some(meant) = of_the_board(word) {
            *word = meant;
        }
    }
    words
}

/// Returns the option for a signal in the form of kill(1): a number, or a name in capital letters.
fn signal(word: &OsStr) -> Option<OsString> {
    let name = word.to_str()?.strip_prefix('-')?;
    let is_number = !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_digit());
    let is_name =
        name.len() > 1 && name.bytes().all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit());
    (is_number || is_name).then(|| format!("--signal={name}").into())
}

/// Replaces `--format json`, as in docker and gh, by `--json`.
fn as_json(words: &mut Vec<OsString>, from: usize) {
    let is_pair = |pair: &[OsString]| {
        pair.iter().map(OsString::as_os_str).eq([OsStr::new("--format"), OsStr::new("json")])
    };
    let rest = words.get(from..).unwrap_or_default();
    if let Some(at) = rest.windows(2).position(is_pair) {
        words.splice(from + at..from + at + 2, ["--json".into()]);
    } else if let Some(at) = rest.iter().position(|word| word == "--format=json") {
        words[from + at] = "--json".into();
    }
}

fn of_bytes(word: &OsStr) -> Option<OsString> {
    let value = word.to_str()?.strip_prefix("--tail")?;
    (value.is_empty() || value.starts_with('=')).then(|| format!("--bytes{value}").into())
}

/// Returns the position of the first word that is neither an option nor an option's value.
pub(super) fn first_verb(words: &[OsString]) -> usize {
    let mut at = 1;
    while let Some(word) = words.get(at).filter(|word| word.as_encoded_bytes().starts_with(b"--")) {
        let takes_value = ["--root", "--board", "--color"].iter().any(|option| word == option);
        at += if takes_value { 2 } else { 1 };
    }
    at
}

fn of_the_board(word: &OsStr) -> Option<OsString> {
    let value = word.to_str()?.strip_prefix("--color")?;
    (value.is_empty() || value.starts_with('=')).then(|| format!("--colour{value}").into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> String {
        let words = translated(line.split(' ').map(OsString::from));
        words.iter().map(|word| word.to_str().unwrap()).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn the_name_of_the_other_program_says_nothing() {
        assert_eq!(words("supervisor kanban list kanban"), "supervisor list kanban");
        assert_eq!(words("supervisor --json --root /r kanban list"), "supervisor --json --root /r list");
        assert_eq!(words("supervisor --board kanban list"), "supervisor --board kanban list");
    }

    #[test]
    fn a_signal_is_written_as_for_kill_1() {
        assert_eq!(words("supervisor kill -9 t_0123abcd"), "supervisor kill --signal=9 t_0123abcd");
        assert_eq!(
            words("supervisor --json kill -SIGUSR1 t_1"),
            "supervisor --json kill --signal=SIGUSR1 t_1"
        );
        for line in ["supervisor kill -s HUP t_1", "supervisor kill t_1", "supervisor create x --priority -9"]
        {
            assert_eq!(words(line), line);
        }
    }

    #[test]
    fn the_tail_of_log_is_bytes_and_that_of_logs_is_lines() {
        assert_eq!(words("supervisor log t_0123abcd --tail 6"), "supervisor log t_0123abcd --bytes 6");
        assert_eq!(words("supervisor kanban log --tail=6 t_1"), "supervisor log --bytes=6 t_1");
        for line in ["supervisor logs --tail 6 t_1", "supervisor create log --tail 6"] {
            assert_eq!(words(line), line);
        }
    }

    #[test]
    fn the_format_json_of_a_list_is_json() {
        assert_eq!(words("supervisor list --format json --why"), "supervisor list --json --why");
        assert_eq!(words("supervisor ls --format=json"), "supervisor ls --json");
        assert_eq!(words("supervisor list --format tsv"), "supervisor list --format tsv");
    }

    #[test]
    fn to_get_an_attachment_is_a_verb_of_its_own() {
        assert_eq!(words("supervisor attachments get 7"), "supervisor attach-get 7");
        assert_eq!(words("supervisor attachments rm 7"), "supervisor attach-rm 7");
        assert_eq!(words("supervisor attachments list t_0123abcd"), "supervisor attachments t_0123abcd");
        assert_eq!(
            words("supervisor --json attachments t_0123abcd"),
            "supervisor --json attachments t_0123abcd"
        );
    }

    #[test]
    fn a_colour_is_the_terminals_except_behind_boards_create() {
        assert_eq!(
            words("supervisor --color never boards create x --color #fff"),
            "supervisor --color never boards create x --colour #fff"
        );
        assert_eq!(words("supervisor boards new x --color=#fff"), "supervisor boards new x --colour=#fff");
        for line in ["supervisor boards list --color never", "supervisor create boards --color never"] {
            assert_eq!(words(line), line);
        }
    }
}
