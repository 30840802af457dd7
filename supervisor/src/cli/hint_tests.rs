//! The command line understands every command that a message of the source names.

use std::fs;
use std::path::{Path, PathBuf};

use clap::error::ErrorKind;

use super::{command, topics};

/// Substitutes for a placeholder; the first one with which a command parses is used.
const FILLERS: [&str; 8] =
    ["t_0123abcd", "name", "7", "", "list", "--board name", "docs/lanes.md", "lanes.md"];

/// Ends of a command that has no quotation marks.
const ENDS: [&str; 23] = [
    ", ",
    "; ",
    ": ",
    ". ",
    " (",
    ")",
    " | ",
    "\\n",
    "  ",
    " which ",
    " and ",
    " or ",
    " shows ",
    " says ",
    " listens ",
    " makes ",
    " takes ",
    " prints ",
    " has ",
    " lists ",
    " names ",
    " reads ",
    " serves ",
];

fn sources(dir: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

/// Returns the string literals of a source, without those of its tests and its documentation.
fn literals(text: &str) -> Vec<String> {
    let text = text.split("#[cfg(test)]\nmod tests {").next().unwrap();
    let mut found = Vec::new();
    let lines = text.lines().filter(|line| !line.trim_start().starts_with("//"));
    let mut open: Option<String> = None;
    for line in lines {
        let mut escaped = false;
        for letter in line.trim_start().chars() {
            match (&mut open, letter) {
                (Some(literal), _) if escaped => {
                    literal.push('\\');
                    literal.push(letter);
                    escaped = false;
                }
                (Some(_), '\\') => escaped = true,
                (Some(_), '"') => found.extend(open.take()),
                (Some(literal), _) => literal.push(letter),
                (None, '"') => open = Some(String::new()),
                (None, _) => {}
            }
        }
        if let Some(literal) = &mut open
            && !escaped
        {
            literal.push_str("\\n");
        }
    }
    found
}

/// Returns the commands that a literal names.
fn commands(literal: &str) -> Vec<String> {
    let mut found = Vec::new();
    for (at, _) in literal.match_indices("supervisor ") {
        let (before, rest) = (&literal[..at], &literal[at + "supervisor ".len()..]);
        let quoted = before.ends_with('`');
        let begins = quoted || before.is_empty() || before.ends_with(": ") || before.ends_with("; ");
        if !begins {
            continue;
        }
        let end = if quoted { rest.find('`') } else { ENDS.iter().filter_map(|end| rest.find(end)).min() };
        let line = rest[..end.unwrap_or(rest.len())].trim_end_matches(['.', ':', ',']);
        // What is longer than the message shows is for the reader to go on with.
        found.push(line.trim_end_matches(" …").to_owned());
    }
    found
}

/// Returns the commands that hints offer.
fn remedies(text: &str) -> Vec<String> {
    let offered = text.split("Remedy::command(").skip(1);
    offered.filter_map(|from| literals(from.split(");").next()?).into_iter().nth(1)).collect()
}

/// Replaces the placeholders of a command, and the words that a reader replaces.
fn filled(line: &str, filler: &str) -> String {
    let mut text = String::new();
    let mut inside = None;
    for letter in line.chars() {
        match (letter, inside) {
            ('{', None) => inside = Some('}'),
            ('<', None) => inside = Some('>'),
            (_, Some(end)) if letter == end => {
                text.push_str(filler);
                inside = None;
            }
            (_, Some(_)) => {}
            (_, None) => text.push(letter),
        }
    }
    text
}

/// Splits a line into words as a shell does.
fn words(line: &str) -> Vec<String> {
    let (mut words, mut word, mut quoted) = (Vec::new(), None::<String>, false);
    for letter in line.chars() {
        match letter {
            '\'' => {
                quoted = !quoted;
                word.get_or_insert_default();
            }
            ' ' if !quoted => words.extend(word.take()),
            _ => word.get_or_insert_default().push(letter),
        }
    }
    words.extend(word);
    words
}

/// Returns the reason why the command line does not understand a command with any substitute; a bare verb names the
/// verb.
fn refused(line: &str) -> Option<String> {
    let mut why = None;
    for filler in FILLERS {
        // A word behind the task, such as the text of a comment, may be left to the reader.
        let line = filled(line, filler).replace("…", "x");
        let is_name =
            |word: &String| word.len() > 1 && word.bytes().all(|letter| letter.is_ascii_uppercase());
        let word = |word: String| if is_name(&word) { filler.to_owned() } else { word };
        let words = [vec!["supervisor".to_owned()], words(&line).into_iter().map(word).collect()].concat();
        if topics::asked(&words.iter().map(Into::into).collect::<Vec<_>>()).is_some() {
            return None;
        }
        match command().try_get_matches_from(words) {
            Ok(_) => return None,
            // A flag whose value is the reader's.
            Err(error) if error.to_string().contains("none was supplied") => return None,
            Err(error) => match error.kind() {
                ErrorKind::MissingRequiredArgument
                | ErrorKind::MissingSubcommand
                | ErrorKind::DisplayHelp
                | ErrorKind::DisplayVersion
                | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => return None,
                _ => drop(why.get_or_insert(error.to_string().lines().next().unwrap().to_owned())),
            },
        }
    }
    why
}

#[test]
fn every_command_that_a_message_names_is_taken() {
    let house = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let mut files = Vec::new();
    sources(&house.join("supervisor"), &mut files);
    for leaf in ["kernel/src", "workspace/src", "policies/src"] {
        sources(&house.join(leaf), &mut files);
    }
    files.retain(|path| !path.to_str().unwrap().ends_with("tests.rs"));
    let (mut count, mut wrong) = (0, Vec::new());
    for file in files {
        let text = fs::read_to_string(&file).unwrap();
        let named = literals(&text).into_iter().flat_map(|text| commands(&text));
        for line in named.chain(remedies(&text)) {
            count += 1;
            if let Some(why) = refused(&line) {
                wrong.push(format!(
                    "{}: supervisor {line}: {why}",
                    file.strip_prefix(house).unwrap().display()
                ));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(count > 200, "{count} commands were found");
}

#[test]
fn commands_are_found_in_messages_and_wrong_ones_are_refused() {
    assert_eq!(commands("wait, or `supervisor reopen {id} --reason '…'`"), ["reopen {id} --reason '…'"]);
    assert_eq!(commands("start one with: supervisor daemon; then try again"), ["daemon"]);
    assert!(refused("reopen {id} --reason '…'").is_none() && refused("approve").is_none());
    assert!(refused("reopen {id} --because '…'").is_some() && refused("frobnicate {id}").is_some());
}
