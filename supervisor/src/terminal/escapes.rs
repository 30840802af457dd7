//! What the program of a run writes to its terminal, on its way to a person's: what draws passes, and nothing else.
//!
//! A program at a terminal needs sequences to draw. Others set the title or the clipboard, lock the keyboard, print, or have the
//! terminal answer, and an answer is read as if the person had typed it. So the sequences that pass are listed, each with its
//! parameters, and whatever is not listed is left out, strings (OSC, DCS, APC, PM, SOS) with all that they have. What was on the person's
//! terminal before stays there: nothing erases the lines above the screen. A number that no screen needs is made smaller. The forms are
//! those of ECMA-48 and of the control sequences of xterm.

/// What a sequence may have between its introducer and its last letter.
const LONGEST: usize = 64;

/// The largest number that a sequence has: a terminal would repeat, move and scroll as often as a larger one says.
const LARGEST: &str = "9999";

/// The private modes that pass (`CSI ? … h` and `l`): cursor keys, reverse video, origin, wrap, cursor, alternate screen, mouse, focus,
/// pasted text, drawing at once.
const MODES: [u16; 20] =
    [1, 5, 6, 7, 12, 25, 45, 47, 1000, 1002, 1003, 1004, 1005, 1006, 1015, 1047, 1048, 1049, 2004, 2026];
/// The modes that pass (`CSI … h` and `l`): insert, and new line.
const PLAIN_MODES: [u16; 2] = [4, 20];
/// The letters of sequences that move, erase, scroll and colour.
/// Setting and clearing tabulators (`CSI g`, `ESC H`) is not among them: nothing puts back those that the terminal had.
const DRAWING: &str = "@ABCDEFGHIJKLMPSXZ`abdefmrsu";

/// Puts a terminal back that a program has had: no mouse, no modes, no colours, all lines scroll. The place of the cursor stays.
pub(crate) const AS_BEFORE: &str = "\x1b[?1000;1002;1003;1004;1005;1006;1015;2004;2026;1;5;6;45l\x1b[?7;25h\x1b[4;20l\x1b>\x1b(B\x0f\x1b7\x1b[r\x1b8\x1b[0 q\x1b[0m";
/// Leaves the screen that full-screen programs use.
pub(crate) const FIRST_SCREEN: &str = "\x1b[?1049l";

/// Where in a sequence the text is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Within {
    #[default]
    Text,
    /// Behind ESC.
    Escape,
    /// Behind ESC and an intermediate character.
    Charset,
    /// In a control sequence.
    Control,
    /// In a string, which nobody gets.
    String,
    /// Behind an ESC in a string.
    StringEscape,
}

/// The filter of one stream, which may come in pieces.
#[derive(Debug, Default)]
pub(crate) struct Drawn {
    within: Within,
    /// What there is of a sequence, behind ESC.
    sequence: String,
    /// Whether the program draws on the other screen.
    is_full_screen: bool,
}

impl Drawn {
    /// What of a piece goes to the terminal.
    pub(crate) fn of(&mut self, piece: &str) -> String {
        let mut out = String::with_capacity(piece.len());
        for c in piece.chars() {
            self.take(c, &mut out);
        }
        out
    }

    /// Whether the terminal shows the screen of full-screen programs.
    pub(crate) fn is_full_screen(&self) -> bool {
        self.is_full_screen
    }

    fn take(&mut self, c: char, out: &mut String) {
        let is_string = matches!(self.within, Within::String | Within::StringEscape);
        match c {
            // They end whatever was begun (ECMA-48, 8.3.6 and 8.3.148).
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
                // ST ends it; anything else begins a sequence.
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
            // One more character belongs to it.
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
            // Too long, or a control in the middle: nobody needs either to draw.
            _ => self.begin(Within::Text),
        }
    }

    /// Makes numbers smaller that are too large.
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

    /// Whether the sequence with this last letter passes.
    fn is_drawing(&mut self, last: char) -> bool {
        let body = &self.sequence[1..];
        if matches!(last, 'h' | 'l') {
            let (modes, known) = match body.strip_prefix('?') {
                Some(modes) => (modes, MODES.as_slice()),
                None => (body, PLAIN_MODES.as_slice()),
            };
            // A number as Rust reads it may begin with a sign, which is another sequence.
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
        // Of the screen, and not what was there before it (`3`), which the person may need.
        if last == 'J' {
            return body.split(';').all(|what| matches!(what.trim_start_matches('0'), "" | "1" | "2"));
        }
        // The shape of the cursor, and a soft reset.
        if (last == 'q' && body.ends_with(' ') && numbers(&body[..body.len() - 1]))
            || (last == 'p' && body == "!")
        {
            return true;
        }
        // With more than one number, `T` would have the terminal follow the mouse and wait.
        numbers(body) && (DRAWING.contains(last) || (last == 'T' && !body.contains([';', ':'])))
    }
}

fn numbers(body: &str) -> bool {
    body.bytes().all(|byte| byte.is_ascii_digit() || byte == b';' || byte == b':')
}

/// Whether a character outside of a sequence passes: of the controls those that move the cursor, the bell, and the two that choose a
/// character set. ENQ would have the terminal answer; C1 controls are sequences in another form.
fn passes(c: char) -> bool {
    match c {
        '\x07'..='\x0f' => true,
        c => !c.is_control(),
    }
}

/// The text of what a program wrote to a terminal, without its sequences.
pub(crate) fn plain(text: &str) -> String {
    let mut drawn = Drawn::default();
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        let before = out.len();
        let was_text = drawn.within == Within::Text;
        drawn.take(c, &mut out);
        // What passes of a sequence is put whole, when its last character comes.
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
        Drawn::default().of(text)
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
            // Titles, the clipboard, links, colours that are asked for.
            "\x1b]0;title\x07",
            "\x1b]52;c;cm0gLXJm\x1b\\",
            "\x1b]8;;http://x\x1b\\",
            "\x1b]11;?\x07",
            "\u{9d}52;c;AAAA\u{9c}",
            // Who are you, where is the cursor, which modes, which checksum, which size.
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
            // Printing, the locked keyboard, the width, other keys, a window that moves, highlighting of the mouse.
            "\x1b[5i",
            "\x1b[2h",
            "\x1b[?3h",
            "\x1b[>4;2m",
            "\x1b[>1u",
            "\x1b[3;0;0t",
            "\x1b[1;2;3;4;5T",
            // Modes with a sign, and tabulators, which nothing puts back.
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
            let out = filter.of(&text[..at]) + &filter.of(&text[at..]);
            assert_eq!(out, "ab\x1b[?1049h\x1b[31mcd");
            assert!(filter.is_full_screen());
        }
        let mut filter = Drawn::default();
        filter.of(&format!("\x1b]{}", "x".repeat(1_000_000)));
        filter.of(&format!("\x1b[{}", "1;".repeat(500_000)));
        assert!(filter.sequence.capacity() < 1024, "{}", filter.sequence.capacity());
    }

    #[test]
    fn the_text_of_a_screen_has_no_sequences() {
        assert_eq!(plain("\x1b[2J\x1b[1;31mdone\x1b[0m: 3 files\r\n\x1b]0;t\x07\x1b(B"), "done: 3 files");
    }
}
