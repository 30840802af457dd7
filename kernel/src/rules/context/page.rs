//! Page builder: a text of sections within a size limit. The most important parts get space first, and omitted parts are
//! listed.

use std::collections::BTreeSet;

use super::Context;
use crate::model::counted::Counted;

/// Space that is reserved for the list of omitted parts, in bytes.
const NOTICE: usize = 1024;

/// Importance of a part, the most important first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Rank {
    Task,
    /// The latest words of people and other workers, and the end of the last attempt.
    Latest,
    Parents,
    Files,
    Comments,
    /// The attempts before the last.
    Attempts,
}

impl Rank {
    /// Returns true if the parts of this rank form a series in time.
    fn is_of_series(self) -> bool {
        match self {
            Rank::Latest | Rank::Comments | Rank::Attempts => true,
            Rank::Task | Rank::Parents | Rank::Files => false,
        }
    }
}

/// Part of the page, which is on it whole or not at all.
#[derive(Debug)]
struct Passage {
    section: usize,
    rank: Rank,
    /// Name of the part in the list of omitted parts.
    name: String,
    text: String,
}

/// Sections in reading order, each with its parts.
#[derive(Debug, Default)]
pub(super) struct Page {
    heads: Vec<String>,
    parts: Vec<Passage>,
    /// List of omitted parts so far.
    omitted: Vec<String>,
}

impl Page {
    /// Begins a section. Its head is written with its first part.
    pub(super) fn section(&mut self, head: impl Into<String>) {
        self.heads.push(head.into());
    }

    /// Adds a part to the latest section.
    pub(super) fn part(&mut self, rank: Rank, name: impl Into<String>, text: String) {
        let section = self.heads.len().saturating_sub(1);
        self.parts.push(Passage { section, rank, name: name.into(), text });
    }

    /// Adds an entry to the list of omitted parts.
    pub(super) fn leave_out(&mut self, what: String) {
        self.omitted.push(what);
    }

    /// Cuts a text to `limit` bytes at a character boundary, with a note about the cut.
    pub(super) fn cut(&mut self, text: &str, limit: usize, what: &str) -> String {
        if text.len() <= limit {
            return text.to_owned();
        }
        let end = text.floor_char_boundary(limit);
        let left_out = text.len() - end;
        self.leave_out(format!("the last {} of {what}", Counted(left_out, "byte")));
        format!("{}\n[{} left out]", &text[..end], Counted(left_out, "byte"))
    }

    /// Writes the parts that fit into `total` bytes. Within a rank, later parts go first. In a series, a part that does
    /// not fit excludes all parts before it, so that no series has a gap.
    pub(super) fn finish(mut self, total: usize) -> Context {
        let mut capacity = total.saturating_sub(NOTICE);
        let mut told = BTreeSet::new();
        let mut heads = BTreeSet::new();
        let mut full = BTreeSet::new();
        let mut order: Vec<usize> = (0..self.parts.len()).collect();
        order.sort_by_key(|at| (self.parts[*at].rank, std::cmp::Reverse(*at)));
        // First pass, by rank: choose the parts that fit.
        for at in order {
            let part = &self.parts[at];
            let head = if heads.contains(&part.section) { 0 } else { self.heads[part.section].len() };
            if head + part.text.len() > capacity || (part.rank.is_of_series() && full.contains(&part.section))
            {
                full.insert(part.section);
                continue;
            }
            capacity -= head + part.text.len();
            heads.insert(part.section);
            told.insert(at);
        }
        // Second pass, in reading order: write the chosen parts, and join neighbouring omitted parts into one entry.
        let mut text = String::new();
        let mut section = None;
        let mut gap: Vec<&Passage> = Vec::new();
        for (at, part) in self.parts.iter().enumerate() {
            let goes_on =
                gap.last().is_some_and(|last| part.rank.is_of_series() && last.section == part.section);
            if !gap.is_empty() && (told.contains(&at) || !goes_on) {
                self.omitted.push(group_name(&gap));
                gap.clear();
            }
            if !told.contains(&at) {
                gap.push(part);
                continue;
            }
            if section != Some(part.section) {
                section = Some(part.section);
                text.push_str(&self.heads[part.section]);
            }
            text.push_str(&part.text);
        }
        if !gap.is_empty() {
            self.omitted.push(group_name(&gap));
        }
        text.push_str(&notice(&self.omitted, total.saturating_sub(text.len())));
        Context { text, omitted: self.omitted }
    }
}

/// Returns the name of a group of neighbouring omitted parts.
fn group_name(gap: &[&Passage]) -> String {
    let bytes: usize = gap.iter().map(|part| part.text.len()).sum();
    match gap {
        [first, .., last] => format!("{} to {} ({})", first.name, last.name, Counted(bytes, "byte")),
        [only] => format!("{} ({})", only.name, Counted(bytes, "byte")),
        [] => String::new(),
    }
}

/// Returns the list of omitted parts, in at most `capacity` bytes.
fn notice(omitted: &[String], capacity: usize) -> String {
    if omitted.is_empty() {
        return String::new();
    }
    let mut text = "\n## Left out\n\n".to_owned();
    for (at, line) in omitted.iter().enumerate() {
        let more = format!("- and {} more\n", omitted.len() - at);
        let line = format!("- {line}\n");
        let is_last = at + 1 == omitted.len();
        if text.len() + line.len() + if is_last { 0 } else { more.len() } > capacity {
            text.push_str(&more);
            break;
        }
        text.push_str(&line);
    }
    let end = text.floor_char_boundary(capacity);
    text.truncate(end);
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn series(page: &mut Page, head: &str, rank: Rank, count: usize) {
        page.section(head);
        for number in 0..count {
            page.part(rank, format!("{head} {number}"), format!("{head}-{number} {}\n", "x".repeat(100)));
        }
    }

    #[test]
    fn what_matters_most_gets_its_room_first_and_stands_in_its_place() {
        let mut page = Page::default();
        series(&mut page, "talk", Rank::Comments, 9);
        series(&mut page, "parent", Rank::Parents, 2);
        let context = page.finish(NOTICE + 600);
        let at = |what: &str| context.text.find(what);
        assert!(at("talk-8") < at("parent-0") && at("parent-0") < at("parent-1"), "{}", context.text);
        assert!(at("talk-7").is_some() && at("talk-5").is_none() && at("parent-0").is_some());
        assert!(context.omitted[0].starts_with("talk 0 to talk "), "{:?}", context.omitted);
    }

    #[test]
    fn a_series_has_no_hole() {
        let mut page = Page::default();
        page.section("talk");
        for (name, length) in [("small", 10), ("huge", 5000), ("last", 10)] {
            page.part(Rank::Comments, name, format!("{name} {}", "x".repeat(length)));
        }
        let context = page.finish(NOTICE + 200);
        assert!(context.text.contains("last") && !context.text.contains("small xx"), "{}", context.text);
    }

    #[test]
    fn a_file_that_has_no_room_keeps_none_of_the_others_out() {
        let mut page = Page::default();
        page.section("files");
        for (name, length) in [("small", 10), ("huge", 5000), ("last", 10)] {
            page.part(Rank::Files, name, format!("{name} {}\n", "x".repeat(length)));
        }
        let context = page.finish(NOTICE + 200);
        assert!(context.text.contains("last xx") && context.text.contains("small xx"), "{}", context.text);
        assert_eq!(context.omitted, ["huge (5006 bytes)"]);
    }

    #[test]
    fn what_fits_exactly_is_told() {
        for (total, told) in [(NOTICE + 30, true), (NOTICE + 29, false)] {
            let mut page = Page::default();
            page.section("0123456789");
            page.part(Rank::Task, "the body", "x".repeat(20));
            assert_eq!(page.finish(total).text.contains("xxx"), told, "{total}");
        }
    }

    #[test]
    fn what_is_left_out_is_named_part_by_part_and_a_series_of_a_section_at_once() {
        let mut page = Page::default();
        series(&mut page, "talk", Rank::Comments, 3);
        series(&mut page, "try", Rank::Attempts, 2);
        series(&mut page, "file", Rank::Files, 2);
        page.section("body");
        page.part(Rank::Task, "the body", "y".to_owned());
        let context = page.finish(NOTICE + 20);
        let named = ["talk 0 to talk 2 (324 bytes)", "try 0 to try 1 (214 bytes)"];
        let files = ["file 0 (108 bytes)", "file 1 (108 bytes)"];
        assert_eq!(context.omitted, [named, files].concat());
    }

    #[test]
    fn the_list_of_what_is_left_out_ends_with_how_many_it_does_not_name() {
        let lines = ["one", "two", "a longer line"].map(str::to_owned);
        let head = "\n## Left out\n\n";
        let whole = format!("{head}- one\n- two\n- a longer line\n");
        let two = format!("{head}- one\n- two\n- and 1 more\n");
        let one = format!("{head}- one\n- and 2 more\n");
        for (capacity, told) in
            [(whole.len(), &whole), (whole.len() - 1, &two), (two.len(), &two), (two.len() - 1, &one)]
        {
            assert_eq!(notice(&lines, capacity), *told, "{capacity}");
        }
        assert_eq!(notice(&[], 99), "");
    }

    #[test]
    fn nothing_is_ever_longer_than_the_budget_and_what_is_left_out_is_counted() {
        for total in (0..9000).step_by(7) {
            let mut page = Page::default();
            series(&mut page, "ä", Rank::Task, 3);
            series(&mut page, "talk", Rank::Comments, 60);
            let context = page.finish(total);
            assert!(context.text.len() <= total, "{} of {total}", context.text.len());
            let told = context.text.matches(" xxx").count();
            assert_eq!(told == 63, context.omitted.is_empty());
        }
    }
}
