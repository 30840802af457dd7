//! Dialogs and the help, drawn over the list.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::widgets::{Block, Clear, Padding, Widget as _};

use super::piece::{ColourUse, Pieces};
use super::text::{broken, plain};
use crate::top::model::{Answering, Approved, Approving, DialogTask, InputLine, Purpose};
use crate::top::peek::InkedLine;
use base::terminal::Ink;

/// Greatest width of a dialog.
const WIDEST: u16 = 100;
const KEYS: [(&str, &str); 13] = [
    ("j k arrows", "move; g and G go to the ends, Tab to the next group"),
    ("Enter", "the log of the latest run, as it is written"),
    ("a", "answer the question of a task"),
    ("A", "approve, or send work back"),
    ("r", "try the task again at once"),
    ("c", "cancel the task; asks first"),
    ("+ -", "raise or lower the priority"),
    ("t", "only the tasks of a tenant"),
    ("/", "only tasks with a text in the title or the body"),
    ("Esc", "all tasks again"),
    ("Ctrl-L", "redraw the screen"),
    ("Ctrl-Z", "stop; `fg` continues"),
    ("q Ctrl-C", "quit"),
];
const COLUMNS: [(&str, &str); 3] = [
    ("SINCE", "how long the task runs, or is in its state"),
    ("CPU MEM", "of all processes of a run; 100% is one processor"),
    ("TOKENS", "what the agent of a run was given and has made"),
];

/// Draws a box in the middle of an area, as high as its text.
fn dialog(title: &str, text: &[InkedLine], look: ColourUse, area: Rect, buffer: &mut Buffer) {
    let width = area.width.min(WIDEST);
    let mut line = Pieces::with_colours(look);
    line.ink(Ink::Bold, &format!(" {title} "));
    let frame = Block::bordered().padding(Padding::horizontal(1)).title(line.line());
    let inner = usize::from(frame.inner(Rect { width, ..area }).width);
    let lines: Vec<_> = text.iter().flat_map(|line| broken(line, inner, look)).collect();
    let height = u16::try_from(lines.len()).unwrap_or(u16::MAX).saturating_add(2).min(area.height);
    let (x, y) = (area.x + (area.width - width) / 2, area.y + (area.height - height) / 2);
    let place = Rect { x, y, width, height };
    Clear.render(place, buffer);
    let inner = frame.inner(place);
    frame.render(place, buffer);
    // If it does not fit, the beginning is cut: the end has the keys.
    let left_out = lines.len().saturating_sub(usize::from(inner.height));
    for (line, row) in lines.into_iter().skip(left_out).zip(inner.rows()) {
        line.render(row, buffer);
    }
}

fn gap() -> InkedLine {
    plain("")
}

fn about(target: &DialogTask) -> InkedLine {
    InkedLine { ink: Some(Ink::Dim), text: format!("{}  {}", target.task, target.title) }
}

fn keys(text: &str) -> InkedLine {
    InkedLine { ink: Some(Ink::Bold), text: text.to_owned() }
}

/// Splits a text into lines.
fn lines(text: &str) -> impl Iterator<Item = InkedLine> + '_ {
    text.lines().map(plain)
}

pub(super) fn help(look: ColourUse, area: Rect, buffer: &mut Buffer) {
    let line = |(key, meaning): &(&str, &str)| plain(&format!("{key:<11} {meaning}"));
    let mut all: Vec<InkedLine> = KEYS.iter().map(line).collect();
    all.push(gap());
    all.extend(COLUMNS.iter().map(line));
    dialog("Help", &all, look, area, buffer);
}

pub(super) fn cancel(target: &DialogTask, look: ColourUse, area: Rect, buffer: &mut Buffer) {
    let explanation = "Its worker is ended, where it has one. The task is then blocked; `r` starts it again.";
    let all = [about(target), gap(), plain(explanation), gap(), keys("Cancel the task? [y/n]")];
    dialog("Cancel", &all, look, area, buffer);
}

pub(super) fn answer(answering: &Answering, look: ColourUse, area: Rect, buffer: &mut Buffer) {
    let question = &answering.question;
    let mut all = vec![about(&answering.target), gap()];
    all.extend(lines(&question.text));
    all.push(gap());
    let words = question.free_text.then_some("something else …");
    let entries = question.choices.iter().map(String::as_str).chain(words);
    for (index, entry) in entries.enumerate() {
        let has_mark = index == answering.at;
        let mark = if has_mark { ">" } else { " " };
        let text = format!("{mark} {}. {entry}", index + 1);
        all.push(if has_mark { keys(&text) } else { plain(&text) });
    }
    dialog("Answer", &all, look, area, buffer);
}

pub(super) fn approve(approving: &Approving, look: ColourUse, area: Rect, buffer: &mut Buffer) {
    let mut all = vec![about(&approving.target), gap()];
    all.extend(approving.facts.iter().flat_map(|fact| lines(fact)));
    if !approving.facts.is_empty() {
        all.push(gap());
    }
    all.push(keys(match approving.of {
        Approved::Work => "y  approve the work     c  request changes     Esc  leave it",
        Approved::Start => "y  approve the start     n  deny it     Esc  leave it",
    }));
    dialog("Approve", &all, look, area, buffer);
}

pub(super) fn prompt(prompt: &InputLine, look: ColourUse, area: Rect, buffer: &mut Buffer) {
    let (title, mut all) = match &prompt.purpose {
        Purpose::Tenant => ("Tenant", vec![plain("Only the tasks of this tenant. Leave empty to show all.")]),
        Purpose::Search => (
            "Search",
            vec![plain("Only tasks with this text in the title or the body. Leave empty to show all.")],
        ),
        Purpose::Answer(target, question) => {
            let asked = lines(&question.text);
            ("Answer", [about(target), gap()].into_iter().chain(asked).collect())
        }
        Purpose::Changes(target) => ("What has to change?", vec![about(target)]),
        Purpose::Denial(target) => ("Why not?", vec![about(target)]),
    };
    all.push(gap());
    all.push(keys(&format!("> {}▏", prompt.text)));
    dialog(title, &all, look, area, buffer);
}

#[cfg(test)]
mod tests {
    use super::KEYS;

    #[test]
    fn the_page_names_every_key() {
        let page = include_str!("../../../../docs/top.md");
        let rows: Vec<&str> = page.lines().filter(|line| line.starts_with('|')).collect();
        for key in KEYS.iter().flat_map(|(keys, _)| keys.split(' ')) {
            let is_named = |row: &&&str| {
                let first = row.split(" | ").next().unwrap_or_default();
                first.split([' ', ',', '`', '|']).any(|word| word == key)
            };
            assert!(rows.iter().any(|row| is_named(&row)), "docs/top.md does not name the key {key}");
        }
    }
}
