//! Replies in chats: plain text within the services' limits, without characters that hide or reorder other text.

use super::commands::{for_chats, names_terminal};
use base::exit::Code;
use base::failure::Failure;
use base::terminal::printable;

/// Limit on a reply, in characters: the least limit of the services (Discord, 2000), with a margin for different ways
/// of counting.
const LONGEST: usize = 1800;

/// Formats the result of a message: its text, or the refusal. `is_open` is true for a verb that chats may use.
pub(super) fn from_outcome(outcome: Result<String, Failure>, is_open: fn(&str) -> bool) -> String {
    match outcome {
        Ok(text) if text.trim().is_empty() => "Done.".to_owned(),
        Ok(text) => bounded(&text),
        Err(failure) => bounded(&refusal(&failure, is_open)),
    }
}

/// Formats a refusal. An internal failure is only logged, because its text may name paths of the host.
fn refusal(failure: &Failure, is_open: fn(&str) -> bool) -> String {
    if failure.code == Code::Failed {
        tracing::warn!(error = %failure, "chat_request_failed");
        return "It failed inside the supervisor; its log has the reason.".to_owned();
    }
    let hint = failure.hint.as_deref().map(|hint| for_chats(hint, is_open));
    // A command that is not open to chats is for a terminal, so its hint is left out.
    let hint = hint.filter(|hint| !names_terminal(hint)).map(|hint| format!("\n{hint}")).unwrap_or_default();
    format!("Not done: {}{hint}", for_chats(&failure.message, is_open))
}

/// Formats a text as plain lines, and cuts it at the limit. Columns become two spaces, because chats have no columns.
pub(super) fn bounded(text: &str) -> String {
    let mut lines = String::new();
    let mut taken = 0;
    for line in text.trim_end().lines() {
        let line = line_of(line);
        let length = line.chars().count() + 1;
        if taken + length > LONGEST {
            let rest: String = line.chars().take(LONGEST.saturating_sub(taken)).collect();
            return format!("{lines}{rest}…");
        }
        taken += length;
        lines.push_str(&line);
        lines.push('\n');
    }
    lines.trim_end().to_owned()
}

/// Returns true if a text as plain lines fits completely, with space for more characters.
pub(super) fn has_room_for(text: &str, more: usize) -> bool {
    text.trim_end().lines().map(|line| line_of(line).chars().count() + 1).sum::<usize>() + more <= LONGEST
}

fn line_of(line: &str) -> String {
    let line = line.trim_end();
    let text = line.trim_start_matches(' ');
    let indent = (line.len() - text.len()).min(2);
    let words = text.split("  ").map(str::trim).filter(|piece| !piece.is_empty());
    printable(&format!("{:indent$}{}", "", words.collect::<Vec<_>>().join("  ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reply_is_bounded_and_hides_nothing() {
        let text = bounded(&"a\u{202e}b       c\n".repeat(1000));
        assert!(text.chars().count() <= LONGEST + 1 && text.ends_with('…'), "{}", text.len());
        assert!(!text.contains('\u{202e}') && text.contains("b  c"));
        assert!(bounded(&"x".repeat(5000)).chars().count() <= LONGEST + 1);
    }

    #[test]
    fn a_refusal_names_the_reason_and_no_place_of_the_host() {
        let of = |outcome| from_outcome(outcome, |verb| verb == "list");
        let failure = Failure::usage("there is no such task").hint("supervisor doctor");
        assert_eq!(of(Err(failure)), "Not done: there is no such task");
        let failure = Failure::usage("there is no such task").hint("`supervisor list` shows them");
        assert_eq!(of(Err(failure)), "Not done: there is no such task\n`/kanban list` shows them");
        let failure = Failure::failed("failed to read /etc/secret");
        assert!(!of(Err(failure)).contains("/etc"));
    }
}
