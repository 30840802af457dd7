//! Draws a model on a screen of any size, into a buffer.

mod list;
mod panels;
mod piece;
mod text;

use ratatui::buffer::Buffer;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::text::Line;
use ratatui::widgets::Widget as _;

pub(super) use self::piece::ColourUse;
use self::piece::{Pieces, shown};
use super::model::{InputLine, Purpose, ScreenMode, ScreenNotice, TopModel};
use super::picture::{Picture, Section, Total};
use base::terminal::{Ink, cut, wrap};

/// Width from which on the selected task is described beside the list.
const WIDE: u16 = 150;
/// Limit on the lines of a text about the daemon.
const LINES: usize = 3;
const LOST: &str = " connection lost, trying again ";

/// Draws the whole screen.
pub(super) fn draw(model: &TopModel, look: ColourUse, area: Rect, buffer: &mut Buffer) {
    let banner = banner(model, look, usize::from(area.width));
    let rows = [
        Constraint::Length(2),
        Constraint::Length(u16::try_from(banner.len()).unwrap_or(u16::MAX)),
        Constraint::Min(0),
        Constraint::Length(1),
        Constraint::Length(1),
    ];
    let [head, trouble, body, notice, keys] = Layout::vertical(rows).areas(area);
    for (line, row) in heads(model, look).into_iter().zip(head.rows()) {
        line.render(row, buffer);
    }
    for (line, row) in banner.into_iter().zip(trouble.rows()) {
        line.render(row, buffer);
    }
    match &model.mode {
        ScreenMode::Peek(peek) => text::peek(peek, look, body, buffer),
        _ if area.width >= WIDE => {
            let halves = [Constraint::Fill(3), Constraint::Fill(2)];
            let [left, right] = Layout::horizontal(halves).areas(body);
            list::draw(model, look, left, buffer);
            text::details(model.row(), look, right, buffer);
        }
        _ => list::draw(model, look, body, buffer),
    }
    notice_line(model, look).render(notice, buffer);
    offered(model, look).render(keys, buffer);
    match &model.mode {
        ScreenMode::Browse | ScreenMode::Peek(_) => {}
        ScreenMode::Prompt(prompt) => panels::prompt(prompt, look, body, buffer),
        ScreenMode::Help => panels::help(look, body, buffer),
        ScreenMode::Answer(answering) => panels::answer(answering, look, body, buffer),
        ScreenMode::Approve(approving) => panels::approve(approving, look, body, buffer),
        ScreenMode::Cancel(target) => panels::cancel(target, look, body, buffer),
    }
}

/// Returns the two top lines: the daemon and the board, and the numbers of tasks.
fn heads(model: &TopModel, look: ColourUse) -> [Line<'static>; 2] {
    let Some(picture) = &model.picture else { return [Line::default(), Line::default()] };
    let mut head = Pieces::with_colours(look);
    if let Some(daemon) = &picture.daemon {
        let is_well = picture.troubles.is_empty() && model.lost.is_none();
        head.ink(if is_well { Ink::Green } else { Ink::Yellow }, "● ");
        head.ink(Ink::Bold, &format!("supervisor {}", daemon.version));
        let (taken, slots) = (daemon.taken, daemon.slots);
        head.plain(&format!("  up {}  {taken} of {slots} slots taken", kernel::brief(daemon.uptime)));
    } else {
        head.ink(Ink::Red, "○ ");
        head.ink(Ink::Bold, "supervisor");
        head.plain("  no daemon is running");
    }
    head.plain(&format!("  board {}", picture.board));
    if let Some(tenant) = &model.query.tenant {
        head.ink(Ink::Cyan, &format!("  tenant {tenant}"));
    }
    if let Some(search) = &model.query.search {
        head.ink(Ink::Cyan, &format!("  search “{search}”"));
    }
    [head.line(), counts(picture, look)]
}

fn counts(picture: &Picture, look: ColourUse) -> Line<'static> {
    let mut line = Pieces::with_colours(look);
    line.plain("  ");
    for (index, group) in picture.groups.iter().enumerate() {
        if index > 0 {
            line.ink(Ink::Dim, " · ");
        }
        let name = match group.section {
            Section::Person if group.total != Total::Exactly(1) => "need a person".to_owned(),
            section => section.heading().to_lowercase(),
        };
        let text = format!("{} {name}", number(group.total));
        match group.section {
            Section::Person => line.ink(Ink::Red, &text),
            Section::Running | Section::Review => line.ink(Ink::Cyan, &text),
            _ => line.plain(&text),
        }
    }
    if picture.groups.is_empty() {
        line.plain("no tasks");
    }
    line.line()
}

fn number(total: Total) -> String {
    match total {
        Total::Exactly(count) => count.to_string(),
        Total::MoreThan(count) => format!("{count}+"),
    }
}

/// Returns the lines about problems and about a pause, if any. Each text may continue on further lines, at most
/// `LINES`.
fn banner(model: &TopModel, look: ColourUse, width: usize) -> Vec<Line<'static>> {
    let mut line = Pieces::with_colours(look);
    if let Some(why) = &model.lost {
        line.alarm(LOST);
        return below(line, LOST.len(), &format!(" {why}"), look, width);
    }
    let Some(picture) = &model.picture else { return Vec::new() };
    let Some(daemon) = &picture.daemon else {
        line.plain("  ");
        line.ink(Ink::Yellow, "nothing is started: supervisor daemon");
        return vec![line.line()];
    };
    let troubles = (!picture.troubles.is_empty()).then(|| ("degraded", picture.troubles.join("; ")));
    let paused = daemon.paused.clone().map(|why| ("paused", why));
    let labelled = |(label, text): (&str, String)| {
        let mut line = Pieces::with_colours(look);
        line.plain("  ");
        line.ink(Ink::Red, label);
        line.plain(": ");
        below(line, label.len() + 4, &text, look, width)
    };
    troubles.into_iter().chain(paused).flat_map(labelled).collect()
}

/// Appends a text to a line of `taken` characters; further lines are indented below it.
fn below(mut first: Pieces, taken: usize, text: &str, look: ColourUse, width: usize) -> Vec<Line<'static>> {
    let room = width.saturating_sub(taken).max(20);
    let mut parts = wrap(&shown(text), room);
    if parts.len() > LINES {
        let rest = parts.split_off(LINES - 1).join(" ");
        parts.push(cut(&rest, room));
    }
    let mut parts = parts.into_iter();
    first.plain(&parts.next().unwrap_or_default());
    let rest = parts.map(|part| {
        let mut line = Pieces::with_colours(look);
        line.plain(&format!("{:taken$}{part}", ""));
        line.line()
    });
    [first.line()].into_iter().chain(rest).collect()
}

/// Returns the line of the last notice.
fn notice_line(model: &TopModel, look: ColourUse) -> Line<'static> {
    let mut line = Pieces::with_colours(look);
    match model.notice() {
        Some(ScreenNotice::Done(text)) => line.ink(Ink::Green, &format!(" {text}")),
        Some(ScreenNotice::Refused(text)) => {
            line.ink(Ink::Red, " refused:");
            line.plain(&format!(" {text}"));
        }
        None => {}
    }
    line.line()
}

/// Returns the line of the keys that apply now.
fn offered(model: &TopModel, look: ColourUse) -> Line<'static> {
    let offers = match &model.mode {
        ScreenMode::Browse => model.offers(),
        ScreenMode::Help => vec![("any key", "back")],
        ScreenMode::Peek(_) => {
            vec![("j k", "line"), ("PgUp PgDn", "page"), ("g", "start"), ("G", "follow"), ("q", "back")]
        }
        ScreenMode::Answer(_) => vec![("1-9 Enter", "choose"), ("j k", "move"), ("Esc", "leave")],
        ScreenMode::Approve(_) => vec![("Esc", "leave")],
        ScreenMode::Cancel(_) => vec![("y", "cancel it"), ("n", "leave it")],
        ScreenMode::Prompt(InputLine { purpose: Purpose::Search | Purpose::Tenant, .. }) => {
            vec![("Enter", "show"), ("Ctrl-U", "clear"), ("Esc", "leave")]
        }
        ScreenMode::Prompt(_) => vec![("Enter", "send"), ("Ctrl-U", "clear"), ("Esc", "leave")],
    };
    let mut line = Pieces::with_colours(look);
    for (key, meaning) in offers {
        line.plain(" ");
        line.ink(Ink::Bold, key);
        line.ink(Ink::Dim, &format!(" {meaning} "));
    }
    line.line()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::top::message::TopMessage;
    use crate::top::picture::DaemonFacts;

    fn banner_of(troubles: &[&str], paused: Option<&str>) -> Vec<String> {
        let picture = Picture {
            board: "default".to_owned(),
            daemon: Some(DaemonFacts {
                version: "1.2.3".to_owned(),
                uptime: Duration::from_mins(125),
                taken: 2,
                slots: 2,
                paused: paused.map(str::to_owned),
            }),
            troubles: troubles.iter().map(|text| (*text).to_owned()).collect(),
            groups: Vec::new(),
        };
        let mut model = TopModel::default();
        model.update(TopMessage::Picture(Box::new(picture)));
        banner(&model, ColourUse::Plain, 46).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn what_is_wrong_and_why_nothing_is_started_have_a_line_each() {
        assert_eq!(banner_of(&[], None), [""; 0]);
        assert_eq!(banner_of(&["1 file cannot be used"], None), ["  degraded: 1 file cannot be used"]);
        assert_eq!(
            banner_of(&["nothing is started", "it is stopping"], Some("the disk is full: a; b")),
            ["  degraded: nothing is started; it is stopping", "  paused: the disk is full: a; b"]
        );
        assert_eq!(banner_of(&[], Some("\u{1b}[31m\n")), ["  paused: \\u{1b}[31m "]);
    }

    #[test]
    fn a_long_text_about_the_daemon_goes_on_below_itself() {
        let why =
            "the file system of the root has less room than dispatch.min_free_disk asks for; ".repeat(3);
        assert_eq!(
            banner_of(&[], Some(&why)),
            [
                "  paused: the file system of the root has less",
                "          room than dispatch.min_free_disk",
                "          asks for; the file system of the ro…",
            ]
        );
    }
}
