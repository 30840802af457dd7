//! Full-area texts: the log of a task, and the details of the selected task.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::text::Line;
use ratatui::widgets::{Block, Borders, Padding, Widget as _};

use super::piece::{ColourUse, Pieces, shown};
use crate::top::peek::{InkedLine, LogView};
use crate::top::picture::TaskRow;
use base::terminal::{Ink, wrap};

/// Returns a line without a style.
pub(super) fn plain(text: &str) -> InkedLine {
    InkedLine { ink: None, text: text.to_owned() }
}

fn inked(ink: Ink, text: String) -> InkedLine {
    InkedLine { ink: Some(ink), text }
}

/// Breaks a text between words into lines of at most `width` columns. The lines of an indented text keep its indent.
pub(super) fn broken(inked: &InkedLine, width: usize, look: ColourUse) -> Vec<Line<'static>> {
    let text = shown(&inked.text);
    let rest = text.trim_start_matches(' ');
    let indent = (text.len() - rest.len()).min(width / 2);
    let line = |part: String| {
        let part = format!("{:indent$}{part}", "");
        let mut line = Pieces::with_colours(look);
        match inked.ink {
            Some(ink) => line.ink(ink, &part),
            None => line.plain(&part),
        }
        line.line()
    };
    wrap(rest, width.saturating_sub(indent).max(1)).into_iter().map(line).collect()
}

/// Draws the log of a task: its end, or the part to which the user has scrolled.
pub(super) fn peek(peek: &LogView, look: ColourUse, area: Rect, buffer: &mut Buffer) {
    let mut title = Pieces::with_colours(look);
    title.ink(Ink::Bold, &format!(" {}", peek.task));
    title.plain(&format!("  {} ", peek.title));
    let end = if peek.follows() { "following" } else { "G follows again" };
    let place = [peek.position().as_str(), end].join(", ");
    let mut below = Pieces::with_colours(look);
    below.ink(Ink::Dim, &format!(" {} ", place.trim_start_matches(", ")));
    let frame = Block::new().borders(Borders::TOP | Borders::BOTTOM).title(title.line());
    let frame = frame.title_bottom(below.line().right_aligned());
    let inner = frame.inner(area);
    frame.render(area, buffer);
    let mut lines = log_lines(peek, look, inner);
    if lines.is_empty() {
        lines = broken(&inked(Ink::Dim, peek.emptiness().to_owned()), usize::from(inner.width), look);
    }
    fill(lines, inner, buffer);
}

/// Returns the visible lines of a log: the lines above the bottom of the visible part, and lines below it if space is
/// left.
fn log_lines(peek: &LogView, look: ColourUse, area: Rect) -> Vec<Line<'static>> {
    let (height, width) = (usize::from(area.height), usize::from(area.width));
    let (above, below) = peek.around();
    let mut found: Vec<Line<'static>> = Vec::new();
    for line in above {
        found.extend(broken(line, width, look).into_iter().rev());
        if found.len() >= height {
            break;
        }
    }
    found.truncate(height);
    found.reverse();
    for line in below {
        if found.len() >= height {
            break;
        }
        found.extend(broken(line, width, look));
    }
    found
}

/// Draws the details of the selected task.
pub(super) fn details(row: Option<&TaskRow>, look: ColourUse, area: Rect, buffer: &mut Buffer) {
    let frame = Block::new().borders(Borders::LEFT).padding(Padding::horizontal(1));
    let inner = frame.inner(area);
    frame.render(area, buffer);
    let Some(row) = row else { return };
    let tenant = row.tenant.as_ref().map(|tenant| format!("  tenant {tenant}")).unwrap_or_default();
    let priority = if row.priority == 0 { String::new() } else { format!("  priority {}", row.priority) };
    let state = format!("{}  {}  {}{tenant}{priority}", row.id, row.word, row.assignee);
    let mut all = vec![inked(Ink::Bold, row.title.clone()), plain(&state)];
    if let Some(question) = &row.question {
        all.push(plain(""));
        all.extend(question.text.lines().map(plain));
        let choices = question.choices.iter().enumerate();
        all.extend(choices.map(|(index, choice)| plain(&format!("  {}. {choice}", index + 1))));
    }
    for (name, text) in &row.details {
        all.push(plain(""));
        all.push(inked(Ink::Dim, (*name).to_owned()));
        all.extend(text.lines().map(|line| plain(&format!("  {line}"))));
    }
    let width = usize::from(inner.width);
    fill(all.iter().flat_map(|line| broken(line, width, look)), inner, buffer);
}

fn fill(lines: impl IntoIterator<Item = Line<'static>>, area: Rect, buffer: &mut Buffer) {
    for (line, row) in lines.into_iter().zip(area.rows()) {
        line.render(row, buffer);
    }
}
