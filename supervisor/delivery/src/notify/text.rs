//! Text of messages for people. Titles, reasons and results come from workers: each is put on one line, cut, and
//! escaped for the sink.

use std::fmt::Write as _;

use kernel::{Letter, NoticeKind, Question};

use super::batch::{Batch, ReadAt};

/// Limit on a message, in characters: the least limit of the services (Discord, 2000), with a margin for different ways
/// of counting.
pub(super) const LONGEST: usize = 1900;
/// Limit on the lines of a digest.
const LINES: usize = 20;
/// Limit on a line of a digest, in characters.
const LINE: usize = 80;

/// Returns the subject: the event and its task.
pub(super) fn subject(batch: &Batch) -> String {
    match batch.letters.as_slice() {
        [] => "test message of supervisor".to_owned(),
        [one] => cut(&head(one, str::to_owned), 200),
        many => format!("{} messages about tasks", many.len()),
    }
}

/// Returns the whole message, cut to `longest` characters.
pub(super) fn whole(batch: &Batch, longest: usize, escape: impl Fn(&str) -> String + Copy) -> String {
    let text = match batch.letters.as_slice() {
        [] => "supervisor: this is a test of the channel; nothing has happened".to_owned(),
        [one] => single(one, batch.reader, escape),
        many => digest(many, batch.reader, escape),
    };
    cut(&text, longest)
}

/// Returns the message without its subject.
pub(super) fn body(batch: &Batch, longest: usize, escape: impl Fn(&str) -> String + Copy) -> String {
    let text = whole(batch, longest, escape);
    match (batch.letters.as_slice(), text.split_once('\n')) {
        ([_], Some((_, rest))) => rest.to_owned(),
        _ => text,
    }
}

fn head(letter: &Letter, escape: impl Fn(&str) -> String) -> String {
    format!("{}: {} ({})", word(letter.kind), escape(&visible(&letter.notice.title)), letter.task_id)
}

fn single(letter: &Letter, reader: ReadAt, escape: impl Fn(&str) -> String + Copy) -> String {
    let mut text = head(letter, escape);
    let mut line = |line: &str| {
        write!(text, "\n{line}").ok();
    };
    if letter.kind == NoticeKind::LeftOut {
        line(&format!("{} messages were left out: too many waited", letter.events));
        return text;
    }
    if let Some(text) = &letter.notice.text {
        line(&escape(&visible(text)));
    }
    for (number, choice) in letter.notice.choices.iter().enumerate() {
        line(&format!("{}. {}", number + 1, escape(&visible(choice))));
    }
    if letter.events > 1 {
        line(&format!("(and {} before it)", letter.events - 1));
    }
    if let Some(way) = next_step(letter, reader) {
        line(&way);
    }
    text
}

/// Returns the command that acts on a message, if a person has to act.
fn next_step(letter: &Letter, reader: ReadAt) -> Option<String> {
    let id = &letter.task_id;
    let is_chat = reader == ReadAt::Chat;
    match letter.kind {
        NoticeKind::Question => {
            let question = Question { choices: letter.notice.choices.clone(), ..Question::default() };
            let command = question.command(id);
            let example = command.rsplit(' ').next().unwrap_or_default();
            let chat = || format!("reply with the answer, or send: /task answer {id} {example}");
            Some(if is_chat { chat() } else { format!("answer with: {command}") })
        }
        NoticeKind::Approval if is_chat => {
            Some(format!("reply 1 to approve or 2 to deny, or send: /task approve {id}"))
        }
        NoticeKind::Approval => Some(format!("approve with: supervisor approve {id}")),
        NoticeKind::Review => Some(format!("review it with: {} {id}", verb("show", reader))),
        NoticeKind::Blocked | NoticeKind::GaveUp => {
            Some(format!("let it go on with: {} {id}", verb("unblock", reader)))
        }
        NoticeKind::Completed
        | NoticeKind::Crashed
        | NoticeKind::TimedOut
        | NoticeKind::Unreported
        | NoticeKind::LeftOut
        | NoticeKind::Test => None,
    }
}

/// Returns a verb in the form for the message's reader.
fn verb(name: &str, reader: ReadAt) -> String {
    match reader {
        ReadAt::Elsewhere => format!("supervisor {name}"),
        ReadAt::Chat => format!("/task {name}"),
    }
}

/// Returns a digest. Messages that a person has to act on come first.
fn digest(letters: &[Letter], reader: ReadAt, escape: impl Fn(&str) -> String + Copy) -> String {
    let total: u64 = letters.iter().map(|letter| u64::from(letter.events)).sum();
    let mut text = format!("{total} messages have waited:");
    let (urgent, other): (Vec<&Letter>, Vec<&Letter>) =
        letters.iter().partition(|letter| letter.kind.needs_somebody());
    for letter in urgent.iter().chain(&other).take(LINES) {
        let short = cut(&letter.notice.title, LINE / 2);
        let detail =
            letter.notice.text.as_deref().map(|text| format!(": {}", escape(&cut(&visible(text), LINE / 2))));
        let line = format!("{} {} {}", word(letter.kind), letter.task_id, escape(&visible(&short)));
        write!(text, "\n- {line}{}", detail.unwrap_or_default()).ok();
        // A digest is cut between its lines.
        if text.chars().count() > LONGEST - 120 {
            break;
        }
    }
    let shown = text.lines().count() - 1;
    if let Some(more) = letters.len().checked_sub(shown).filter(|more| *more > 0) {
        write!(text, "\nand {more} more: {}", verb("list", reader)).ok();
    }
    text
}

fn word(kind: NoticeKind) -> &'static str {
    match kind {
        NoticeKind::Completed => "done",
        NoticeKind::Blocked => "blocked",
        NoticeKind::Question => "question",
        NoticeKind::Approval => "approval needed",
        NoticeKind::Review => "review needed",
        NoticeKind::GaveUp => "gave up",
        NoticeKind::Crashed => "crashed, is tried again",
        NoticeKind::TimedOut => "timed out, is tried again",
        NoticeKind::Unreported => "ended without a report, is tried again",
        NoticeKind::LeftOut => "left out",
        NoticeKind::Test => "test",
    }
}

/// Removes characters that change the display of other text: control, bidirectional and invisible characters.
fn visible(text: &str) -> String {
    let hides = |c: char| {
        c.is_control()
            || matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}')
    };
    text.chars().filter(|c| !hides(*c)).collect()
}

fn cut(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use kernel::{Address, EventId, LetterId, LetterState, Notice, Timestamp};

    use super::*;

    fn letter(number: i64, kind: NoticeKind, title: &str) -> Letter {
        Letter {
            id: LetterId(number),
            task_id: format!("t_{number:08x}").parse().unwrap(),
            event_id: EventId(number),
            tenant: None,
            address: Address { channel: "a".to_owned(), chat_id: String::new(), thread_id: String::new() },
            kind,
            notice: Notice {
                title: title.to_owned(),
                assignee: None,
                text: Some("which?".to_owned()),
                choices: vec!["red".to_owned(), "blue".to_owned()],
            },
            events: 1,
            state: LetterState::Waiting,
            digest: None,
            attempts: 0,
            due_at: Timestamp::from_micros(0),
            failing_since: None,
            last_error: None,
            created_at: Timestamp::from_micros(0),
        }
    }

    fn batch(letters: Vec<Letter>) -> Batch {
        read_by(ReadAt::Elsewhere, letters)
    }

    fn read_by(reader: ReadAt, letters: Vec<Letter>) -> Batch {
        let board = "default".parse().unwrap();
        Batch::from_letters(kernel::BoardId(uuid::Uuid::nil()), &board, |_| reader, letters).unwrap()
    }

    #[test]
    fn a_message_in_a_chat_names_what_can_be_written_there() {
        let last = |kind| {
            let text = whole(&read_by(ReadAt::Chat, vec![letter(1, kind, "paint")]), LONGEST, str::to_owned);
            text.lines().last().unwrap().to_owned()
        };
        assert_eq!(last(NoticeKind::Question), "reply with the answer, or send: /task answer t_00000001 1");
        assert_eq!(
            last(NoticeKind::Approval),
            "reply 1 to approve or 2 to deny, or send: /task approve t_00000001"
        );
        assert_eq!(last(NoticeKind::Review), "review it with: /task show t_00000001");
        assert_eq!(last(NoticeKind::Blocked), "let it go on with: /task unblock t_00000001");
        let many = (1..40).map(|n| letter(n, NoticeKind::Completed, "x")).collect();
        assert!(whole(&read_by(ReadAt::Chat, many), LONGEST, str::to_owned).ends_with("more: /task list"));
    }

    #[test]
    fn a_question_has_numbered_choices_and_the_command_that_answers_it() {
        let one = batch(vec![letter(1, NoticeKind::Question, "paint")]);
        insta::assert_snapshot!(whole(&one, LONGEST, str::to_owned), @r"
        question: paint (t_00000001)
        which?
        1. red
        2. blue
        answer with: supervisor answer t_00000001 1
        ");
        assert_eq!(subject(&one), "question: paint (t_00000001)");
        assert!(body(&one, LONGEST, str::to_owned).starts_with("which?"));
    }

    #[test]
    fn a_digest_begins_with_what_needs_somebody_and_counts_what_it_leaves_out() {
        let mut letters: Vec<Letter> = (1..40).map(|n| letter(n, NoticeKind::Completed, "x")).collect();
        letters.push(letter(40, NoticeKind::GaveUp, "y"));
        let text = whole(&batch(letters), LONGEST, str::to_owned);
        assert!(text.starts_with("40 messages have waited:\n- gave up t_00000028 y: which?\n"), "{text}");
        assert!(text.ends_with("\nand 20 more: supervisor list"), "{text}");
    }

    #[test]
    fn no_text_hides_or_grows_beyond_what_a_service_takes() {
        let escape = |text: &str| text.replace('*', "\\*");
        let title = format!("\u{202e}{}\u{200b}\n", "*".repeat(5000));
        for count in [1, 50] {
            let letters = (1..=count).map(|n| letter(n, NoticeKind::Blocked, &title)).collect();
            let text = whole(&batch(letters), LONGEST, escape);
            assert!(text.chars().count() <= LONGEST + 1, "{count}");
            assert!(!text.contains(['\u{202e}', '\u{200b}']));
        }
    }
}
