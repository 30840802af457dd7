//! The list of tasks: a heading for each section, a line for each task.

use std::time::Duration;

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Modifier;
use ratatui::text::Line;
use ratatui::widgets::Widget as _;
use unicode_width::UnicodeWidthStr as _;

use super::number;
use super::piece::{Look, Pieces, shown};
use crate::terminal::{Ink, cut};
use crate::time::duration::brief;
use crate::top::model::Model;
use crate::top::picture::{Group, Load, Row, Section, Total};

/// The columns in front of the text: the mark, the id, the state, who works, and since when.
const ID: usize = 10;
const WORD: usize = 9;
const WHO: usize = 10;
const TENANT: usize = 10;
const AGE: usize = 6;
const CPU: usize = 5;
const MEMORY: usize = 7;
const TOKENS: usize = 6;
const PRIORITY: usize = 4;
/// From this width on there is room for the tenants and the priorities of tasks.
const ROOM_FOR_MORE: u16 = 100;

/// Which columns there are.
#[derive(Clone, Copy)]
struct Columns {
    width: usize,
    tenant: bool,
    priority: bool,
}

/// What stands in a line.
enum Item<'a> {
    Gap,
    Heading(&'a Group),
    Task(&'a Row),
    LeftOut(Total),
}

/// Draws as many lines as fit, the one with the mark among them.
pub(super) fn draw(model: &Model, look: Look, area: Rect, buffer: &mut Buffer) {
    let Some(picture) = &model.picture else { return };
    let mut items = Vec::new();
    for group in &picture.groups {
        if !items.is_empty() {
            items.push(Item::Gap);
        }
        items.push(Item::Heading(group));
        items.extend(group.rows.iter().map(Item::Task));
        items.extend(group.left_out().map(Item::LeftOut));
    }
    if items.is_empty() {
        return nothing(model, look, area, buffer);
    }
    let columns = Columns {
        width: usize::from(area.width),
        tenant: area.width >= ROOM_FOR_MORE && model.rows().any(|row| row.tenant.is_some()),
        priority: area.width >= ROOM_FOR_MORE && model.rows().any(|row| row.priority != 0),
    };
    let chosen = model.row().map(|row| &row.id);
    let is_chosen = |item: &Item<'_>| matches!(item, Item::Task(row) if Some(&row.id) == chosen);
    let height = usize::from(area.height);
    let mark = items.iter().position(is_chosen).unwrap_or_default();
    // The mark stays in the middle, except near the ends.
    let first = mark.saturating_sub(height / 2).min(items.len().saturating_sub(height));
    for (item, row) in items.iter().skip(first).zip(area.rows()) {
        let line = match item {
            Item::Gap => Line::default(),
            Item::Heading(group) => heading(group, columns, look),
            Item::Task(task) => task_line(task, columns, look, is_chosen(item)),
            Item::LeftOut(total) => left_out(*total, look),
        };
        line.render(row, buffer);
        if is_chosen(item) {
            buffer.set_style(row, Modifier::REVERSED);
        }
    }
}

fn nothing(model: &Model, look: Look, area: Rect, buffer: &mut Buffer) {
    let mut line = Pieces::of(look);
    if model.query.tenant.is_some() || model.query.search.is_some() {
        line.plain("  No task matches; Esc shows all.");
    } else {
        line.plain(
            "  No tasks. Create one with: supervisor create '<title>' --assignee shell --body '<script>'",
        );
    }
    line.line().render(area, buffer);
}

fn heading(group: &Group, columns: Columns, look: Look) -> Line<'static> {
    let mut line = Pieces::of(look);
    let title = format!("{} ({})", group.section.heading(), number(group.total));
    let before = 2 + ID + 1 + WORD + 1 + WHO + 1 + if columns.tenant { TENANT + 1 } else { 0 };
    line.ink(Ink::Bold, &format!("{title:<before$}"));
    let priority = if columns.priority { format!("{:>PRIORITY$} ", "PRIO") } else { String::new() };
    let used = match group.section {
        Section::Running => format!("{:>CPU$} {:>MEMORY$} {:>TOKENS$} ", "CPU", "MEM", "TOKENS"),
        _ => String::new(),
    };
    line.ink(Ink::Dim, &format!("{:>AGE$} {priority}{used}TITLE", "SINCE"));
    line.line()
}

fn left_out(total: Total, look: Look) -> Line<'static> {
    let mut line = Pieces::of(look);
    line.ink(
        Ink::Dim,
        &match total {
            Total::Exactly(count) => format!("  … and {count} more"),
            Total::MoreThan(_) => "  … and more".to_owned(),
        },
    );
    line.line()
}

fn task_line(row: &Row, columns: Columns, look: Look, is_chosen: bool) -> Line<'static> {
    let mut line = Pieces::of(look);
    let mut front = 2 + ID + 1 + WORD + 1 + WHO + 1 + AGE + 1;
    line.plain(if is_chosen { "> " } else { "  " });
    line.plain(&format!("{:<ID$} ", row.id.as_str()));
    line.ink(row.ink, &padded(row.word, WORD));
    line.plain(" ");
    line.plain(&padded(&row.who, WHO));
    line.plain(" ");
    if columns.tenant {
        front += TENANT + 1;
        line.plain(&padded(row.tenant.as_deref().unwrap_or("-"), TENANT));
        line.plain(" ");
    }
    line.plain(&format!("{:>AGE$} ", age(row.age)));
    if columns.priority {
        front += PRIORITY + 1;
        line.plain(&format!("{:>PRIORITY$} ", row.priority));
    }
    if row.kind.section() == Section::Running {
        front += CPU + 1 + MEMORY + 1 + TOKENS + 1;
        line.plain(&load(row.load));
    }
    texts(&mut line, row, columns.width.saturating_sub(front));
    line.line()
}

/// The title, and why the task waits as far as there is room.
fn texts(line: &mut Pieces, row: &Row, room: usize) {
    let (title, says) = (shown(&row.title), shown(&row.says));
    let least = room * 2 / 5;
    let for_title = if says.is_empty() { room } else { room.saturating_sub(says.width() + 2).max(least) };
    let title = cut(&title, for_title);
    let left = room.saturating_sub(title.width() + 2);
    line.plain(&title);
    if !says.is_empty() && left > 8 {
        line.ink(Ink::Dim, &format!("  {}", cut(&says, left)));
    }
}

/// A text in a column, cut and filled up.
fn padded(text: &str, width: usize) -> String {
    let text = cut(&shown(text), width);
    let rest = width.saturating_sub(text.width());
    format!("{text}{:rest$}", "")
}

fn load(load: Load) -> String {
    let or_dash = |text: Option<String>| text.unwrap_or_else(|| "-".to_owned());
    let cpu = or_dash(load.cpu.map(|percent| format!("{percent}%")));
    let memory =
        or_dash(load.memory_bytes.map(|bytes| policies::ByteSize(bytes).to_string().replace(' ', "")));
    let tokens = or_dash(load.tokens.map(thousands));
    format!("{cpu:>CPU$} {memory:>MEMORY$} {tokens:>TOKENS$} ")
}

/// A number in four characters or so.
fn thousands(count: u64) -> String {
    match count {
        0..1000 => count.to_string(),
        1000..10_000 => format!("{}.{}k", count / 1000, count % 1000 / 100),
        10_000..1_000_000 => format!("{}k", count / 1000),
        1_000_000..10_000_000 => format!("{}.{}M", count / 1_000_000, count % 1_000_000 / 100_000),
        _ => format!("{}M", count / 1_000_000),
    }
}

/// A time in its two greatest units, or in one where two are too long for the column.
fn age(time: Duration) -> String {
    let text = brief(time);
    let whole = text.replace(' ', "");
    if whole.len() <= AGE { whole } else { text.split(' ').next().unwrap_or_default().to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_times_fit_their_columns() {
        let counts = [0, 999, 1500, 12_345, 999_999, 1_200_000, 45_000_000].map(thousands);
        assert_eq!(counts, ["0", "999", "1.5k", "12k", "999k", "1.2M", "45M"]);
        let ages = [5, 3599, 86_399, 86_400 * 400].map(|seconds| age(Duration::from_secs(seconds)));
        assert_eq!(ages, ["5s", "59m59s", "23h59m", "400d0h"]);
        assert!(age(Duration::from_hours(96000)).len() <= AGE);
    }
}
