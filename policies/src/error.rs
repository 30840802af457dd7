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
    #[error("read policy {}:{line} (extends): no policy is named `{base}` (there are {})", .origin.display(), .known.join(", "))]
    Base {
        /// The file.
        origin: PathBuf,
        /// The line, counted from 1.
        line: usize,
        /// The name given.
        base: String,
        /// The names that exist.
        known: Vec<String>,
    },
    /// The policies that it extends lead back to itself.
    #[error("read policy {}:{line} (extends): it leads back to itself: {chain}", .origin.display())]
    Cycle {
        /// The file in which the circle closes.
        origin: PathBuf,
        /// The line, counted from 1.
        line: usize,
        /// The names, in the order in which they extend each other.
        chain: String,
    },
    /// The policy has another name than its file.
    #[error(
        "read policy {}:{line} (name): it is named `{found}`, and tasks call it `{file}` after its file; name both alike or leave the name out",
        .origin.display()
    )]
    Name {
        /// The file.
        origin: PathBuf,
        /// The line, counted from 1.
        line: usize,
        /// The name given.
        found: String,
        /// The name of the file.
        file: String,
    },
    /// The policy grants the whole file system.
    #[error(
        "read policy {}:{line} ({key}): `/` grants every file, the supervisor's own included; grant the directories that are needed, or give trusted commands the policy `unconfined`",
        .origin.display()
    )]
    Everything {
        /// The file.
        origin: PathBuf,
        /// The line, counted from 1.
        line: usize,
        /// The key.
        key: &'static str,
    },
    /// The policy grants a place that is closed to every worker.
    #[error(
        "read policy {}:{line} ({key}): {} {relation} {}, which is the supervisor's own and closed to every worker; grant another directory",
        .origin.display(),
        .path.display(),
        .place.display()
    )]
    Closed {
        /// The file.
        origin: PathBuf,
        /// The line, counted from 1.
        line: usize,
        /// The key.
        key: &'static str,
        /// The granted path.
        path: PathBuf,
        /// How it stands to the place.
        relation: &'static str,
        /// The supervisor's place.
        place: PathBuf,
    },
    /// The policy names a variable that the supervisor sets.
    #[error(
        "read policy {}:{line} (env): `{name}` is set by the supervisor for each run; leave it out",
        .origin.display()
    )]
    Variable {
        /// The file.
        origin: PathBuf,
        /// The line, counted from 1.
        line: usize,
        /// The variable.
        name: String,
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
