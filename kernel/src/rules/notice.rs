//! Messages to people: the events that cause them, and their texts.

use serde_json::Value;

use crate::model::event::EventKind;
use crate::model::letter::{Notice, NoticeKind};
use crate::model::outcome::BlockKind;
use crate::model::state::State;
use crate::model::task::Task;
use crate::model::verdict::Question;

/// Longest text of a message, in characters. The shortest limit of a service is 2000 (Discord), title and choices
/// included.
const TEXT: usize = 600;
/// Longest note about the branch of a task in a message, in characters. The text of the message has that much less room.
const NOTE: usize = 300;
/// Longest title of a message, in characters.
const TITLE: usize = 200;
/// Longest answer to choose from, in characters.
const CHOICE: usize = 120;

/// Answers to a request for an approval, in the order of their numbers.
pub const APPROVAL_CHOICES: [&str; 2] = ["approve", "deny"];

/// Returns the kind of message for an event and the task's new state; none for most events.
pub(crate) fn kind_of(kind: EventKind, to: Option<State>) -> Option<NoticeKind> {
    if kind == EventKind::ApprovalRequested {
        return Some(NoticeKind::Approval);
    }
    if kind == EventKind::MissionAsked {
        return Some(NoticeKind::Question);
    }
    match to? {
        State::Done => Some(NoticeKind::Completed),
        State::Blocked { kind: BlockKind::GaveUp } => Some(NoticeKind::GaveUp),
        State::Blocked { kind: BlockKind::Approval } => Some(NoticeKind::Approval),
        State::Blocked { .. } => Some(NoticeKind::Blocked),
        State::Review => (kind == EventKind::ReviewRequested).then_some(NoticeKind::Review),
        State::Triage => (kind == EventKind::BlockLoopDetected).then_some(NoticeKind::Blocked),
        State::Todo
        | State::Scheduled { .. }
        | State::Ready
        | State::Running { .. }
        | State::Checking { .. }
        | State::Archived { .. } => of_failure(kind),
    }
}

/// Returns the kind of message for a failed run that is followed by another run.
fn of_failure(kind: EventKind) -> Option<NoticeKind> {
    [
        (EventKind::Crashed, NoticeKind::Crashed),
        (EventKind::TimedOut, NoticeKind::TimedOut),
        (EventKind::ProtocolViolation, NoticeKind::Unreported),
    ]
    .into_iter()
    .find_map(|(event, notice)| (event == kind).then_some(notice))
}

/// Returns the error in the payload of an event.
pub(crate) fn error(payload: &Value) -> Option<String> {
    payload["error"].as_str().map(|error| line(error, TEXT))
}

/// Returns the message about a task in its current state. `error` is the error of the last run; `asked` is the mission's
/// question, for a message about the mission.
pub(crate) fn notice(
    kind: NoticeKind,
    task: &Task,
    error: Option<&str>,
    asked: Option<&Question>,
) -> (NoticeKind, Notice) {
    let question = asked.or(task.question.as_ref());
    // A task that waits for input asks a question, even without answers to choose from.
    let is_asked = question.is_some() || task.block_kind == Some(BlockKind::NeedsInput);
    let kind = if kind == NoticeKind::Blocked && is_asked { NoticeKind::Question } else { kind };
    let text = match kind {
        NoticeKind::Completed | NoticeKind::Review => task.result.as_deref(),
        NoticeKind::Question | NoticeKind::Approval => {
            question.map(|question| question.text.as_str()).or(task.block_reason.as_deref())
        }
        NoticeKind::Blocked | NoticeKind::GaveUp => task.block_reason.as_deref(),
        NoticeKind::Crashed
        | NoticeKind::TimedOut
        | NoticeKind::Unreported
        | NoticeKind::LeftOut
        | NoticeKind::Test => error,
    };
    let note = task.branch_note.as_deref().filter(|_| hands_over(kind)).map(|note| line(note, NOTE));
    let text = text.map(|text| line(text, note.as_ref().map_or(TEXT, |_| TEXT - NOTE)));
    let text = [text, note].into_iter().flatten().filter(|text| !text.is_empty()).collect::<Vec<_>>();
    let choices = match (kind, question) {
        (NoticeKind::Approval, _) => APPROVAL_CHOICES.map(str::to_owned).to_vec(),
        (_, Some(question)) => question.choices.clone(),
        (_, None) => Vec::new(),
    };
    let notice = Notice {
        title: line(&task.title, TITLE),
        assignee: task.assignee.as_ref().map(ToString::to_string),
        text: Some(text.join(" | ")).filter(|text| !text.is_empty()),
        choices: choices.iter().map(|choice| line(choice, CHOICE)).collect(),
    };
    (kind, notice)
}

/// True for a message about work that was handed over.
fn hands_over(kind: NoticeKind) -> bool {
    matches!(kind, NoticeKind::Completed | NoticeKind::Review)
}

/// Returns the first line that is not empty, without control characters, cut to a length.
fn line(text: &str, most: usize) -> String {
    let first = text.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default();
    let mut shown = first.chars().filter(|c| !c.is_control()).take(most + 1).collect::<String>();
    if let Some((at, _)) = shown.char_indices().nth(most) {
        shown.truncate(at);
        shown.push('…');
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::status::WasDone;

    #[test]
    fn only_what_ends_a_run_or_waits_for_somebody_is_told() {
        let blocked = |kind| Some(State::Blocked { kind });
        for (event, to, expected) in [
            (EventKind::Completed, Some(State::Done), Some(NoticeKind::Completed)),
            (EventKind::Crashed, Some(State::Ready), Some(NoticeKind::Crashed)),
            (EventKind::Crashed, blocked(BlockKind::GaveUp), Some(NoticeKind::GaveUp)),
            (EventKind::GaveUp, None, None),
            (EventKind::TimedOut, Some(State::Todo), Some(NoticeKind::TimedOut)),
            (EventKind::ProtocolViolation, Some(State::Ready), Some(NoticeKind::Unreported)),
            (EventKind::Blocked, blocked(BlockKind::NeedsInput), Some(NoticeKind::Blocked)),
            (EventKind::ApprovalRequested, None, Some(NoticeKind::Approval)),
            (EventKind::MissionAsked, None, Some(NoticeKind::Question)),
            (EventKind::ReviewRequested, Some(State::Review), Some(NoticeKind::Review)),
            (EventKind::BlockLoopDetected, Some(State::Triage), Some(NoticeKind::Blocked)),
            (EventKind::Claimed, Some(State::Review), None),
            (EventKind::Promoted, Some(State::Ready), None),
            (EventKind::Commented, None, None),
            (EventKind::Archived, Some(State::Archived { finished: WasDone::No }), None),
        ] {
            assert_eq!(kind_of(event, to), expected, "{event} to {to:?}");
        }
    }

    #[test]
    fn what_went_wrong_is_the_first_line_of_what_the_event_says_of_it() {
        let error_of = |payload: Value| error(&payload);
        assert_eq!(
            error_of(serde_json::json!({ "error": "exit code 3\nmore" })).as_deref(),
            Some("exit code 3")
        );
        assert_eq!(error_of(serde_json::json!({ "summary": "done" })), None);
        assert_eq!(error_of(Value::Null), None);
    }

    #[test]
    fn a_line_is_the_first_with_anything_in_it_without_control_characters_and_cut() {
        assert_eq!(line("\n \u{1b}[31mred\u{7}\nmore", 40), "[31mred");
        assert_eq!(line("äöü", 2), "äö…");
        assert_eq!(line("äöü", 3), "äöü");
        assert_eq!(line(" \n\t\n", 3), "");
        assert_eq!(line(&"x".repeat(300_000), TEXT).chars().count(), TEXT + 1);
    }
}
