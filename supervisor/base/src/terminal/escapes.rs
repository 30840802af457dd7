//! Filters the output of a run's program for a person's terminal. Control sequences that draw pass, and all others are
//! dropped.
//!
//! A program at a terminal needs control sequences to draw. Other sequences set the title or the clipboard, lock the
//! keyboard, print, or make the terminal reply, and the reply is read as if the person had typed it. So the filter lists the
//! sequences that pass, with their parameters. Strings (OSC, DCS, APC, PM, SOS) are dropped with their contents. No sequence
//! passes that erases the scrollback of the terminal. Numbers larger than a screen needs are reduced. The forms follow
//! ECMA-48 and the control sequences of xterm.
//!
//! See decision 0190.

/// Limit on the characters of a sequence before its last letter.
const LONGEST: usize = 64;

/// Largest number that passes. A terminal repeats, moves or scrolls as many times as the number in a sequence.
const LARGEST: &str = "9999";

/// Private modes that pass (`CSI ? … h` and `l`): cursor keys, reverse video, origin, wrap, cursor, alternate screen,
/// mouse, focus, bracketed paste, synchronized drawing.
const MODES: [u16; 20] =
    [1, 5, 6, 7, 12, 25, 45, 47, 1000, 1002, 1003, 1004, 1005, 1006, 1015, 1047, 1048, 1049, 2004, 2026];
/// Modes that pass (`CSI … h` and `l`): insert, and new line.
const PLAIN_MODES: [u16; 2] = [4, 20];
/// Last letters of sequences that move the cursor, erase, scroll and colour. Sequences that set and clear tab stops (`CSI g`,
/// `ESC H`) are excluded, because the former tab stops could not be restored.
const DRAWING: &str = "@ABCDEFGHIJKLMPSXZ`abdefmrsu";

/// Sequences that restore a terminal after a program has used it: no mouse, no modes, no colours, no scroll region. The
/// cursor keeps its position.
pub const AS_BEFORE: &str = "\x1b[?1000;1002;1003;1004;1005;1006;1015;2004;2026;1;5;6;45l\x1b[?7;25h\x1b[4;20l\x1b>\x1b(B\x0f\x1b7\x1b[r\x1b8\x1b[0 q\x1b[0m";
/// Sequence that leaves the alternate screen, which full-screen programs use.
pub const FIRST_SCREEN: &str = "\x1b[?1049l";

/// State of the parser.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Within {
    #[default]
    Text,
    /// After ESC.
    Escape,
    /// After ESC and an intermediate character.
    Charset,
    /// In a control sequence (CSI).
    Control,
    /// In a string, which is dropped.
    String,
    /// After an ESC in a string.
    StringEscape,
}

/// Filter of one stream, which may come in pieces.
#[derive(Debug, Default)]
pub struct Drawn {
    within: Within,
    /// Sequence so far, without ESC.
    sequence: String,
    /// True while the program draws on the alternate screen.
    is_full_screen: bool,
}

impl Drawn {
    /// Returns the part of the next piece that may be written to the terminal.
    pub fn cleaned(&mut self, piece: &str) -> String {
        let mut out = String::with_capacity(piece.len());
        for c in piece.chars() {
            self.take(c, &mut out);
        }
        out
    }

    /// Returns true while the terminal shows the alternate screen.
    pub(crate) fn is_full_screen(&self) -> bool {
        self.is_full_screen
    }

    fn take(&mut self, c: char, out: &mut String) {
        let is_string = matches!(self.within, Within::String | Within::StringEscape);
        match c {
            // CAN and SUB abort any sequence (ECMA-48, 8.3.6 and 8.3.148).
            '\x18' | '\x1a' => self.begin(Within::Text),
            '\x1b' if is_string => self.within = Within::StringEscape,
            '\x1b' => self.begin(Within::Escape),
            '\x07' if is_string => self.begin(Within::Text),
            _ => match self.within {
                Within::Text => {
                    if passes(c) {
                        out.push(c);
                    }
                }
                Within::Escape => self.escape(c, out),
                Within::Charset => {
                    if self.sequence.starts_with(['(', ')']) && matches!(c, '0' | 'A' | 'B') {
                        self.sequence.push(c);
                        self.put(out);
                    }
                    self.begin(Within::Text);
                }
                Within::Control => self.control(c, out),
                Within::String => {}
                // ST ends the string; any other character after ESC begins a new sequence.
                Within::StringEscape if c == '\\' => self.begin(Within::Text),
                Within::StringEscape => {
                    self.begin(Within::Escape);
                    self.escape(c, out);
                }
            },
        }
    }

    fn begin(&mut self, within: Within) {
        self.within = within;
        self.sequence.clear();
    }

    fn put(&self, out: &mut String) {
        out.push('\x1b');
        out.push_str(&self.sequence);
    }

    fn escape(&mut self, c: char, out: &mut String) {
        self.sequence.push(c);
        match c {
            '[' => self.within = Within::Control,
            ']' | 'P' | 'X' | '^' | '_' => self.begin(Within::String),
            // After an intermediate character, the sequence has one more character.
            '(' | ')' | ' ' | '#' | '%' | '*' | '+' | '-' | '.' | '/' => self.within = Within::Charset,
            '7' | '8' | '=' | '>' | 'D' | 'E' | 'M' => {
                self.put(out);
                self.begin(Within::Text);
            }
            _ => self.begin(Within::Text),
        }
    }

    fn control(&mut self, c: char, out: &mut String) {
        match c {
            ' '..='?' if self.sequence.len() < LONGEST => self.sequence.push(c),
            '@'..='~' => {
                if self.is_drawing(c) {
                    self.clamp();
                    self.sequence.push(c);
                    self.put(out);
                }
                self.begin(Within::Text);
            }
            // A sequence that is too long or contains a control character is dropped, because drawing needs neither.
            _ => self.begin(Within::Text),
        }
    }

    /// Reduces numbers that are too large.
    fn clamp(&mut self) {
        let is_digit = |c: char| c.is_ascii_digit();
        if self.sequence.split(|c| !is_digit(c)).all(|number| number.len() <= LARGEST.len()) {
            return;
        }
        let mut rest = std::mem::take(&mut self.sequence);
        while let Some(at) = rest.find(is_digit) {
            let behind = rest.split_off(at);
            self.sequence.push_str(&rest);
            let end = behind.find(|c| !is_digit(c)).unwrap_or(behind.len());
            let number = behind[..end].trim_start_matches('0');
            self.sequence.push_str(match number.len() {
                0 => "0",
                length if length <= LARGEST.len() => number,
                _ => LARGEST,
            });
            behind[end..].clone_into(&mut rest);
        }
        self.sequence.push_str(&rest);
    }

    /// Returns true if the sequence with this last letter passes. Notes a change to or from the alternate screen.
    fn is_drawing(&mut self, last: char) -> bool {
        let body = &self.sequence[1..];
        if matches!(last, 'h' | 'l') {
            let (modes, known) = match body.strip_prefix('?') {
                Some(modes) => (modes, MODES.as_slice()),
                None => (body, PLAIN_MODES.as_slice()),
            };
            // `parse` accepts a sign before a number, with which the sequence would be another one, so only digits
            // and separators pass.
            let modes = Some(modes).filter(|modes| numbers(modes));
            let modes: Option<Vec<u16>> =
                modes.and_then(|modes| modes.split(';').map(|mode| mode.parse().ok()).collect());
            let Some(modes) = modes.filter(|modes| modes.iter().all(|mode| known.contains(mode))) else {
                return false;
            };
            if modes.iter().any(|mode| matches!(mode, 47 | 1047 | 1049)) {
                self.is_full_screen = last == 'h';
            }
            return true;
        }
        // The parameters 0, 1 and 2 erase on the screen alone; 3 would erase the scrollback.
        if last == 'J' {
            return body.split(';').all(|what| matches!(what.trim_start_matches('0'), "" | "1" | "2"));
        }
        // DECSCUSR sets the shape of the cursor, DECSTR is a soft reset.
        if (last == 'q' && body.ends_with(' ') && numbers(&body[..body.len() - 1]))
            || (last == 'p' && body == "!")
        {
            return true;
        }
        // With one number, `T` scrolls. With more, it makes the terminal track the mouse and wait for a reply.
        numbers(body) && (DRAWING.contains(last) || (last == 'T' && !body.contains([';', ':'])))
    }
}

fn numbers(body: &str) -> bool {
    body.bytes().all(|byte| byte.is_ascii_digit() || byte == b';' || byte == b':')
}

/// Returns true if a character outside of sequences passes. Control characters pass if they move the cursor, ring the bell
/// or choose a character set. ENQ is dropped because it makes the terminal reply, and C1 controls because they begin
/// sequences too.
fn passes(c: char) -> bool {
    match c {
        '\x07'..='\x0f' => true,
        c => !c.is_control(),
    }
}

/// Returns the text that a program wrote to a terminal, without sequences.
pub fn plain(text: &str) -> String {
    let mut drawn = Drawn::default();
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        let before = out.len();
        let was_text = drawn.within == Within::Text;
        drawn.take(c, &mut out);
        // A sequence that passes is written at its last character, so it can be removed here as a whole.
        if !was_text || (c.is_control() && !matches!(c, '\n' | '\t')) {
            out.truncate(before);
        }
    }
    out.trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drawn(text: &str) -> String {
        Drawn::default().cleaned(text)
    }

    #[test]
    fn what_draws_passes_as_it_is() {
        for text in [
            "plain text, ümläute, 日本\r\n\ttabs\x08",
            "\x1b[31;1mred\x1b[0m \x1b[38;2;1;2;3m\x1b[4:3m",
            "\x1b[2J\x1b[H\x1b[10;20H\x1b[K\x1b[1;20r\x1b[3L\x1b[T",
            "\x1b[?1049h\x1b[?25l\x1b[?2004h\x1b[?1000;1006h\x1b[?1049l",
            "\x1b7\x1b8\x1bM\x1b=\x1b>\x1b(0lqk\x1b(B\x1b[2 q\x1b[!p\x0e\x0f",
        ] {
            assert_eq!(drawn(text), text);
        }
    }

    #[test]
    fn what_reaches_beyond_the_drawing_or_makes_the_terminal_answer_is_left_out() {
        for text in [
            // Titles, clipboard, links, colour queries.
            "\x1b]0;title\x07",
            "\x1b]52;c;cm0gLXJm\x1b\\",
            "\x1b]8;;http://x\x1b\\",
            "\x1b]11;?\x07",
            "\u{9d}52;c;AAAA\u{9c}",
            // Queries: identity, cursor position, modes, checksum, size.
            "\x1b[c",
            "\x1b[>c",
            "\x1b[=c",
            "\x1b[6n",
            "\x1b[?6n",
            "\x1b[5n",
            "\x1b[?2004$p",
            "\x1b[1;1;1;1;1;1*y",
            "\x1b[18t",
            "\x1b[21t",
            "\x1b[x",
            "\x1bZ",
            "\x05",
            "\x1b[>q",
            "\x1b[?u",
            "\x1bP+q544e\x1b\\",
            "\x1bP$qm\x1b\\",
            // Printing, keyboard lock, width, key modes, window moves, mouse highlighting.
            "\x1b[5i",
            "\x1b[2h",
            "\x1b[?3h",
            "\x1b[>4;2m",
            "\x1b[>1u",
            "\x1b[3;0;0t",
            "\x1b[1;2;3;4;5T",
            // Modes with a sign; tabulators, which could not be restored.
            "\x1b[?+25h",
            "\x1b[+4h",
            "\x1b[3g",
            "\x1bH",
            // Other strings, other charsets, a reset.
            "\x1b_Gi=1,a=q;AAAA\x1b\\",
            "\x1b^x\x1b\\",
            "\x1bXx\x1b\\",
            "\x1bc",
            "\x1b%G",
            "\x1b#8",
            "\x1bn",
        ] {
            let out = drawn(text);
            assert!(!out.contains(['\x1b', '\x05', '\u{9d}', '\u{9c}']), "{text:?} is {out:?}");
            assert!(drawn(&format!("{text}after")).ends_with("after"), "{text:?}");
        }
        assert_eq!(drawn("a\x1b]0;title\x07b"), "ab");
        assert_eq!(drawn("a\x1bP1;2|x\x1b[31m"), "a\x1b[31m", "a sequence ends a string that has no end");
    }

    #[test]
    fn what_was_on_the_terminal_before_is_erased_by_nothing() {
        for text in
            ["\x1b[3J", "\x1b[03J", "\x1b[2;3J", "\x1b[3;J", "\x1b[?3J", "\x1b[3:1J", "\x1b[22J", "\x1b[4J"]
        {
            assert_eq!(drawn(&format!("a{text}b")), "ab", "{text:?}");
        }
        assert_eq!(drawn("\x1b[H\x1b[2J\x1b[3J"), "\x1b[H\x1b[2J", "as `clear` does it");
        assert_eq!(drawn("\x1b[J\x1b[0J\x1b[1J\x1b[002J"), "\x1b[J\x1b[0J\x1b[1J\x1b[002J");
    }

    #[test]
    fn no_number_is_larger_than_a_screen_needs() {
        for (text, expected) in [
            ("x\x1b[9999b", "x\x1b[9999b"),
            ("x\x1b[10000b", "x\x1b[9999b"),
            ("x\x1b[4294967295b", "x\x1b[9999b"),
            ("\x1b[1;99999999999999999999H", "\x1b[1;9999H"),
            ("\x1b[0000000012;3S", "\x1b[12;3S"),
            ("\x1b[000000T", "\x1b[0T"),
            ("\x1b[38:2::123456:2:3m", "\x1b[38:2::9999:2:3m"),
            ("\x1b[100000 q", "\x1b[9999 q"),
        ] {
            assert_eq!(drawn(text), expected);
        }
    }

    #[test]
    fn letters_of_languages_that_are_written_from_right_to_left_pass_with_what_orders_them() {
        let text = "שלום \u{200f}مرحبا\u{200e} \u{2068}x\u{2069} \u{202e}abc\u{202c}";
        assert_eq!(drawn(text), text);
    }

    #[test]
    fn pieces_make_no_difference_and_nothing_without_an_end_is_kept() {
        let text = "a\x1b]52;c;x\x1b\\b\x1b[?1049h\x1b[31mc\x1b[6nd";
        for at in (0..text.len()).filter(|at| text.is_char_boundary(*at)) {
            let mut filter = Drawn::default();
            let out = filter.cleaned(&text[..at]) + &filter.cleaned(&text[at..]);
            assert_eq!(out, "ab\x1b[?1049h\x1b[31mcd");
            assert!(filter.is_full_screen());
        }
        let mut filter = Drawn::default();
        filter.cleaned(&format!("\x1b]{}", "x".repeat(1_000_000)));
        filter.cleaned(&format!("\x1b[{}", "1;".repeat(500_000)));
        assert!(filter.sequence.capacity() < 1024, "{}", filter.sequence.capacity());
    }

    #[test]
    fn the_text_of_a_screen_has_no_sequences() {
        assert_eq!(plain("\x1b[2J\x1b[1;31mdone\x1b[0m: 3 files\r\n\x1b]0;t\x07\x1b(B"), "done: 3 files");
    }
}
