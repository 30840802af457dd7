//! List of tasks: a heading for each section, a line for each task.

use std::time::Duration;

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Modifier;
use ratatui::text::Line;
use ratatui::widgets::Widget as _;
use unicode_width::UnicodeWidthStr as _;

use super::number;
use super::piece::{ColourUse, Pieces, shown};
use crate::top::model::TopModel;
use crate::top::picture::{Load, Section, TaskGroup, TaskRow, Total};
use base::terminal::{Ink, cut};
use base::time::duration::in_column;

/// Widths of the columns that every line has: id and state.
const ID: usize = 10;
const WORD: usize = 9;
/// Width from which on tenants and priorities fit.
const ROOM_FOR_MORE: usize = 100;
/// Least width of a title; columns are dropped before it gets shorter.
const TITLE: usize = 20;

/// A column that may be dropped on a narrow screen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ListColumn {
    Who,
    Tenant,
    Since,
    Priority,
    Cpu,
    Memory,
    Tokens,
}

impl ListColumn {
    /// Returns its heading and its width.
    fn head(self) -> (&'static str, usize) {
        match self {
            ListColumn::Who | ListColumn::Tenant => ("", 10),
            ListColumn::Since => ("SINCE", 6),
            ListColumn::Priority => ("PRIO", 4),
            ListColumn::Cpu => ("CPU", 5),
            ListColumn::Memory => ("MEM", 7),
            ListColumn::Tokens => ("TOKENS", 6),
        }
    }

    fn is_of(self, section: Section) -> bool {
        match self {
            ListColumn::Who | ListColumn::Tenant | ListColumn::Since | ListColumn::Priority => true,
            ListColumn::Cpu | ListColumn::Memory | ListColumn::Tokens => section == Section::Running,
        }
    }

    /// Returns its text for a task.
    fn shows(self, row: &TaskRow) -> String {
        let or_dash = |text: Option<String>| text.unwrap_or_else(|| "-".to_owned());
        let Load { cpu, memory_bytes, tokens } = row.load;
        match self {
            ListColumn::Who => row.assignee.clone(),
            ListColumn::Tenant => row.tenant.clone().unwrap_or_else(|| "-".to_owned()),
            ListColumn::Since => age(row.age),
            ListColumn::Priority => priority(row.priority),
            ListColumn::Cpu => or_dash(cpu.map(|percent| format!("{percent}%"))),
            ListColumn::Memory => {
                or_dash(memory_bytes.map(|bytes| policies::ByteSize(bytes).to_string().replace(' ', "")))
            }
            ListColumn::Tokens => or_dash(tokens.map(thousands)),
        }
    }
}

/// Formats a priority, cut to its column's width: here it is only compared with others.
fn priority(of: i64) -> String {
    match of {
        1_000.. => "999+".to_owned(),
        ..=-1_000 => "<-99".to_owned(),
        _ => of.to_string(),
    }
}

/// Columns in use, in order.
struct ColumnLayout {
    width: usize,
    shown: Vec<ListColumn>,
}

impl ColumnLayout {
    /// Returns the columns that fit a width, the same for all lines. Tokens are dropped first, then memory and CPU use,
    /// then assignee and time.
    fn fitting(width: usize, more: &[ListColumn]) -> Self {
        let is_there = |column: &ListColumn| match column {
            ListColumn::Tenant | ListColumn::Priority => width >= ROOM_FOR_MORE && more.contains(column),
            ListColumn::Who
            | ListColumn::Since
            | ListColumn::Cpu
            | ListColumn::Memory
            | ListColumn::Tokens => true,
        };
        let all = [
            ListColumn::Who,
            ListColumn::Tenant,
            ListColumn::Since,
            ListColumn::Priority,
            ListColumn::Cpu,
            ListColumn::Memory,
            ListColumn::Tokens,
        ];
        let mut columns = ColumnLayout { width, shown: all.into_iter().filter(is_there).collect() };
        for column in
            [ListColumn::Tokens, ListColumn::Memory, ListColumn::Cpu, ListColumn::Who, ListColumn::Since]
        {
            if columns.front(Section::Running) + TITLE > width {
                columns.shown.retain(|shown| *shown != column);
            }
        }
        columns
    }

    /// Returns the columns of a section.
    fn in_section(&self, section: Section) -> impl Iterator<Item = ListColumn> {
        self.shown.iter().copied().filter(move |column| column.is_of(section))
    }

    /// Returns the width in front of the title: mark, id, state and columns.
    fn front(&self, section: Section) -> usize {
        2 + ID + 1 + WORD + 1 + self.in_section(section).map(|column| column.head().1 + 1).sum::<usize>()
    }
}

/// Content of a line.
enum ListItem<'a> {
    Gap,
    Heading(&'a TaskGroup),
    Task(&'a TaskRow),
    LeftOut(Total),
}

/// Draws as many lines as fit, with the selected one among them.
pub(super) fn draw(model: &TopModel, look: ColourUse, area: Rect, buffer: &mut Buffer) {
    let Some(picture) = &model.picture else { return };
    let mut items = Vec::new();
    for group in &picture.groups {
        if !items.is_empty() {
            items.push(ListItem::Gap);
        }
        items.push(ListItem::Heading(group));
        items.extend(group.rows.iter().map(ListItem::Task));
        items.extend(group.left_out().map(ListItem::LeftOut));
    }
    if items.is_empty() {
        return nothing(model, look, area, buffer);
    }
    let tenant = model.rows().any(|row| row.tenant.is_some()).then_some(ListColumn::Tenant);
    let priority = model.rows().any(|row| row.priority != 0).then_some(ListColumn::Priority);
    let more: Vec<ListColumn> = tenant.into_iter().chain(priority).collect();
    let columns = &ColumnLayout::fitting(usize::from(area.width), &more);
    let is_chosen = |item: &ListItem<'_>| matches!(item, ListItem::Task(row) if model.has_mark(row));
    let height = usize::from(area.height);
    let mark = items.iter().position(is_chosen).unwrap_or_default();
    // The selection stays in the middle, except near the ends.
    let first = mark.saturating_sub(height / 2).min(items.len().saturating_sub(height));
    for (item, row) in items.iter().skip(first).zip(area.rows()) {
        let line = match item {
            ListItem::Gap => Line::default(),
            ListItem::Heading(group) => heading(group, columns, look),
            ListItem::Task(task) => task_line(task, columns, look, is_chosen(item)),
            ListItem::LeftOut(total) => left_out(*total, look),
        };
        line.render(row, buffer);
        if is_chosen(item) {
            buffer.set_style(row, Modifier::REVERSED);
        }
    }
}

fn nothing(model: &TopModel, look: ColourUse, area: Rect, buffer: &mut Buffer) {
    let mut line = Pieces::with_colours(look);
    if model.query.tenant.is_some() || model.query.search.is_some() {
        line.plain("  No task matches; Esc shows all.");
    } else {
        line.plain(
            "  No tasks. Create one with: supervisor create '<title>' --assignee shell --body '<script>'",
        );
    }
    line.line().render(area, buffer);
}

fn heading(group: &TaskGroup, columns: &ColumnLayout, look: ColourUse) -> Line<'static> {
    let mut line = Pieces::with_colours(look);
    let title = format!("{} ({})", group.section.heading(), number(group.total));
    let (unnamed, named): (Vec<ListColumn>, Vec<ListColumn>) =
        columns.in_section(group.section).partition(|column| column.head().0.is_empty());
    let before = 2 + ID + 1 + WORD + 1 + unnamed.iter().map(|column| column.head().1 + 1).sum::<usize>();
    line.ink(Ink::Bold, &format!("{title:<before$}"));
    let heads = named.into_iter().map(ListColumn::head);
    let heads: Vec<String> = heads.map(|(name, width)| format!("{name:>width$} ")).collect();
    let heads = heads.concat();
    line.ink(Ink::Dim, &format!("{heads}TITLE"));
    line.line()
}

fn left_out(total: Total, look: ColourUse) -> Line<'static> {
    let mut line = Pieces::with_colours(look);
    line.ink(
        Ink::Dim,
        &match total {
            Total::Exactly(count) => format!("  … and {count} more"),
            Total::MoreThan(_) => "  … and more".to_owned(),
        },
    );
    line.line()
}

fn task_line(row: &TaskRow, columns: &ColumnLayout, look: ColourUse, is_chosen: bool) -> Line<'static> {
    let mut line = Pieces::with_colours(look);
    line.plain(if is_chosen { "> " } else { "  " });
    line.plain(&format!("{:<ID$} ", row.id.as_str()));
    line.ink(row.ink, &padded(row.word, WORD));
    line.plain(" ");
    let section = row.kind.section();
    for column in columns.in_section(section) {
        let ((name, width), text) = (column.head(), column.shows(row));
        let text = if name.is_empty() { padded(&text, width) } else { format!("{text:>width$}") };
        line.plain(&format!("{text} "));
    }
    texts(&mut line, row, columns.width.saturating_sub(columns.front(section)));
    line.line()
}

/// Adds the title, and the reason to wait as far as it fits.
fn texts(line: &mut Pieces, row: &TaskRow, room: usize) {
    let (title, says) = (shown(&row.title), shown(&row.says));
    let least = (room * 2 / 5).max(TITLE);
    let for_title = if says.is_empty() { room } else { room.saturating_sub(says.width() + 2).max(least) };
    let title = cut(&title, for_title);
    let left = room.saturating_sub(title.width() + 2);
    line.plain(&title);
    if !says.is_empty() && left > 8 {
        line.ink(Ink::Dim, &format!("  {}", cut(&says, left)));
    }
}

/// Cuts a text to a column's width, and pads it.
fn padded(text: &str, width: usize) -> String {
    let text = cut(&shown(text), width);
    let rest = width.saturating_sub(text.width());
    format!("{text}{:rest$}", "")
}

/// Formats a number in about four characters.
fn thousands(count: u64) -> String {
    match count {
        0..1000 => count.to_string(),
        1000..10_000 => format!("{}.{}k", count / 1000, count % 1000 / 100),
        10_000..1_000_000 => format!("{}k", count / 1000),
        1_000_000..10_000_000 => format!("{}.{}M", count / 1_000_000, count % 1_000_000 / 100_000),
        _ => format!("{}M", count / 1_000_000),
    }
}

/// Formats a time in its two largest units, or in one if two exceed the column.
fn age(time: Duration) -> String {
    let whole = in_column(time);
    if whole.len() <= ListColumn::Since.head().1 {
        whole
    } else {
        kernel::brief(time).split(' ').next().unwrap_or_default().to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_times_fit_their_columns() {
        let counts = [0, 999, 1500, 12_345, 999_999, 1_200_000, 45_000_000].map(thousands);
        assert_eq!(counts, ["0", "999", "1.5k", "12k", "999k", "1.2M", "45M"]);
        let ages = [5, 3599, 86_399, 86_400 * 400].map(|seconds| age(Duration::from_secs(seconds)));
        let priorities = [7, -999, 999, 99_999_999_999, i64::MIN].map(priority);
        assert_eq!(priorities, ["7", "-999", "999", "999+", "<-99"]);
        assert_eq!(ages, ["5s", "59m59s", "23h59m", "400d"]);
        assert!(age(Duration::from_hours(96000)).len() <= ListColumn::Since.head().1);
    }
}
