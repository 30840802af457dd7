//! Finds the profiles that a comment mentions as `@name`, outside of quotations and code.

use crate::model::id::Profile;

/// Largest number of profiles that a comment mentions.
pub(crate) const MENTIONS: usize = 8;

/// Largest number of further profiles that are named as not asked.
const PASSED: usize = 24;

/// Returns the names after `@` in a text for which `known` is true: each once, in their order, at most `MENTIONS`.
///
/// Names do not count in lines that begin with `>`, in fenced or indented code blocks, in code spans, in e-mail addresses
/// and in paths. The running time is linear in the length of the text.
pub fn mentioned(text: &str, known: impl Fn(&Profile) -> bool) -> Vec<Profile> {
    first(text, MENTIONS, known)
}

/// Returns the same profiles, and up to `PASSED` further profiles, which get no task.
pub(crate) fn mentioned_and_passed(
    text: &str,
    known: impl Fn(&Profile) -> bool,
) -> (Vec<Profile>, Vec<Profile>) {
    let mut mentioned = first(text, MENTIONS + PASSED, known);
    let passed = mentioned.split_off(mentioned.len().min(MENTIONS));
    (mentioned, passed)
}

fn first(text: &str, most: usize, known: impl Fn(&Profile) -> bool) -> Vec<Profile> {
    let mut profiles = Vec::new();
    for paragraph in unquoted_paragraphs(text) {
        for name in names(&without_spans(&paragraph)) {
            if profiles.len() == most {
                return profiles;
            }
            if let Ok(profile) = name.parse::<Profile>()
                && !profiles.contains(&profile)
                && known(&profile)
            {
                profiles.push(profile);
            }
        }
    }
    profiles
}

/// Returns the paragraphs of a text without quotations and code blocks.
fn unquoted_paragraphs(text: &str) -> Vec<String> {
    let mut paragraphs = vec![String::new()];
    let mut fence: Option<(char, usize)> = None;
    let mut is_apart = true;
    for line in text.lines() {
        let indent = line.len() - line.trim_start_matches(' ').len();
        let start = line.trim_start();
        let run = |c: char| start.chars().take_while(|other| *other == c).count();
        if let Some((mark, length)) = fence {
            if run(mark) >= length && start.trim_end().chars().all(|c| c == mark) {
                fence = None;
                is_apart = true;
            }
            continue;
        }
        let opened = ['`', '~'].into_iter().map(|mark| (mark, run(mark))).find(|(_, length)| *length >= 3);
        // A line with backticks after the fence is a code span.
        let opened = opened.filter(|(mark, length)| *mark == '~' || !start[*length..].contains('`'));
        let is_code = is_apart && (indent >= 4 || line.starts_with('\t'));
        let is_break = start.is_empty() || opened.is_some() || is_code || start.starts_with('>');
        fence = opened;
        if is_break {
            paragraphs.push(String::new());
            // After an empty line or more code, an indented line is code.
            is_apart = start.is_empty() || is_code;
        } else if let Some(paragraph) = paragraphs.last_mut() {
            paragraph.push_str(line);
            paragraph.push('\n');
            is_apart = false;
        }
    }
    paragraphs.retain(|paragraph| !paragraph.is_empty());
    paragraphs
}

/// Replaces the code spans of a paragraph by spaces. A run of backticks without a closing run of the same length is text.
fn without_spans(paragraph: &str) -> String {
    let pieces: Vec<&str> = split_runs(paragraph);
    // The next run of each length is found from the end on, so that no run is searched for twice.
    let mut next: Vec<Option<usize>> = vec![None; pieces.len()];
    let mut last = std::collections::HashMap::new();
    for (at, piece) in pieces.iter().enumerate().rev().filter(|(_, piece)| piece.starts_with('`')) {
        next[at] = last.insert(piece.len(), at);
    }
    let mut out = String::with_capacity(paragraph.len());
    let mut at = 0;
    while let Some(piece) = pieces.get(at) {
        match next[at] {
            Some(end) => {
                out.push(' ');
                at = end;
            }
            None => out.push_str(piece),
        }
        at += 1;
    }
    out
}

/// Splits a text into runs of backticks and the texts between them.
fn split_runs(text: &str) -> Vec<&str> {
    let mut pieces = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        let is_run = rest.starts_with('`');
        let end = rest.find(|c| (c == '`') != is_run).unwrap_or(rest.len());
        let (piece, further) = rest.split_at(end);
        pieces.push(piece);
        rest = further;
    }
    pieces
}

/// Returns the words after an `@` that are not part of a longer word.
fn names(text: &str) -> impl Iterator<Item = &str> {
    let is_part = |c: char| c.is_ascii_alphanumeric() || ['.', '_', '-'].contains(&c);
    text.match_indices('@').filter_map(move |(at, _)| {
        let before = text[..at].chars().next_back();
        // An address, a path, or an escaped `@`.
        if before.is_some_and(|c| c.is_alphanumeric() || "._-+/\\@:=".contains(c)) {
            return None;
        }
        let rest = &text[at + 1..];
        let end = rest.find(|c| !is_part(c)).unwrap_or(rest.len());
        let after = rest[end..].chars().next();
        if after.is_some_and(|c| c.is_alphanumeric() || "@/\\".contains(c)) {
            return None;
        }
        let name = rest[..end].trim_end_matches(['.', '-', '_']);
        (!name.is_empty()).then_some(name)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names_in(text: &str) -> Vec<String> {
        let known = |profile: &Profile| ["bob", "legal-2", "reviewer"].contains(&profile.as_str());
        mentioned(text, known).into_iter().map(String::from).collect()
    }

    #[test]
    fn names_of_known_profiles_are_found_each_once_and_in_their_order() {
        assert_eq!(names_in("@reviewer look at this, and (@bob): @reviewer."), ["reviewer", "bob"]);
        assert_eq!(names_in("first\n\n**@legal-2**, please"), ["legal-2"]);
        assert_eq!(names_in("@nobody @Bob @bobby @bo"), [""; 0]);
    }

    #[test]
    fn quotations_code_addresses_and_paths_mention_nobody() {
        for text in [
            "> @bob said so",
            "   > > @bob",
            "`@bob` and ``a ` @bob``",
            "a span `over\n@bob two` lines",
            "```\n@bob\n```",
            "~~~ sh\n@bob\n```\n@bob\n~~~",
            "````\n```\n@bob\n````",
            "```\nnever closed @bob",
            "text\n\n    @bob in code\n\n\t@bob too",
            "```\ncode\n```\n    @bob in more code",
            "mail ann@bob or a.@bob",
            "https://example.org/@bob and git@bob:x and npm/@bob/x @bob/x",
            "\\@bob",
            "@bob@example.org",
            "@bobé",
        ] {
            assert_eq!(names_in(text), [""; 0], "{text:?}");
        }
    }

    #[test]
    fn what_stands_beside_code_and_quotations_is_found() {
        for text in [
            "> quoted\n@bob yes",
            "```\ncode\n```\n@bob",
            "`code` @bob `more`",
            "an odd ` backtick @bob",
            "a list:\n  - @bob",
            "text\n    @bob goes on with it",
            "```@bob``` is a span, @bob is not",
        ] {
            assert_eq!(names_in(text), ["bob"], "{text:?}");
        }
    }

    #[test]
    fn a_comment_of_a_thousand_names_mentions_a_few() {
        let text: String = (0..1000).map(|at| format!("@p{at}")).collect::<Vec<_>>().join(" ");
        assert_eq!(mentioned(&text, |_| true).len(), MENTIONS);
        let (asked, passed) = mentioned_and_passed(&text, |_| true);
        assert_eq!((asked.len(), passed.len(), passed[0].as_str()), (MENTIONS, PASSED, "p8"));
        assert_eq!(mentioned_and_passed("@bob", |_| true).1, []);
        let ticks: String = (1..500).map(|length| "`".repeat(length) + " @bob ").collect();
        assert_eq!(names_in(&ticks), ["bob"]);
    }
}
