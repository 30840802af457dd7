//! What a person sees: width, colour, tables. Nothing else writes to standard output.

use std::io::{IsTerminal, Write as _};

use comfy_table::{CellAlignment, ColumnConstraint, ContentArrangement, Table, Width, presets};

/// When to colour.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Colour {
    /// On a terminal, unless `NO_COLOR` is set or `TERM` is `dumb`
    #[default]
    Auto,
    /// Always
    Always,
    /// Never
    Never,
}

impl Colour {
    /// Whether to colour a stream, by no-color.org, clicolors and the stream itself.
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

/// Whether a stream is a terminal.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Terminal {
    Yes,
    No,
}

/// The style of a piece of text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ink {
    /// Headings.
    Bold,
    /// What matters least.
    Dim,
    /// What went well.
    Green,
    /// What waits or warns.
    Yellow,
    /// What went wrong.
    Red,
    /// What is going on.
    Cyan,
}

/// Text under construction for one reader: knows the width and whether to colour.
#[derive(Debug)]
pub(crate) struct Screen {
    text: String,
    width: usize,
    colour: bool,
}

impl Screen {
    /// A screen for standard output.
    pub(crate) fn stdout(colour: Colour) -> Self {
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

    /// A screen of a given width without colour.
    #[cfg(test)]
    pub(crate) fn plain(width: usize) -> Self {
        Screen { text: String::new(), width, colour: false }
    }

    /// The text in an ink.
    pub(crate) fn paint(&self, ink: Ink, text: &str) -> String {
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

    /// Adds one line.
    pub(crate) fn line(&mut self, text: impl AsRef<str>) {
        self.text.push_str(text.as_ref());
        self.text.push('\n');
    }

    /// Adds a heading with an empty line before it, unless it is the first line.
    pub(crate) fn heading(&mut self, text: &str) {
        if !self.text.is_empty() {
            self.text.push('\n');
        }
        let text = self.paint(Ink::Bold, text);
        self.line(text);
    }

    /// Adds a table. Every cell keeps its text; narrow terminals wrap the widest columns, never beyond the width.
    pub(crate) fn table<const N: usize>(
        &mut self,
        header: [&str; N],
        rows: impl IntoIterator<Item = [String; N]>,
    ) {
        let mut table = Table::new();
        table.load_style(presets::NOTHING);
        table.set_content_arrangement(ContentArrangement::Dynamic);
        table.set_width(u16::try_from(self.width).unwrap_or(u16::MAX));
        table.set_header(header.map(|h| self.paint(Ink::Bold, h)));
        let mut widest = [0; N];
        for row in rows {
            for (i, cell) in row.iter().enumerate() {
                widest[i] = widest[i].max(cell.chars().count());
            }
            table.add_row(row.map(|cell| cell.lines().next().map(printable).unwrap_or_default()));
        }
        for (i, column) in table.column_iter_mut().enumerate() {
            column.set_padding((0, 2));
            column.set_cell_alignment(CellAlignment::Left);
            // Short columns (ids, states, ages) never wrap: broken ids cannot be copied.
            if widest[i] <= 12 && header[i].len() <= 12 {
                let width = u16::try_from(widest[i].max(header[i].len()) + 2).unwrap_or(u16::MAX);
                column.set_constraint(ColumnConstraint::Absolute(Width::Fixed(width)));
            }
        }
        for line in table.lines() {
            self.line(line.trim_end());
        }
    }

    /// What was written so far.
    pub(crate) fn into_text(self) -> String {
        self.text
    }
}

/// The text with control characters shown as escapes, so that a title cannot drive a terminal.
pub(crate) fn printable(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        if c.is_control() && c != '\t' {
            shown.extend(c.escape_unicode());
        } else {
            shown.push(c);
        }
    }
    shown
}

/// The text with control characters other than line ends and tabs shown as escapes.
pub(crate) fn printable_lines(text: &str) -> String {
    text.split('\n').map(printable).collect::<Vec<_>>().join("\n")
}

/// Writes to standard output. A reader that has gone away ends the output quietly, as other tools do.
pub(crate) fn print(text: &str) -> std::io::Result<()> {
    let mut out = std::io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(e) if e.kind() == std::io::ErrorKind::BrokenPipe => Ok(()),
        other => other,
    }
}

/// Writes a line to standard error; there is nowhere left to report a failure of that.
pub(crate) fn complain(text: &str) {
    let mut err = std::io::stderr().lock();
    drop(writeln!(err, "{text}"));
}

#[cfg(test)]
mod tests {
    use super::*;

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
    fn a_table_fits_the_width_and_keeps_ids_whole() {
        let mut screen = Screen::plain(40);
        screen.table(
            ["ID", "TITLE"],
            [["t_0123abcd".to_owned(), "a title that is much longer than forty columns".to_owned()]],
        );
        let text = screen.into_text();
        assert!(text.lines().all(|line| line.chars().count() <= 40), "{text}");
        assert!(text.contains("t_0123abcd"));
    }

    #[test]
    fn control_characters_are_shown_not_obeyed() {
        assert_eq!(printable("a\x1b[31mb"), "a\\u{1b}[31mb");
        assert_eq!(printable_lines("a\nb\x07"), "a\nb\\u{7}");
    }
}
