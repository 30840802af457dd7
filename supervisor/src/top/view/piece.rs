//! Styled pieces of text. All text passes through here: characters that control a terminal, reorder or hide text are
//! shown as escapes.

use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};

use base::terminal::{Ink, printable};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::top) enum ColourUse {
    Coloured,
    Plain,
}

impl ColourUse {
    pub(super) fn style(self, ink: Ink) -> Style {
        let colour = match ink {
            Ink::Bold => return Style::new().add_modifier(Modifier::BOLD),
            Ink::Dim => return Style::new().add_modifier(Modifier::DIM),
            Ink::Green => Color::Green,
            Ink::Yellow => Color::Yellow,
            Ink::Red => Color::Red,
            Ink::Cyan => Color::Cyan,
        };
        match self {
            ColourUse::Coloured => Style::new().fg(colour),
            ColourUse::Plain => Style::new(),
        }
    }
}

/// Makes a text printable on one line.
pub(super) fn shown(text: &str) -> String {
    let line = text.split(['\n', '\r', '\t']).collect::<Vec<_>>().join(" ");
    printable(&line)
}

/// A line under construction.
#[derive(Debug)]
pub(super) struct Pieces {
    look: ColourUse,
    spans: Vec<Span<'static>>,
}

impl Pieces {
    pub(super) fn with_colours(look: ColourUse) -> Self {
        Pieces { look, spans: Vec::new() }
    }

    /// Adds a text without a style.
    pub(super) fn plain(&mut self, text: &str) {
        self.spans.push(Span::raw(shown(text)));
    }

    /// Adds a text in a colour.
    pub(super) fn ink(&mut self, ink: Ink, text: &str) {
        self.spans.push(Span::styled(shown(text), self.look.style(ink)));
    }

    /// Adds a highlighted text.
    pub(super) fn alarm(&mut self, text: &str) {
        let style = self.look.style(Ink::Yellow).add_modifier(Modifier::REVERSED);
        self.spans.push(Span::styled(shown(text), style));
    }

    pub(super) fn line(self) -> Line<'static> {
        Line::from(self.spans)
    }
}
