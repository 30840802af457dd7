//! Makes foreign text safe for a terminal: characters that control the terminal, reorder text or are invisible become
//! escapes, so that a title, a path or a log cannot look like other text.

use std::borrow::Cow;
use std::io;

use unicode_properties::{GeneralCategory, UnicodeGeneralCategory as _};

/// Returns the text on one line. Characters that a terminal would obey or hide become escapes such as `\u{1b}`; tabs
/// stay.
pub fn printable(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    escape(text, &mut shown);
    shown
}

/// Escapes text as [`printable`] does, but keeps line ends.
pub fn printable_lines(text: &str) -> String {
    text.split('\n').map(printable).collect::<Vec<_>>().join("\n")
}

/// Makes the output of a program fit for a terminal: removes its control sequences and the carriage returns at line
/// ends, and escapes other control characters.
pub fn printable_output(text: &str) -> String {
    printable_lines(&without_styles(text).replace("\r\n", "\n"))
}

/// Makes a whole screen or message safe just before it is written. Line ends and the control sequences that this program
/// writes pass; all other control characters are escaped.
pub(super) fn guarded(text: &str) -> Cow<'_, str> {
    if text.bytes().all(|byte| (b' '..0x7f).contains(&byte) || byte == b'\n') {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(['\n', '\x1b']) {
        escape(&rest[..at], &mut shown);
        let length = if rest[at..].starts_with('\n') { 1 } else { own_sequence(&rest[at..]) };
        match length {
            0 => shown.extend('\x1b'.escape_unicode()),
            length => shown.push_str(&rest[at..at + length]),
        }
        rest = &rest[at + length.max(1)..];
    }
    escape(rest, &mut shown);
    Cow::Owned(shown)
}

/// Returns the length in bytes of the control sequence at the start of the text, if this program writes such
/// sequences: styles (`m`), and `H`, `J` and `K` without parameters, which redraw the screen. Returns 0 for any other
/// text.
fn own_sequence(text: &str) -> usize {
    let Some(body) = text.strip_prefix("\x1b[") else { return 0 };
    let end = body.find(|c: char| !c.is_ascii_digit() && c != ';').unwrap_or(body.len());
    match body.as_bytes().get(end) {
        Some(b'm') => end + 3,
        Some(b'H' | b'J' | b'K') if end == 0 => 3,
        _ => 0,
    }
}

/// Returns a value as one line of JSON. Characters that a terminal would obey or hide are escaped as `\uXXXX`, so a
/// parser of JSON gets the original text.
pub fn json<T: serde::Serialize>(value: &T) -> serde_json::Result<String> {
    crate::json::text(value).map(json_of)
}

/// Returns JSON with such characters escaped.
pub fn json_of(text: String) -> String {
    if text.bytes().all(|byte| (b' '..0x7f).contains(&byte)) {
        return text;
    }
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        if unseen(c) {
            for unit in c.encode_utf16(&mut [0; 2]) {
                shown.extend(format!("\\u{unit:04x}").chars());
            }
        } else {
            shown.push(c);
        }
    }
    shown
}

fn escape(text: &str, shown: &mut String) {
    let mut before = None;
    let mut rest = text.chars();
    while let Some(c) = rest.next() {
        let joiner = matches!(c, '\u{200c}' | '\u{200d}');
        // Emoji and many scripts need joiners between their characters. In any other position, a joiner could only hide.
        let joins = joiner && [before, rest.clone().next()].iter().all(|side| side.is_some_and(joined));
        if c == '\t' || joins || !unseen(c) {
            shown.push(c);
        } else {
            shown.extend(c.escape_unicode());
        }
        before = Some(c);
    }
}

fn joined(c: char) -> bool {
    !c.is_ascii() && !unseen(c)
}

/// Returns true if a terminal obeys the character, or shows nothing for it.
fn unseen(c: char) -> bool {
    use GeneralCategory as Is;
    // Hangul fillers are letters without a visible form.
    let filler = matches!(c, '\u{115f}' | '\u{1160}' | '\u{3164}' | '\u{ffa0}');
    let category = || c.general_category();
    filler || matches!(category(), Is::Control | Is::Format | Is::LineSeparator | Is::ParagraphSeparator)
}

/// Returns the text without control sequences (CSI): colours and styles, and also movements of the cursor.
pub fn without_styles(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find("\x1b[") {
        plain.push_str(&rest[..at]);
        let sequence = &rest[at + 2..];
        let end = sequence.find(|c: char| !c.is_ascii_digit() && c != ';');
        match end {
            // ECMA-48, section 5.4: parameters, then a final byte that names the function.
            Some(end) if sequence[end..].starts_with(|c: char| c.is_ascii_alphabetic()) => {
                rest = &sequence[end + 1..];
            }
            _ => {
                plain.push('\x1b');
                rest = &rest[at + 1..];
            }
        }
    }
    plain.push_str(rest);
    plain
}

/// Writer of the log to standard error. Each write is a whole event, which is made safe first.
#[derive(Debug)]
pub struct LogWriter;

impl io::Write for LogWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let text = String::from_utf8_lossy(bytes);
        io::stderr().lock().write_all(guarded(&text).as_bytes())?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        io::stderr().flush()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Texts that reorder, hide in or drive a terminal.
    const TRICKS: [char; 18] = [
        '\u{202a}',
        '\u{202e}',
        '\u{2066}',
        '\u{2069}',
        '\u{200e}',
        '\u{200f}',
        '\u{61c}',
        '\u{200b}',
        '\u{2060}',
        '\u{feff}',
        '\u{ad}',
        '\u{9b}',
        '\u{85}',
        '\u{7f}',
        '\u{7}',
        '\u{2028}',
        '\u{e0041}',
        '\u{3164}',
    ];

    #[test]
    fn what_a_terminal_obeys_or_hides_is_shown_as_an_escape() {
        assert_eq!(printable("a\x1b[31mb"), "a\\u{1b}[31mb");
        assert_eq!(printable_lines("a\nb\x07"), "a\nb\\u{7}");
        for trick in TRICKS {
            let text = format!("a{trick}b");
            let escape = format!("a\\u{{{:x}}}b", u32::from(trick));
            assert_eq!(printable(&text), escape);
            assert_eq!(guarded(&text), escape);
            assert_eq!(guarded(&format!("{text}\n{text}\x1b[0m")), format!("{escape}\n{escape}\x1b[0m"));
        }
    }

    #[test]
    fn scripts_and_emoji_keep_their_joiners_and_plain_text_has_none() {
        for text in [
            "日本語",
            "👩\u{200d}💻 at work",
            "می\u{200c}خواهم",
            "क्\u{200d}ष",
            "naïve – ü",
            "❤\u{fe0f}\u{200d}🔥",
        ] {
            assert_eq!(printable(text), text);
        }
        assert_eq!(printable("pay\u{200d}pal"), "pay\\u{200d}pal");
        assert_eq!(printable("ä\u{200d}"), "ä\\u{200d}");
    }

    #[test]
    fn only_sequences_of_our_own_pass_to_the_terminal() {
        for own in ["\x1b[1mbold\x1b[0m\n", "\x1b[Htext\x1b[K\n\x1b[J", "\x1b[38;5;9mred", "plain\n"] {
            assert_eq!(guarded(own), own);
        }
        for (foreign, shown) in [
            ("\x1b]0;title\x07", "\\u{1b}]0;title\\u{7}"),
            ("\x1b[2J", "\\u{1b}[2J"),
            ("\x1b", "\\u{1b}"),
            ("\x1bc", "\\u{1b}c"),
        ] {
            assert_eq!(guarded(foreign), shown);
        }
    }

    #[test]
    fn the_output_of_a_program_loses_its_colours_and_shows_other_controls() {
        assert_eq!(
            printable_output("\x1b[1;31mred\x1b[0m\r\n50%\r\x1b]0;title\x07"),
            "red\n50%\\u{d}\\u{1b}]0;title\\u{7}"
        );
    }

    #[test]
    fn json_says_the_same_without_showing_it() {
        let text: String = TRICKS.iter().collect();
        let written = json(&text).unwrap();
        assert!(written.is_ascii(), "{written}");
        assert_eq!(serde_json::from_str::<String>(&written).unwrap(), text);
        assert_eq!(json(&"ü").unwrap(), "\"ü\"");
    }

    /// Generates text with tricks and parts of sequences among other characters. `any::<String>()` has no controls.
    fn hostile() -> impl Strategy<Value = String> {
        let parts = ["\n", "\t", "\r", "\x1b", "\x1b[", "\x1b]0;", "1;31m", "m", "H", "2J", "\u{200d}"];
        let part = prop_oneof![
            prop::sample::select(parts.to_vec()).prop_map(str::to_owned),
            prop::sample::select(TRICKS.to_vec()).prop_map(String::from),
            any::<char>().prop_map(String::from),
        ];
        prop::collection::vec(part, 0..16).prop_map(|parts| parts.concat())
    }

    proptest! {
        #[test]
        fn nothing_that_is_written_has_more_than_our_own_sequences(text in hostile()) {
            let shown = guarded(&text).into_owned();
            let left = without_styles(&shown).replace("\x1b[H", "").replace("\x1b[J", "").replace("\x1b[K", "");
            let allowed = |c: char| matches!(c, '\n' | '\t' | '\u{200c}' | '\u{200d}');
            prop_assert!(left.chars().all(|c| allowed(c) || !unseen(c)), "{:?}", shown);
            let line = printable(&text);
            prop_assert!(!line.contains(['\n', '\x1b']), "{:?}", line);
        }
    }
}
