//! Plain comments: a doc comment begins with the noun or the verb that its reader looks for, and parameters have names.
//!
//! The test counts, because a few exceptions are right: help texts are written for the people who read them.

use super::house::{is_of_tests, production, without_tests};

/// First words that tell a reader nothing about the item below.
const EMPTY: [&str; 14] = [
    "What",
    "Who",
    "Whose",
    "How",
    "Where",
    "When",
    "Whether",
    "Which",
    "Why",
    "One",
    "That",
    "Those",
    "It",
    "Something",
];
/// Words that stand in the place of a noun.
const VAGUE: [&str; 9] = [
    "the one that",
    "one that",
    "that of",
    "those of",
    "those that",
    "what is",
    "what was",
    "somebody",
    "nobody",
];
/// Largest share of doc comments that begin with an empty word, in thousandths.
const BEGINNINGS: usize = 40;
/// Largest share of doc lines that have a vague word, in thousandths.
const RELATIVES: usize = 5;
/// Largest number of parameters of functions that are tuples.
const TUPLES: usize = 5;

/// A count, with the places of what was counted.
#[derive(Default)]
struct Count {
    all: usize,
    found: Vec<String>,
}

impl Count {
    fn add(&mut self, is_fault: bool, place: impl FnOnce() -> String) {
        self.all += 1;
        if is_fault {
            self.found.push(place());
        }
    }

    /// Fails if more than a share of what was counted is at fault.
    fn require(&self, thousandths: usize, fault: &str) {
        assert!(self.all > 5_000, "only {} were counted", self.all);
        let share = 1_000 * self.found.len() / self.all;
        assert!(
            share <= thousandths,
            "{} of {} {fault}, at most {thousandths} of 1,000 may:\n{}",
            self.found.len(),
            self.all,
            self.found.join("\n")
        );
    }
}

/// Returns the text of a line of a doc comment.
fn doc(line: &str) -> Option<&str> {
    let line = line.trim_start();
    line.strip_prefix("///").or_else(|| line.strip_prefix("//!")).map(str::trim)
}

fn begins_empty(text: &str) -> bool {
    let first = text.split(|c: char| !c.is_alphanumeric()).next().unwrap_or_default();
    EMPTY.contains(&first)
}

fn is_vague(text: &str) -> bool {
    let text = format!(" {} ", text.to_lowercase().replace(|c: char| !c.is_alphanumeric(), " "));
    VAGUE.iter().any(|vague| text.contains(&format!(" {vague} ")))
}

/// The production text of each file, without tests.
fn texts() -> Vec<(String, String)> {
    let files = production().into_iter().filter(|(path, _)| !is_of_tests(path));
    files.map(|(path, text)| (path, without_tests(&text).to_owned())).collect()
}

#[test]
fn doc_comments_begin_with_a_noun_or_a_verb() {
    let mut count = Count::default();
    for (path, text) in texts() {
        let mut is_inside = false;
        for (at, line) in text.lines().enumerate() {
            let found = doc(line);
            if let Some(text) = found.filter(|text| !is_inside && !text.is_empty()) {
                count.add(begins_empty(text), || format!("{path}:{}: {text}", at + 1));
            }
            is_inside = found.is_some();
        }
    }
    count.require(BEGINNINGS, "begin with a word that names nothing");
}

#[test]
fn doc_comments_name_what_they_are_about() {
    let mut count = Count::default();
    for (path, text) in texts() {
        for (at, text) in text.lines().enumerate().filter_map(|(at, line)| doc(line).map(|text| (at, text))) {
            count.add(is_vague(text), || format!("{path}:{}: {text}", at + 1));
        }
    }
    count.require(RELATIVES, "have a vague word in the place of a noun");
}

/// The length of a text up to the bracket that closes its first one. `<` and `>` count as brackets; `->` does not.
fn closed(text: &str) -> usize {
    let (mut depth, mut before) = (0usize, ' ');
    for (at, c) in text.char_indices() {
        match c {
            '(' | '[' | '{' | '<' => depth += 1,
            '>' if before == '-' || before == '=' => {}
            ')' | ']' | '}' | '>' => depth = depth.saturating_sub(1),
            _ => {}
        }
        before = c;
        if depth == 0 && at > 0 {
            return at;
        }
    }
    text.len()
}

/// The parameters of a list, without their brackets.
fn parameters(list: &str) -> Vec<&str> {
    let (mut found, mut start, mut at) = (Vec::new(), 0, 0);
    while at < list.len() {
        let rest = &list[at..];
        if rest.starts_with(['(', '[', '{', '<']) {
            at += closed(rest) + 1;
        } else if rest.starts_with(',') {
            found.push(list[start..at].trim());
            at += 1;
            start = at;
        } else {
            at += rest.chars().next().map_or(1, char::len_utf8);
        }
    }
    found.push(list[start.min(list.len())..].trim());
    found
}

/// True if a parameter is a tuple, by its pattern or its type.
fn is_tuple(parameter: &str) -> bool {
    let plain = |text: &str| text.trim_start_matches(['&', ' ']).trim_start_matches("mut ").trim().to_owned();
    let kind = parameter.split_once(':').map(|(_, kind)| plain(kind)).unwrap_or_default();
    let is_bound = kind.starts_with("(dyn ") || kind.starts_with("(impl ") || kind.starts_with("()");
    plain(parameter).starts_with('(') || (kind.starts_with('(') && !is_bound)
}

/// The tuples among the parameters of the functions of a text.
fn tuples(text: &str) -> Vec<String> {
    let code: Vec<&str> = text.lines().filter(|line| !line.trim_start().starts_with("//")).collect();
    let code = code.join("\n");
    let mut found = Vec::new();
    for (at, _) in code.match_indices("fn ") {
        if code[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_') {
            continue;
        }
        let rest = &code[at + 3..];
        let name = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
        let mut list = &rest[name..];
        if list.starts_with('<') {
            list = list.get(closed(list) + 1..).unwrap_or_default();
        }
        if name > 0 && list.starts_with('(') {
            let inside = &list[1..closed(list)];
            let named = |parameter: &&str| format!("{}: {parameter}", &rest[..name]);
            found.extend(parameters(inside).iter().filter(|parameter| is_tuple(parameter)).map(named));
        }
    }
    found
}

#[test]
fn parameters_have_names() {
    let found = texts().into_iter().flat_map(|(path, text)| {
        tuples(&text).into_iter().map(move |found| format!("{path}: {found}")).collect::<Vec<_>>()
    });
    let found: Vec<String> = found.collect();
    assert!(found.len() <= TUPLES, "{} parameters are tuples:\n{}", found.len(), found.join("\n"));
}

#[test]
fn faults_of_prose_are_found() {
    assert!(begins_empty("Whose turn it is.") && begins_empty("One: two") && !begins_empty("Onerous work."));
    assert!(
        is_vague("Returns the one that starts.") && is_vague("told by nobody") && !is_vague("a busybody")
    );
    assert_eq!(doc("    /// Text."), Some("Text."));
    assert_eq!(doc("// no doc"), None);
    let text = "fn a((b, c): (u8, u8), d: &[(u8, u8)]) {}\npub fn e<F: Fn(u8) -> u8>(f: F, g: (u8, u8)) -> (u8, u8) {}\nfn h(i: (), j: &mut (dyn K + L)) {}\n// fn j((k, l): M)\nlet m: fn((u8, u8)) = n;";
    assert_eq!(tuples(text), ["a: (b, c): (u8, u8)", "e: g: (u8, u8)"]);
}
