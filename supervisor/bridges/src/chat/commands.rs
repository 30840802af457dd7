//! Rewrites the commands in notes and hints to the form of a chat.
//!
//! Notes and hints are written once, for the command line: a second form of each would touch some hundred of them for
//! each new reader. Texts of tasks, comments and results stay as they are.

/// Prefix of a command on the command line.
const PROGRAM: &str = "supervisor ";

/// Rewrites commands in a text of this program that are open to chats as chat messages.
pub(super) fn for_chats(text: &str, is_open: impl Fn(&str) -> bool) -> String {
    let mut parts = text.split(PROGRAM);
    let mut shown = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let is_command =
            shown.chars().next_back().is_none_or(|c| c.is_whitespace() || matches!(c, '`' | '('));
        let end = part.find(|c: char| !c.is_ascii_alphanumeric() && c != '-').unwrap_or(part.len());
        shown.push_str(match &part[..end] {
            "schedules" if is_command && is_of_chats(&part[end..]) => "/",
            verb if is_command && is_open(verb) => "/kanban ",
            _ => PROGRAM,
        });
        shown.push_str(part);
    }
    shown
}

/// Returns true if the text after `schedules` is a subcommand that chats have.
fn is_of_chats(rest: &str) -> bool {
    let word = rest
        .split_ascii_whitespace()
        .next()
        .unwrap_or_default()
        .trim_matches(|c: char| !c.is_ascii_alphabetic());
    ["", "list", "show", "run", "pause", "resume", "add", "rm"].contains(&word)
}

/// Returns true if a text still contains a command that only a terminal has.
pub(super) fn names_terminal(text: &str) -> bool {
    text.contains(PROGRAM)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_that_is_open_is_a_line_of_a_chat_and_others_stay() {
        let shown = |text| for_chats(text, |verb| ["assign", "show"].contains(&verb));
        assert_eq!(
            shown("nobody is assigned: supervisor assign t_1 shell, or another of `supervisor lanes`"),
            "nobody is assigned: /kanban assign t_1 shell, or another of `supervisor lanes`"
        );
        assert_eq!(shown("`supervisor schedules list` shows them"), "`/schedules list` shows them");
        assert_eq!(shown("`supervisor schedules edit daily`"), "`supervisor schedules edit daily`");
        assert_eq!(shown("/usr/bin/supervisor show t_1"), "/usr/bin/supervisor show t_1");
        assert!(
            names_terminal(&shown("supervisor daemon")) && !names_terminal(&shown("supervisor show t_1"))
        );
    }
}
