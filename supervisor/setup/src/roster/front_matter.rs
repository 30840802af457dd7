//! Parses Markdown files with YAML front matter: settings between two lines of `---`, then a text.
//!
//! Anchors and aliases of YAML are refused: no profile needs them, and a small document with aliases can expand to a
//! huge one.

use serde::de::DeserializeOwned;
use serde_json::Value;
use serde_saphyr::budget::BudgetBreach;
use serde_saphyr::{DefaultMessageFormatter, Error, MessageFormatter as _};

/// Limit on the front matter, in bytes.
const LONGEST: usize = 16 << 10;

/// The two parts of a Markdown file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Parts<'a> {
    /// Settings as YAML. Their first line is the second line of the file.
    yaml: &'a str,
    /// Text after the front matter.
    pub body: &'a str,
}

/// Error in a file, with its position.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// Line of the file, counted from 1.
    pub line: usize,
    pub key: Option<String>,
    pub message: String,
}

impl Fault {
    fn at(line: usize, message: impl Into<String>) -> Self {
        Fault { line, key: None, message: message.into() }
    }
}

impl<'a> Parts<'a> {
    /// Splits a file.
    pub(crate) fn split(text: &'a str) -> Result<Self, Fault> {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let Some(rest) = after_fence(text) else {
            return Err(Fault::at(1, "it does not begin with a line of ---, which front matter begins with"));
        };
        let mut at = 0;
        for line in rest.split_inclusive('\n') {
            if after_fence(line).is_some() {
                let parts = Parts { yaml: &rest[..at], body: &rest[at + line.len()..] };
                return match parts.yaml.len() {
                    0..=LONGEST => Ok(parts),
                    _ => Err(Fault::at(1, "its front matter has more than 16 KiB")),
                };
            }
            at += line.len();
        }
        Err(Fault::at(1, "its front matter has no end; write a line of --- after it"))
    }

    pub(crate) fn settings<T: DeserializeOwned>(&self) -> Result<T, Fault> {
        Self::settings_of(self.yaml).map_err(|e| self.fault_of(&e))
    }

    /// Parses settings as leniently as Claude Code does: if they are not valid YAML, each plain value of a line is read
    /// as a text. Also returns the fault that was ignored.
    pub(crate) fn loose_settings<T: DeserializeOwned>(&self) -> Result<(T, Option<Fault>), Fault> {
        let error = match Self::settings_of(self.yaml) {
            Ok(settings) => return Ok((settings, None)),
            Err(e @ (Error::Budget { .. } | Error::DuplicateMappingKey { .. })) => {
                return Err(self.fault_of(&e));
            }
            Err(e) => e,
        };
        let fault = self.fault_of(&error);
        let lines: Vec<String> = self.yaml.lines().map(with_quotes).collect();
        match Self::settings_of(&lines.join("\n")) {
            Ok(settings) => Ok((settings, Some(fault))),
            Err(_) => Err(fault),
        }
    }

    fn settings_of<T: DeserializeOwned>(yaml: &str) -> Result<T, Error> {
        // Profiles are almost flat. Anchors and aliases could expand to a huge document, so they are refused.
        let options = serde_saphyr::options! {
            budget: serde_saphyr::budget! {
                max_anchors: 0,
                max_aliases: 0,
                max_depth: 8,
                max_nodes: 2000,
                max_documents: 1,
            },
            with_snippet: false,
        };
        let yaml = if yaml.trim().is_empty() { "{}" } else { yaml };
        serde_saphyr::from_str_with_options(yaml, options)
    }

    fn fault_of(&self, error: &Error) -> Fault {
        let line = error.location().map_or(1, |place| usize::try_from(place.line()).unwrap_or(1));
        Fault { line: line + 1, key: key_of(self.yaml, line), message: in_words(error.without_snippet()) }
    }

    /// Returns a fault at the line that sets a key, or at the first line if no line does.
    pub(crate) fn fault(&self, key: &str, message: impl Into<String>) -> Fault {
        let sets = |line: &str| key_in(line).is_some_and(|found| found == key);
        let line = self.yaml.lines().position(sets).map_or(1, |index| index + 2);
        Fault { line, key: Some(key.to_owned()), message: message.into() }
    }
}

/// Returns the message about a parse error for the author of the file.
fn in_words(error: &Error) -> String {
    match error {
        Error::Budget { breach: BudgetBreach::Anchors { .. } | BudgetBreach::Aliases { .. }, .. } => {
            "anchors and aliases (`&name`, `*name`) are not read here: write the value itself, or put a text that begins so in quotes"
                .to_owned()
        }
        Error::Budget { breach: BudgetBreach::Depth { .. }, .. } => "it is nested too deeply".to_owned(),
        Error::Budget { .. } => "it has more values than are read".to_owned(),
        Error::DuplicateMappingKey { key: Some(key), .. } => format!("`{key}` is there twice"),
        Error::DuplicateMappingKey { key: None, .. } => "a key is there twice".to_owned(),
        Error::InvalidScalar { ty: "u64" | "u32" | "u16" | "u8" | "usize", .. } => {
            "it is not a whole number of 0 or more".to_owned()
        }
        Error::InvalidScalar { ty: "i64" | "i32" | "i16" | "i8" | "isize", .. } => {
            "it is not a whole number".to_owned()
        }
        other => {
            let detail = DefaultMessageFormatter.format_message(other);
            let detail = detail.split_whitespace().collect::<Vec<_>>().join(" ");
            // An unquoted text with a colon is the most frequent mistake.
            let is_colon = detail.contains("mapping values are not allowed");
            let hint = if is_colon { ": put a text that has a colon in quotes" } else { "" };
            format!("{detail}{hint}")
        }
    }
}

/// Returns a line that sets a key to a plain value, with the value in quotes; any other line unchanged.
fn with_quotes(line: &str) -> String {
    let Some((key, rest)) = line.split_once(':').filter(|_| key_in(line).is_some()) else {
        return line.to_owned();
    };
    let value = rest.trim();
    let is_within =
        |open: char, close: char| value.len() > 1 && value.starts_with(open) && value.ends_with(close);
    let is_whole = [('"', '"'), ('\'', '\''), ('[', ']'), ('{', '}')].iter().any(|(a, b)| is_within(*a, *b));
    // Start of a block, or a key with its values below.
    let is_begun = value.is_empty() || ((value.starts_with(['|', '>'])) && value.len() < 4);
    let is_nested = key.starts_with([' ', '\t', '-']) || !rest.starts_with([' ', '\t']);
    if is_whole || is_begun || is_nested {
        return line.to_owned();
    }
    format!("{key}: {}", Value::from(value))
}

/// Returns the text after a first line of `---`; none if the first line is another.
fn after_fence(text: &str) -> Option<&str> {
    let (line, rest) = text.split_once('\n').unwrap_or((text, ""));
    (line.trim_end() == "---").then_some(rest)
}

/// Returns the key that a line, counted from 1, sets.
fn key_of(yaml: &str, line: usize) -> Option<String> {
    yaml.lines().nth(line.checked_sub(1)?).and_then(key_in).map(str::to_owned)
}

fn key_in(line: &str) -> Option<&str> {
    let key = line.split_once(':')?.0.trim().trim_matches(['"', '\'']);
    (!key.is_empty() && !key.contains([' ', '#', '['])).then_some(key)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn settings(text: &str) -> Result<BTreeMap<String, String>, Fault> {
        Parts::split(text).and_then(|parts| parts.settings())
    }

    #[test]
    fn settings_and_text_are_told_apart() {
        let parts = Parts::split("---\nname: ann\n---\n\nYou are Ann.\n---\nmore\n").unwrap();
        assert_eq!((parts.yaml, parts.body), ("name: ann\n", "\nYou are Ann.\n---\nmore\n"));
        assert_eq!(settings("---\r\nname: ann\r\n---\r\n").unwrap()["name"], "ann");
        assert_eq!(settings("---\nname: ann\n---").unwrap()["name"], "ann");
        for text in ["", "name: ann\n", "# --- \n", "---\nname: ann\n", "---x\na: b\n---\n"] {
            assert_eq!(Parts::split(text).unwrap_err().line, 1, "{text}");
        }
    }

    #[test]
    fn a_fault_has_the_line_of_the_file_and_the_key() {
        let fault = settings("---\nname: ann\nrole: [1, 2]\n---\n").unwrap_err();
        assert_eq!((fault.line, fault.key.as_deref()), (3, Some("role")), "{fault:?}");
        let fault = settings("---\nname: ann\nname: ann\n---\n").unwrap_err();
        assert_eq!(fault.line, 3, "{fault:?}");
        assert!(!fault.message.contains('\n'), "{fault:?}");
        let parts = Parts::split("---\na: 1\n\"b\": 2\n---\n").unwrap();
        assert_eq!(parts.fault("b", "").line, 3);
    }

    #[test]
    fn what_is_no_yaml_is_read_line_by_line_where_it_may_be_and_told_in_plain_words() {
        let text = "---\nname: ann\ndescription: Use it. Examples: user: \"x\" # y\ntools: [a, b]\nmore: >\n  a: b\n---\n";
        let fault = settings(text).unwrap_err();
        assert_eq!((fault.line, fault.key.as_deref()), (3, Some("description")), "{fault:?}");
        assert!(fault.message.contains("put a text that has a colon in quotes"), "{fault:?}");
        let parts = Parts::split(text).unwrap();
        let (read, passed) = parts.loose_settings::<BTreeMap<String, Value>>().unwrap();
        assert_eq!(passed, Some(fault));
        assert_eq!(read["description"], "Use it. Examples: user: \"x\" # y");
        assert_eq!((&read["tools"][1], &read["more"]), (&"b".into(), &"a: b\n".into()));
        let message_of = |line: &str| {
            let text = format!("---\n{line}\n---\n");
            let parts = Parts::split(&text).unwrap();
            let fault = parts.settings::<BTreeMap<String, u64>>().unwrap_err();
            let loose = parts.loose_settings::<BTreeMap<String, u64>>();
            assert_eq!(loose.unwrap_err(), fault, "quotes help no number");
            fault.message
        };
        assert_eq!(message_of("a: 1\na: 2"), "`a` is there twice");
        assert_eq!(message_of("a: -1"), "it is not a whole number of 0 or more");
        assert!(
            message_of("a: &b 1").starts_with("anchors and aliases (`&name`, `*name`) are not read here")
        );
        assert!(Parts::split("---\nb: x\na: &b x: y\n---\n").unwrap().loose_settings::<Value>().is_err());
    }

    #[test]
    fn what_could_grow_without_end_is_refused() {
        let bomb =
            "---\na: &a [x, x, x, x, x, x, x, x, x]\nb: &b [*a, *a, *a, *a]\nc: [*b, *b, *b, *b]\n---\n";
        assert!(settings(bomb).is_err());
        assert!(settings("---\na: &a x\nb: *a\n---\n").is_err(), "none at all is needed");
        let deep = format!("---\na: {}{}\n---\n", "[".repeat(5000), "]".repeat(5000));
        assert!(settings(&deep).is_err());
        let long = format!("---\na: {}\n---\n", "x".repeat(20 << 10));
        assert!(settings(&long).unwrap_err().message.contains("16 KiB"));
        assert!(settings("---\na: !!binary aGk=\n--- x\nb: c\n---\n").is_err());
    }
}
