//! Why a policy text was refused, with the file, the line and the key.

use std::path::{Path, PathBuf};

/// A policy text that cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PolicyError {
    /// The text is not TOML, or holds a key or value that a policy does not have.
    #[error("read policy {}:{line}{}: {message}", .origin.display(), key.as_ref().map(|key| format!(" ({key})")).unwrap_or_default())]
    Text {
        /// The file.
        origin: PathBuf,
        /// The line, counted from 1.
        line: usize,
        /// The key, where there is one on that line.
        key: Option<String>,
        /// What is wrong.
        message: String,
    },
    /// The policy extends one that does not exist.
    #[error("read policy {}:{line} (extends): no built-in policy is named `{base}` (there are {})", .origin.display(), .known.join(", "))]
    Base {
        /// The file.
        origin: PathBuf,
        /// The line, counted from 1.
        line: usize,
        /// The name given.
        base: String,
        /// The names that exist.
        known: &'static [&'static str],
    },
    /// The policy was written for another version of the format.
    #[error("read policy {}:{line} (version): version {found} is not known; this release reads version 1", .origin.display())]
    Version {
        /// The file.
        origin: PathBuf,
        /// The line, counted from 1.
        line: usize,
        /// The version given.
        found: u32,
    },
}

impl PolicyError {
    /// Places a TOML error in its file.
    pub(crate) fn from_toml(text: &str, origin: &Path, error: &toml::de::Error) -> Self {
        let offset = error.span().map_or(0, |span| span.start);
        let line = line_of(text, offset);
        let content = text.lines().nth(line - 1).unwrap_or_default().trim();
        let key = content.split_once('=').map_or(content, |(key, _)| key).trim();
        let key = key.trim_matches(['[', ']', '"', '\'']);
        let key = key.chars().all(|c| c.is_ascii_alphanumeric() || "_-.".contains(c)).then(|| key.to_owned());
        Self::Text {
            origin: origin.to_owned(),
            line,
            key: key.filter(|key| !key.is_empty()),
            message: error.message().to_owned(),
        }
    }
}

/// Returns the line, counted from 1, that holds a byte offset.
pub(crate) fn line_of(text: &str, offset: usize) -> usize {
    text.bytes().take(offset).filter(|byte| *byte == b'\n').count() + 1
}

/// Returns the line, counted from 1, of a top-level key.
pub(crate) fn line_of_key(text: &str, key: &str) -> usize {
    text.lines()
        .position(|line| {
            line.trim_start().strip_prefix(key).is_some_and(|rest| rest.trim_start().starts_with('='))
        })
        .map_or(1, |index| index + 1)
}
