//! Terminal output for people: width, colour, tables, and views that fill the terminal.

use kernel::Counted;
use std::io::IsTerminal;

use unicode_width::UnicodeWidthStr as _;

pub mod choose;
mod escapes;
pub mod full_screen;
#[cfg(test)]
mod fuzz_tests;
pub mod raw;
mod safe;
pub mod signals;
mod streams;
mod table;
mod wrapping;

use wrapping::wrap_after;

pub use escapes::{AS_BEFORE, Drawn, FIRST_SCREEN, plain};
pub use safe::{LogWriter, json, json_of, printable, printable_lines, printable_output, without_styles};
pub use streams::{complain, print, reader_is_gone};
pub use table::Cell;
pub use wrapping::{cut, wrap};

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum Colour {
    // On a terminal, unless `NO_COLOR` is set or `TERM` is `dumb`.
    #[default]
    Auto,
    Always,
    Never,
}

impl Colour {
    /// Returns true if output to a stream is coloured, by no-color.org, clicolors and the stream itself.
    fn applies(self, to_terminal: Terminal, env: impl Fn(&str) -> Option<String>) -> bool {
        let set = |name: &str| env(name).is_some_and(|value| !value.is_empty());
        match self {
            Colour::Always => true,
            Colour::Never => false,
            Colour::Auto if set("NO_COLOR") => false,
            Colour::Auto if env("CLICOLOR_FORCE").is_some_and(|v| v != "0" && !v.is_empty()) => true,
            Colour::Auto => to_terminal == Terminal::Yes && env("TERM").as_deref() != Some("dumb"),
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Terminal {
    Yes,
    No,
}

/// Style of a piece of text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ink {
    Bold,
    /// Least important text.
    Dim,
    /// Success.
    Green,
    /// Waiting or a warning.
    Yellow,
    /// Failure.
    Red,
    /// The work is in progress.
    Cyan,
}

/// Indent of the continuation of a text under a long label, in columns.
const UNDER: usize = 4;

/// Text under construction for one reader, with the reader's width and colour setting.
#[derive(Debug)]
pub struct Screen {
    text: String,
    width: usize,
    colour: bool,
}

impl Screen {
    pub fn stdout(colour: Colour) -> Self {
        let terminal = if std::io::stdout().is_terminal() { Terminal::Yes } else { Terminal::No };
        let width = std::env::var("COLUMNS").ok().and_then(|c| c.parse().ok()).or_else(|| {
            rustix::termios::tcgetwinsize(std::io::stdout())
                .ok()
                .map(|w| usize::from(w.ws_col))
                .filter(|w| *w > 0)
        });
        Screen {
            text: String::new(),
            // A pipe has no width: tables are laid out in full there, so that scripts see every character.
            width: width.unwrap_or(if terminal == Terminal::Yes { 80 } else { usize::from(u16::MAX) }),
            colour: colour.applies(terminal, |name| std::env::var(name).ok()),
        }
    }

    /// A screen for standard error, where text is not laid out.
    pub fn stderr(colour: Colour) -> Self {
        let terminal = if std::io::stderr().is_terminal() { Terminal::Yes } else { Terminal::No };
        let colour = colour.applies(terminal, |name| std::env::var(name).ok());
        Screen { text: String::new(), width: usize::MAX, colour }
    }

    /// A screen of a given width, without colour.
    pub fn plain(width: usize) -> Self {
        Screen { text: String::new(), width, colour: false }
    }

    /// A coloured screen of unlimited width, for a reader that understands terminal sequences.
    pub fn coloured() -> Self {
        Screen { text: String::new(), width: usize::MAX, colour: true }
    }

    pub fn is_coloured(&self) -> bool {
        self.colour
    }

    pub fn paint(&self, ink: Ink, text: &str) -> String {
        if !self.colour || text.is_empty() {
            return text.to_owned();
        }
        let code = match ink {
            Ink::Bold => "1",
            Ink::Dim => "2",
            Ink::Green => "32",
            Ink::Yellow => "33",
            Ink::Red => "31",
            Ink::Cyan => "36",
        };
        format!("\x1b[{code}m{text}\x1b[0m")
    }

    pub fn line(&mut self, text: impl AsRef<str>) {
        self.text.push_str(text.as_ref());
        self.text.push('\n');
    }

    /// Adds a heading, preceded by an empty line unless it is the first line.
    pub fn heading(&mut self, text: &str) {
        if !self.text.is_empty() {
            self.text.push('\n');
        }
        let text = self.paint(Ink::Bold, text);
        self.line(text);
    }

    /// Adds indented lines of pieces, in their order, with as many pieces to a line as fit.
    pub fn flow(&mut self, indent: &str, pieces: &[String]) {
        let mut line = String::new();
        for piece in pieces {
            if !line.is_empty() && indent.width() + line.width() + 2 + piece.width() > self.width {
                let full = std::mem::take(&mut line);
                self.indented(indent, &full);
            }
            if !line.is_empty() {
                line.push_str("  ");
            }
            line.push_str(piece);
        }
        if !line.is_empty() {
            self.indented(indent, &line);
        }
    }

    /// Adds a text, wrapped at words with the same indent on each line. A word longer than a line, such as a path, is
    /// not broken.
    fn indented(&mut self, indent: &str, text: &str) {
        let room = self.width.saturating_sub(indent.width());
        let mut lines: Vec<String> = Vec::new();
        for word in text.split(' ') {
            match lines.last_mut() {
                Some(line) if line.width() + 1 + word.width() <= room => {
                    line.push(' ');
                    line.push_str(word);
                }
                Some(_) | None => lines.push(word.to_owned()),
            }
        }
        for line in lines {
            let line = self.paint(Ink::Dim, &line);
            self.line(format!("{indent}{line}"));
        }
    }

    /// Adds a label and a text that continues in the column where it began. Under a long label it continues near the
    /// margin, because a narrow column of words is hard to read.
    pub fn hanging(&mut self, label: &str, text: &str) {
        let taken = without_styles(label).width();
        if taken > self.width {
            // A label wider than the screen is wrapped together with the text.
            let whole =
                wrap_after(&format!("{label}{text}"), self.width, self.width.saturating_sub(UNDER).max(20));
            for (at, line) in whole.iter().enumerate() {
                self.line(format!("{:indent$}{line}", "", indent = if at == 0 { 0 } else { UNDER }));
            }
            return;
        }
        let column = if taken > self.width * 2 / 5 { UNDER } else { taken };
        let room = self.width.saturating_sub(column).max(20);
        // If only a few columns are left beside the label, the text begins on the next line.
        let first = match self.width.saturating_sub(taken) {
            left if left >= 20 || left >= text.width() => left,
            _ => 0,
        };
        let mut lines = wrap_after(text, first, room).into_iter();
        let first = lines.next().unwrap_or_default();
        self.line(format!("{label}{first}").trim_end());
        for line in lines {
            self.line(format!("{:column$}{line}", ""));
        }
    }

    /// Adds a head and a text on one line, cut at the width.
    pub fn line_cut(&mut self, head: &str, text: &str) {
        let text = cut(text, self.width.saturating_sub(without_styles(head).width()).max(20));
        self.line(format!("{head}{text}").trim_end());
    }

    /// Returns the text, limited to the height of the terminal.
    pub fn into_page(self) -> String {
        let rows =
            rustix::termios::tcgetwinsize(std::io::stdout()).map_or(0, |size| usize::from(size.ws_row));
        page(self.text, rows)
    }

    /// Returns the whole text.
    pub fn into_text(self) -> String {
        self.text
    }
}

/// Returns as many lines as fit `rows` rows with the cursor below them, and the number of the omitted lines. 0 rows
/// mean no limit.
fn page(text: String, rows: usize) -> String {
    let lines = text.lines().count();
    if rows < 3 || lines < rows {
        return text;
    }
    let visible_rows = rows - 2;
    let page: String = text.split_inclusive('\n').take(visible_rows).collect();
    format!("{page}… {}\n", Counted(lines - visible_rows, "more line"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_flow_into_lines_at_their_indent_and_long_words_stay_whole() {
        let mut screen = Screen::plain(24);
        let path = "/a/path/that/is/longer/than/a/line";
        screen.flow(
            "  ",
            &["one".to_owned(), "two".to_owned(), "waits for a slot of profile shell".to_owned()],
        );
        screen.flow("  ", &[path.to_owned()]);
        let expected = format!("  one  two\n  waits for a slot of\n  profile shell\n  {path}\n");
        assert_eq!(screen.into_text(), expected);
    }

    #[test]
    fn colour_follows_the_conventions() {
        let none = |_: &str| None;
        let no_color = |name: &str| (name == "NO_COLOR").then(|| "1".to_owned());
        let dumb = |name: &str| (name == "TERM").then(|| "dumb".to_owned());
        assert!(Colour::Auto.applies(Terminal::Yes, none));
        assert!(!Colour::Auto.applies(Terminal::No, none));
        assert!(!Colour::Auto.applies(Terminal::Yes, no_color));
        assert!(!Colour::Auto.applies(Terminal::Yes, dumb));
        assert!(Colour::Always.applies(Terminal::No, no_color));
        assert!(!Colour::Never.applies(Terminal::Yes, none));
    }

    #[test]
    fn a_page_leaves_the_top_in_sight() {
        let text = || "1\n2\n3\n4\n".to_owned();
        assert_eq!(page(text(), 0), text());
        assert_eq!(page(text(), 5), text());
        assert_eq!(page(text(), 4), "1\n2\n… 2 more lines\n");
    }

    #[test]
    fn a_long_text_goes_on_under_itself() {
        let mut screen = Screen::plain(32);
        screen.hanging("t_0123abcd  ", "waits for /srv/somewhere: t_89abcdef works there");
        insta::assert_snapshot!(screen.into_text(), @r"
        t_0123abcd  waits for
                    /srv/somewhere:
                    t_89abcdef works
                    there
        ");
    }

    #[test]
    fn a_text_goes_on_near_the_margin_under_a_long_label() {
        let mut screen = Screen::plain(40);
        screen.hanging("the environment claude of lane: ", "its program is not there");
        screen.hanging("the environment of a claude: ", "its program is not there");
        insta::assert_snapshot!(screen.into_text(), @r"
        the environment claude of lane:
            its program is not there
        the environment of a claude:
            its program is not there
        ");
        let mut screen = Screen::plain(24);
        screen.hanging("the program of the lane claude: ", "it is not there");
        insta::assert_snapshot!(screen.into_text(), @r"
        the program of the lane
            claude: it is not
            there
        ");
        let mut screen = Screen::plain(60);
        screen.hanging("  root /srv/fleet, board default: ", "1 blocked, 2 done, 1 ready, 1 running, 3 todo");
        insta::assert_snapshot!(screen.into_text(), @r"
          root /srv/fleet, board default: 1 blocked, 2 done, 1
            ready, 1 running, 3 todo
        ");
    }

    #[test]
    fn details_are_put_side_by_side_as_far_as_they_fit() {
        let mut screen = Screen::plain(24);
        screen.flow("  ", &["shell".to_owned(), "acme".to_owned(), "/srv/somewhere".to_owned()]);
        assert_eq!(screen.into_text(), "  shell  acme\n  /srv/somewhere\n");
    }
}
