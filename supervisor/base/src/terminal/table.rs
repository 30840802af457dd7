//! Tables for the terminal. Columns are as wide as their contents, and the last column takes the rest of the width.
//! If a table is too wide, some columns move below their row, each with its name.

use comfy_table::{
    Attribute, Cell as Styled, CellAlignment, Color, ColumnConstraint, ContentArrangement, Table, Width,
    presets,
};
use unicode_width::UnicodeWidthStr as _;

use super::{Ink, Screen, cut, printable};

/// Space between columns.
const GAP: u16 = 2;
/// Least width of the last column, on a terminal of any width.
const LAST: usize = 16;

/// Width up to which columns (ids, states, ages) are never narrowed, because a broken id cannot be copied.
const SHORT: usize = 12;

/// Width at which a column of text is readable, unless its longest word is wider. A point in time is this wide.
const READABLE: usize = 26;

/// Text for an absent value.
const DASH: &str = "-";

/// Cell of a table: its text, and an optional style.
#[derive(Clone, Debug)]
pub struct Cell {
    text: String,
    ink: Option<Ink>,
}

impl Cell {
    pub fn inked(ink: Ink, text: impl Into<String>) -> Self {
        Cell { ink: Some(ink), ..Cell::from(text.into()) }
    }

    /// Makes a cell from an optional value; none becomes a dash.
    pub fn or_dash(value: Option<impl ToString>) -> Self {
        value.map_or_else(|| Cell::from(DASH.to_owned()), |value| Cell::from(value.to_string()))
    }

    /// Returns the text, which is safe for a terminal.
    pub fn text(&self) -> &str {
        &self.text
    }

    fn width(&self) -> usize {
        self.text.width()
    }

    /// Returns the least width of a column in which the cell is readable: no word is broken, and a longer text has at least
    /// `readable` columns.
    fn least(&self, readable: usize) -> usize {
        let longest = self.text.split(' ').map(|word| word.width()).max().unwrap_or_default();
        longest.max(self.width().min(readable))
    }

    fn is_absent(&self) -> bool {
        self.text.is_empty() || self.text == DASH
    }

    fn styled(self) -> Styled {
        let cell = Styled::new_owned(self.text);
        // The `Dark` names are the eight colours of the terminal's theme.
        match self.ink {
            None => cell,
            Some(Ink::Bold) => cell.add_attribute(Attribute::Bold),
            Some(Ink::Dim) => cell.add_attribute(Attribute::Dim),
            Some(Ink::Green) => cell.fg(Color::DarkGreen),
            Some(Ink::Yellow) => cell.fg(Color::DarkYellow),
            Some(Ink::Red) => cell.fg(Color::DarkRed),
            Some(Ink::Cyan) => cell.fg(Color::DarkCyan),
        }
    }
}

impl From<String> for Cell {
    fn from(text: String) -> Self {
        // A row is one line: only the first line of a longer text is shown.
        Cell { text: text.lines().next().map(printable).unwrap_or_default(), ink: None }
    }
}

/// Treatment of a table that is wider than the terminal.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Overflow {
    Wrap,
    Cut,
    /// Lets the table exceed the width.
    Exceed,
}

impl Screen {
    /// Adds a table whose contents are never cut. A last column that does not fit is wrapped; other columns that do not
    /// fit move below their row.
    pub fn table<const N: usize, C: Into<Cell>>(
        &mut self,
        header: [&str; N],
        rows: impl IntoIterator<Item = [C; N]>,
    ) {
        let rows = cells(rows);
        if self.has_room(&header, &rows) {
            for line in self.layout(&header, rows, Overflow::Wrap) {
                self.line(line);
            }
        } else {
            self.folded(&header, rows);
        }
    }

    /// Adds a table with one line per row; a last column that does not fit is cut.
    pub fn list<const N: usize, C: Into<Cell>>(
        &mut self,
        header: [&str; N],
        rows: impl IntoIterator<Item = [C; N]>,
    ) {
        self.columns(&header, cells(rows));
    }

    /// Adds a table with one line per row whose columns the caller chooses; each row has a cell for each name.
    pub fn columns(&mut self, header: &[&str], rows: Vec<Vec<Cell>>) {
        for line in self.layout(header, rows, Overflow::Cut) {
            self.line(line);
        }
    }

    /// Adds a table with one line per row, and groups of details below each row. Each group begins on a new line and has as
    /// many details on each line as fit.
    pub fn list_with_details<const N: usize>(
        &mut self,
        header: [&str; N],
        rows: Vec<([Cell; N], Vec<Vec<String>>)>,
    ) {
        let (rows, details): (Vec<_>, Vec<_>) = rows.into_iter().unzip();
        let lines = self.layout(&header, cells(rows), Overflow::Cut);
        self.detailed(lines, details);
    }

    fn detailed(&mut self, lines: Vec<String>, details: Vec<Vec<Vec<String>>>) {
        let mut lines = lines.into_iter();
        if let Some(header) = lines.next() {
            self.line(header);
        }
        for (line, details) in lines.zip(details) {
            self.line(line);
            for group in details {
                self.flow("  ", &group);
            }
        }
    }

    /// Adds a table with as many columns as fit. The other columns follow below each row with their names, as in `until:
    /// 14:02:07  by: alice`. The last column, usually a text, begins on a line of its own.
    fn folded(&mut self, header: &[&str], mut rows: Vec<Vec<Cell>>) {
        let widths = widths(header, &rows.iter().map(Vec::as_slice));
        let mut taken = 0;
        let fits = |width: &&usize| {
            taken += **width + usize::from(GAP);
            taken <= self.width + usize::from(GAP)
        };
        let count = widths[..widths.len().saturating_sub(1)].iter().take_while(fits).count().max(1);
        let named = |(name, cell): (&&str, Cell)| {
            let label = if name.is_empty() { String::new() } else { format!("{}: ", name.to_lowercase()) };
            (!cell.is_absent()).then(|| format!("{label}{}", cell.text))
        };
        let below = |row: &mut Vec<Cell>| {
            let mut rest = header[count..].iter().zip(row.split_off(count)).map(named).collect::<Vec<_>>();
            let last = rest.pop();
            let last: Vec<String> = last.into_iter().flatten().collect();
            vec![rest.into_iter().flatten().collect(), last]
        };
        let details = rows.iter_mut().map(below).collect();
        let lines = self.layout(&header[..count], rows, Overflow::Exceed);
        self.detailed(lines, details);
    }

    /// Returns true if every column is readable at the width of the terminal.
    fn has_room(&self, header: &[&str], rows: &[Vec<Cell>]) -> bool {
        let gaps = usize::from(GAP) * header.len().saturating_sub(1);
        least(header, rows, self.width).iter().sum::<usize>() + gaps <= self.width
    }

    /// Returns true if a table of these cells fits the width of the terminal without any change.
    pub fn fits<const N: usize>(&self, header: &[&str; N], rows: &[[Cell; N]]) -> bool {
        let gaps = usize::from(GAP) * N.saturating_sub(1);
        widths(header, &rows.iter().map(<[Cell; N]>::as_slice)).iter().sum::<usize>() + gaps <= self.width
    }

    fn layout(&self, header: &[&str], mut rows: Vec<Vec<Cell>>, overflow: Overflow) -> Vec<String> {
        let natural = widths(header, &rows.iter().map(Vec::as_slice));
        let widths = match overflow {
            Overflow::Wrap => shrunk(natural, &least(header, &rows, self.width), self.width),
            Overflow::Cut => {
                let mut least = vec![SHORT; header.len().saturating_sub(1)];
                least.push(last_of(self.width));
                shrunk(natural, &least, self.width)
            }
            Overflow::Exceed => natural,
        };
        if overflow == Overflow::Cut {
            for row in &mut rows {
                for (cell, width) in row.iter_mut().zip(&widths) {
                    cell.text = cut(&cell.text, *width);
                }
            }
        }
        let mut table = Table::new();
        table.load_style(presets::NOTHING);
        table.set_content_arrangement(ContentArrangement::Dynamic);
        // The widths are computed above, so the library must not arrange the columns again.
        table.set_width(u16::MAX);
        if self.colour {
            table.enforce_styling().style_text_only();
        } else {
            table.force_no_tty();
        }
        table.set_header(header.iter().map(|name| Cell::inked(Ink::Bold, *name).styled()));
        table.add_rows(rows.into_iter().map(|row| row.into_iter().map(Cell::styled).collect::<Vec<_>>()));
        for (i, column) in table.column_iter_mut().enumerate() {
            let gap = if i + 1 == header.len() { 0 } else { GAP };
            column.set_padding((0, gap));
            column.set_cell_alignment(CellAlignment::Left);
            let width = u16::try_from(widths[i]).unwrap_or(u16::MAX).saturating_add(gap);
            column.set_constraint(ColumnConstraint::Absolute(Width::Fixed(width)));
        }
        table.lines().map(|line| line.trim_end().to_owned()).collect()
    }
}

fn cells<const N: usize, C: Into<Cell>>(rows: impl IntoIterator<Item = [C; N]>) -> Vec<Vec<Cell>> {
    rows.into_iter().map(|row| row.into_iter().map(Into::into).collect()).collect()
}

fn widths<'a>(header: &[&str], rows: &(impl Iterator<Item = &'a [Cell]> + Clone)) -> Vec<usize> {
    let column = |(at, name): (usize, &&str)| {
        rows.clone().map(|row| row[at].width()).chain([name.width(), 1]).max().unwrap_or(1)
    };
    header.iter().enumerate().map(column).collect()
}

/// Returns the least width at which a text in the last column is readable.
const fn last_of(terminal: usize) -> usize {
    if terminal / 3 > LAST { terminal / 3 } else { LAST }
}

/// Returns the least width of each column at which its contents are readable.
fn least(header: &[&str], rows: &[Vec<Cell>], terminal: usize) -> Vec<usize> {
    let column = |(at, name): (usize, &&str)| {
        let readable = if at + 1 == header.len() { last_of(terminal) } else { READABLE };
        rows.iter().map(|row| row[at].least(readable)).chain([name.width(), 1]).max().unwrap_or(1)
    };
    header.iter().enumerate().map(column).collect()
}

/// Reduces widths to fit a terminal, down to `least`: first the last column, then the widest of the others.
fn shrunk(mut widths: Vec<usize>, least: &[usize], terminal: usize) -> Vec<usize> {
    let Some((tail, others)) = widths.split_last_mut() else { return widths };
    let gaps = usize::from(GAP) * others.len();
    let reserved = least.last().map_or(*tail, |least| (*tail).min(*least));
    while others.iter().sum::<usize>() + gaps + reserved > terminal {
        let spare = others.iter_mut().zip(least).filter(|(width, least)| **width > **least);
        match spare.max_by_key(|(width, _)| **width) {
            Some((widest, _)) => *widest -= 1,
            None => break,
        }
    }
    let available = terminal.saturating_sub(others.iter().sum::<usize>() + gaps);
    *tail = (*tail).min(available.max(LAST));
    widths
}

#[cfg(test)]
mod tests {
    use super::*;

    const TITLE: &str = "日本語のタイトル and 🚀 more of it";

    fn shown(width: usize, draw: impl FnOnce(&mut Screen)) -> String {
        let mut screen = Screen::plain(width);
        draw(&mut screen);
        screen.into_text()
    }

    #[test]
    fn a_list_keeps_to_one_line_a_row_and_to_the_width() {
        let text =
            shown(30, |screen| screen.list(["ID", "TITLE"], [["t_0123abcd".to_owned(), TITLE.to_owned()]]));
        insta::assert_snapshot!(text, @r"
        ID          TITLE
        t_0123abcd  日本語のタイトル …
        ");
        assert!(text.lines().all(|line| line.width() <= 30), "{text}");
    }

    #[test]
    fn a_table_wraps_its_last_column_and_keeps_ids_whole() {
        let text =
            shown(30, |screen| screen.table(["ID", "TITLE"], [["t_0123abcd".to_owned(), TITLE.to_owned()]]));
        insta::assert_snapshot!(text, @r"
        ID          TITLE
        t_0123abcd  日本語のタイトル
                    and 🚀 more of it
        ");
    }

    #[test]
    fn a_wide_column_in_front_gives_way_to_the_last_one() {
        let row = ["t_0123abcd", "a long text in the middle of the table", "and another one that is last"];
        let text = shown(60, |screen| screen.table(["ID", "MIDDLE", "LAST"], [row.map(str::to_owned)]));
        insta::assert_snapshot!(text, @r"
        ID          MIDDLE                      LAST
        t_0123abcd  a long text in the middle   and another one that
                    of the table                is last
        ");
        assert!(text.lines().all(|line| line.width() <= 60), "{text}");
    }

    #[test]
    fn columns_for_which_there_is_no_room_stand_below_their_row_and_nothing_is_cut() {
        const TIME: &str = "2026-11-24 01:39:29 +00:00";
        let row =
            ["3f9a01c2", "alice", "acme", TIME, TIME, "it ends as soon as nobody has used it for a day"];
        let none = ["b2104d77", "bob", "-", TIME, "-", "-"];
        let header = ["SESSION", "PERSON", "TENANT", "BEGAN", "USED", "WHY"];
        let text = shown(80, |screen| screen.table(header, [row, none].map(|row| row.map(str::to_owned))));
        insta::assert_snapshot!(text, @r"
        SESSION   PERSON  TENANT  BEGAN                       USED
        3f9a01c2  alice   acme    2026-11-24 01:39:29 +00:00  2026-11-24 01:39:29 +00:00
          why: it ends as soon as nobody has used it for a day
        b2104d77  bob     -       2026-11-24 01:39:29 +00:00  -
        ");
        let text = shown(60, |screen| screen.table(header, [row, none].map(|row| row.map(str::to_owned))));
        insta::assert_snapshot!(text, @r"
        SESSION   PERSON  TENANT  BEGAN
        3f9a01c2  alice   acme    2026-11-24 01:39:29 +00:00
          used: 2026-11-24 01:39:29 +00:00
          why: it ends as soon as nobody has used it for a day
        b2104d77  bob     -       2026-11-24 01:39:29 +00:00
        ");
        assert!(text.lines().all(|line| line.width() <= 60), "{text}");
        let path = "/a/path/that/is/longer/than/any/terminal/is/wide".to_owned();
        let text = shown(40, |screen| screen.table(["FILE", "SIZE"], [[path.clone(), "1 B".to_owned()]]));
        assert_eq!(text, format!("FILE\n{path}\n  size: 1 B\n"));
    }

    #[test]
    fn colour_does_not_change_the_layout() {
        let row = || {
            [[
                Cell::from("t_0123abcd".to_owned()),
                Cell::inked(Ink::Green, "done"),
                Cell::from(TITLE.to_owned()),
            ]]
        };
        let plain = shown(40, |screen| screen.list(["ID", "STATUS", "TITLE"], row()));
        let mut screen = Screen { colour: true, ..Screen::plain(40) };
        screen.list(["ID", "STATUS", "TITLE"], row());
        let coloured = screen.into_text();
        assert!(coloured.contains("\x1b["), "{coloured:?}");
        assert_eq!(crate::terminal::without_styles(&coloured), plain);
    }
}
