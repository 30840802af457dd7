//! Mutated output of hostile programs: text for a person's terminal only draws; it makes the terminal answer, obey or
//! hide nothing. A third-party parser (`vte`) decides what a terminal does with it.

use super::{Drawn, plain, printable_output};

/// Elements of a terminal's input.
#[derive(Debug, Default)]
struct Reached {
    sequences: usize,
    strings: usize,
    /// Sequence that makes a terminal answer, print, lock its keyboard, set its title or change its later behaviour.
    wrong: Vec<String>,
}

impl vte::Perform for Reached {
    fn execute(&mut self, byte: u8) {
        if !(0x07..=0x0f).contains(&byte) {
            self.wrong.push(format!("the control {byte:#04x}"));
        }
    }

    fn hook(&mut self, _params: &vte::Params, _intermediates: &[u8], _ignore: bool, _action: char) {
        self.strings += 1;
    }

    fn osc_dispatch(&mut self, _params: &[&[u8]], _bell_terminated: bool) {
        self.strings += 1;
    }

    fn csi_dispatch(&mut self, params: &vte::Params, intermediates: &[u8], ignore: bool, action: char) {
        self.sequences += 1;
        let modes = || params.iter().map(|part| part.first().copied().unwrap_or(0));
        let is_right = match (intermediates, action) {
            // Tabulators stay where the person has them.
            (b"", 'c' | 'g' | 'i' | 'n' | 'p' | 'q' | 't' | 'v' | 'w' | 'x' | 'y' | '|' | '~') => false,
            (b"", 'T') => params.len() <= 1,
            (b"", 'h' | 'l') => modes().all(|mode| [4, 20].contains(&mode)),
            (b"?", 'h' | 'l') => modes().all(|mode| ![2, 3, 9, 1001, 2031, 2048].contains(&mode)),
            (b" ", 'q') | (b"!", 'p') => true,
            (intermediates, _) => intermediates.is_empty(),
        };
        if !is_right || ignore {
            self.wrong.push(format!("CSI {intermediates:?} {params:?} {action}"));
        }
    }

    fn esc_dispatch(&mut self, intermediates: &[u8], ignore: bool, byte: u8) {
        self.sequences += 1;
        let is_right = match intermediates {
            b"" => b"78=>DEM".contains(&byte),
            b"(" | b")" => b"0AB".contains(&byte),
            _ => false,
        };
        if !is_right || ignore {
            self.wrong.push(format!("ESC {intermediates:?} {}", char::from(byte)));
        }
    }
}

/// Parses a text as a terminal does.
fn reached(text: &str) -> Reached {
    let mut reached = Reached::default();
    vte::Parser::new().advance(&mut reached, text.as_bytes());
    reached
}

#[test]
fn what_a_program_draws_has_a_terminal_answer_and_obey_nothing() {
    fuzz::Target::new("terminal", fuzz::Shape::Text).check(|input| {
        let text = String::from_utf8_lossy(input);
        let drawn = Drawn::default().cleaned(&text);
        let reached = reached(&drawn);
        assert_eq!((reached.strings, &reached.wrong), (0, &Vec::new()), "{drawn:?}");
        for introducer in ["\x1b]", "\x1bP", "\x1bX", "\x1b^", "\x1b_", "\x1bc", "\x1bZ"] {
            assert!(!drawn.contains(introducer), "{drawn:?}");
        }
        assert!(!drawn.contains(|c: char| ('\u{7f}'..='\u{9f}').contains(&c)), "{drawn:?}");
        assert_eq!(Drawn::default().cleaned(&drawn), drawn, "what passes once passes again");

        // It comes in pieces, which end anywhere.
        let mut filter = Drawn::default();
        let halves = text.split_at(text.floor_char_boundary(text.len() / 2));
        assert_eq!(filter.cleaned(halves.0) + &filter.cleaned(halves.1), drawn);
        // A sequence without an end takes the text behind it with it no longer than to the next one.
        let after = filter.cleaned("\x1b[0mafter");
        assert!(after.ends_with("after"), "{after:?}");

        let plain_text = plain(&text);
        assert!(!plain_text.contains(|c: char| c.is_control() && c != '\n' && c != '\t'), "{plain_text:?}");
        format!("{} {}", reached.sequences.min(9), drawn.len() == text.len())
    });
}

#[test]
fn the_output_of_a_program_in_lines_drives_no_terminal() {
    fuzz::Target::new("terminal", fuzz::Shape::Text).check(|input| {
        let shown = printable_output(&String::from_utf8_lossy(input));
        assert!(!shown.contains(|c: char| c.is_control() && c != '\n' && c != '\t'), "{shown:?}");
        assert_eq!(printable_output(&shown), shown);
        format!("{}", shown.contains("\\u{1b}"))
    });
}
