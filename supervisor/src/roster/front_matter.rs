//! A Markdown file with YAML front matter: settings between two lines of `---`, and then a text.

use serde::de::DeserializeOwned;
use serde_saphyr::{DefaultMessageFormatter, MessageFormatter as _};

/// The longest front matter, in bytes.
const LONGEST: usize = 16 << 10;

/// A Markdown file, taken apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Parts<'a> {
    /// The settings, as YAML. Its first line is the second one of the file.
    yaml: &'a str,
    /// What follows it.
    pub(crate) body: &'a str,
}

/// What is wrong with a file, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Fault {
    /// The line of the file, counted from 1.
    pub(crate) line: usize,
    pub(crate) key: Option<String>,
    pub(crate) message: String,
}

impl Fault {
    fn at(line: usize, message: impl Into<String>) -> Self {
        Fault { line, key: None, message: message.into() }
    }
}

impl<'a> Parts<'a> {
    /// Takes a file apart.
    pub(crate) fn of(text: &'a str) -> Result<Self, Fault> {
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

    /// Reads the settings.
    pub(crate) fn settings<T: DeserializeOwned>(&self) -> Result<T, Fault> {
        // What a person writes into a profile is flat: whatever refers to another part of itself could grow without end.
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
        let yaml = if self.yaml.trim().is_empty() { "{}" } else { self.yaml };
        serde_saphyr::from_str_with_options(yaml, options).map_err(|e| {
            let line = e.location().map_or(1, |place| usize::try_from(place.line()).unwrap_or(1));
            let told = DefaultMessageFormatter.format_message(e.without_snippet());
            let message = told.split_whitespace().collect::<Vec<_>>().join(" ");
            Fault { line: line + 1, key: key_of(self.yaml, line), message }
        })
    }

    /// The line of the file that sets a key.
    pub(crate) fn fault(&self, key: &str, message: impl Into<String>) -> Fault {
        let sets = |line: &str| key_in(line).is_some_and(|found| found == key);
        let line = self.yaml.lines().position(sets).map_or(1, |index| index + 2);
        Fault { line, key: Some(key.to_owned()), message: message.into() }
    }
}

/// What follows a first line of `---`; none where the first line is another one.
fn after_fence(text: &str) -> Option<&str> {
    let (line, rest) = text.split_once('\n').unwrap_or((text, ""));
    (line.trim_end() == "---").then_some(rest)
}

/// The key that a line sets, counted from 1.
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
        Parts::of(text).and_then(|parts| parts.settings())
    }

    #[test]
    fn settings_and_text_are_told_apart() {
        let parts = Parts::of("---\nname: ann\n---\n\nYou are Ann.\n---\nmore\n").unwrap();
        assert_eq!((parts.yaml, parts.body), ("name: ann\n", "\nYou are Ann.\n---\nmore\n"));
        assert_eq!(settings("---\r\nname: ann\r\n---\r\n").unwrap()["name"], "ann");
        assert_eq!(settings("---\nname: ann\n---").unwrap()["name"], "ann");
        for text in ["", "name: ann\n", "# --- \n", "---\nname: ann\n", "---x\na: b\n---\n"] {
            assert_eq!(Parts::of(text).unwrap_err().line, 1, "{text}");
        }
    }

    #[test]
    fn a_fault_has_the_line_of_the_file_and_the_key() {
        let fault = settings("---\nname: ann\nrole: [1, 2]\n---\n").unwrap_err();
        assert_eq!((fault.line, fault.key.as_deref()), (3, Some("role")), "{fault:?}");
        let fault = settings("---\nname: ann\nname: ann\n---\n").unwrap_err();
        assert_eq!(fault.line, 3, "{fault:?}");
        assert!(!fault.message.contains('\n'), "{fault:?}");
        let parts = Parts::of("---\na: 1\n\"b\": 2\n---\n").unwrap();
        assert_eq!(parts.fault("b", "").line, 3);
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
