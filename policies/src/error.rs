//! Reasons why a policy text was refused, with the file, the line and the key.

use std::path::{Path, PathBuf};

/// A policy text that cannot be used.
#[derive(Debug)]
#[non_exhaustive]
pub enum PolicyError {
    /// The text is not TOML, or holds a key or value that a policy does not have.
    Text {
        /// The file.
        origin: PathBuf,
        /// The line, counted from 1.
        line: usize,
        /// The key, if there is one on that line.
        key: Option<String>,
        /// The defect.
        message: String,
    },
    /// The policy extends a missing policy.
    Base {
        /// The file.
        origin: PathBuf,
        /// The line, counted from 1.
        line: usize,
        /// The name given.
        base: String,
        /// The existing names.
        known: Vec<String>,
    },
    /// The policies that it extends lead back to itself.
    Cycle {
        /// The file in which the circle closes.
        origin: PathBuf,
        /// The line, counted from 1.
        line: usize,
        /// The names, in the order in which they extend each other.
        chain: String,
    },
    /// The policy has another name than its file.
    Name {
        /// The file.
        origin: PathBuf,
        /// The line, counted from 1.
        line: usize,
        /// The name given.
        found: String,
        file: String,
    },
    /// The policy grants the whole file system.
    Everything {
        /// The file.
        origin: PathBuf,
        /// The line, counted from 1.
        line: usize,
        /// The key that grants it.
        key: &'static str,
    },
    /// The policy grants a place that is closed to every worker.
    Closed {
        /// The file.
        origin: PathBuf,
        /// The line, counted from 1.
        line: usize,
        /// The key that grants it.
        key: &'static str,
        path: PathBuf,
        /// Relation of the path to the place.
        relation: &'static str,
        /// Path of the supervisor's own file or directory.
        place: PathBuf,
    },
    /// A broker of the policy is invalid.
    Broker {
        /// The file.
        origin: PathBuf,
        /// The line, counted from 1.
        line: usize,
        /// The defect.
        message: String,
    },
    /// The policy names a variable that the supervisor sets.
    Variable {
        /// The file.
        origin: PathBuf,
        /// The line, counted from 1.
        line: usize,
        /// The variable.
        name: String,
    },
    /// The policy was written for another version of the format, or names none.
    Version {
        /// The file.
        origin: PathBuf,
        /// The line, counted from 1.
        line: usize,
        /// The version given, if any.
        found: Option<u32>,
    },
}

impl std::error::Error for PolicyError {}

/// Writes `read policy <file>:<line> (<key>): <cause>`.
impl std::fmt::Display for PolicyError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let key = self.key().map(|key| format!(" ({key})")).unwrap_or_default();
        write!(f, "read policy {}:{}{key}: {}", self.origin().display(), self.line(), self.what())
    }
}

impl PolicyError {
    /// Returns the line, counted from 1.
    pub fn line(&self) -> usize {
        match self {
            Self::Text { line, .. }
            | Self::Base { line, .. }
            | Self::Cycle { line, .. }
            | Self::Name { line, .. }
            | Self::Everything { line, .. }
            | Self::Closed { line, .. }
            | Self::Broker { line, .. }
            | Self::Variable { line, .. }
            | Self::Version { line, .. } => *line,
        }
    }

    /// Returns the key, if there is one on that line.
    pub fn key(&self) -> Option<&str> {
        match self {
            Self::Text { key, .. } => key.as_deref(),
            Self::Base { .. } | Self::Cycle { .. } => Some("extends"),
            Self::Name { .. } => Some("name"),
            Self::Everything { key, .. } | Self::Closed { key, .. } => Some(key),
            Self::Broker { .. } => Some("broker"),
            Self::Variable { .. } => Some("env"),
            Self::Version { .. } => Some("version"),
        }
    }

    /// Returns the file.
    pub fn origin(&self) -> &Path {
        match self {
            Self::Text { origin, .. }
            | Self::Base { origin, .. }
            | Self::Cycle { origin, .. }
            | Self::Name { origin, .. }
            | Self::Everything { origin, .. }
            | Self::Closed { origin, .. }
            | Self::Broker { origin, .. }
            | Self::Variable { origin, .. }
            | Self::Version { origin, .. } => origin,
        }
    }

    /// Returns the defect, without the file, line and key.
    pub fn what(&self) -> String {
        match self {
            Self::Text { message, .. } | Self::Broker { message, .. } => message.clone(),
            Self::Base { base, known, .. } => {
                format!("no policy is named `{base}` (there are {})", known.join(", "))
            }
            Self::Cycle { chain, .. } => format!("it leads back to itself: {chain}"),
            Self::Name { found, file, .. } => format!(
                "it is named `{found}`, and tasks call it `{file}` after its file; name both alike or leave the name out"
            ),
            Self::Everything { .. } => {
                "`/` grants every file, the supervisor's own included; grant the directories that are needed, or give \
                 trusted commands the policy `unconfined`"
                    .to_owned()
            }
            Self::Closed { path, relation, place, .. } => format!(
                "{} {relation} {}, which is the supervisor's own and closed to every worker; grant another directory",
                path.display(),
                place.display()
            ),
            Self::Variable { name, .. } => {
                format!("`{name}` is set by the supervisor for each run; leave it out")
            }
            Self::Version { found: Some(found), .. } => {
                format!("version {found} is not known; this release reads version 1")
            }
            Self::Version { found: None, .. } => {
                "the version of the format is missing; add `version = 1`".to_owned()
            }
        }
    }

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

/// Returns the line, counted from 1, that contains a byte offset.
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
