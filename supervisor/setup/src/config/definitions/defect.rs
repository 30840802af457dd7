//! A defect in a file of the configuration: its position, the reason, and its effect.

use std::fmt;
use std::path::Path;

use kernel::{Clock as _, Finding, FindingCode, Seen, SystemClock, Timestamp};
use serde_json::json;

/// Defect in a file of the configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Defect {
    /// Definition that the file holds.
    pub subject: Subject,
    /// File, or directory that cannot be listed.
    pub path: Box<Path>,
    /// Line, counted from 1.
    pub line: Option<usize>,
    pub key: Option<String>,
    /// Reason.
    pub message: Box<str>,
    pub effect: Effect,
    /// Time of the discovery.
    pub seen_at: Timestamp,
}

/// Kind and name of the definition in a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Subject {
    Lane(String),
    Policy(String),
    Profile(String),
    Skill(String),
    Schedule(String),
    Chat(String),
    Plugin(String),
    Tenant(String),
    /// All definitions of a directory that cannot be listed.
    Directory,
    Settings,
}

impl fmt::Display for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Subject::Lane(name) => write!(f, "the lane {name}"),
            Subject::Policy(name) => write!(f, "the policy {name}"),
            Subject::Profile(name) => write!(f, "the profile {name}"),
            Subject::Skill(name) => write!(f, "the skill {name}"),
            Subject::Schedule(name) => write!(f, "the schedule {name}"),
            Subject::Chat(name) => write!(f, "the chat {name}"),
            Subject::Plugin(name) => write!(f, "the plugin {name}"),
            Subject::Tenant(name) => write!(f, "the tenant {name}"),
            Subject::Directory => f.write_str("what its files define"),
            Subject::Settings => f.write_str("the configuration"),
        }
    }
}

/// Effect of a defect on the file's definition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// The definition is unusable.
    Disabled,
    /// The daemon keeps the last good version.
    KeptLast,
}

impl Defect {
    /// Makes a defect without a line and a key.
    pub fn new(subject: Subject, path: &Path, message: impl Into<String>) -> Self {
        Defect {
            subject,
            path: path.into(),
            line: None,
            key: None,
            message: message.into().into_boxed_str(),
            effect: Effect::Disabled,
            seen_at: SystemClock.now(),
        }
    }

    /// Makes the defect of a file that could not be read.
    pub fn unreadable(subject: Subject, path: &Path, error: &std::io::Error) -> Self {
        Defect::new(subject, path, format!("it cannot be read: {error}"))
    }

    /// Makes the defect of a text that is not TOML or has an unknown key or value.
    pub fn toml(subject: Subject, path: &Path, text: &str, error: &toml::de::Error) -> Self {
        let line = line_of(text, error.span().map_or(0, |span| span.start));
        Defect::new(subject, path, error.message()).at(line, key_of(text, line))
    }

    /// Changes the effect: the last good version stays in use.
    pub(crate) fn kept_last(self) -> Self {
        Defect { effect: Effect::KeptLast, ..self }
    }

    /// Adds a line and a key.
    #[must_use]
    pub fn at(self, line: usize, key: Option<String>) -> Self {
        Defect { line: Some(line), key, ..self }
    }

    /// Returns a remedy.
    pub fn hint(&self) -> String {
        let manual = match self.subject {
            Subject::Lane(_) => "docs/lanes.md",
            Subject::Policy(_) => "docs/policies.md",
            Subject::Profile(_) | Subject::Skill(_) => "docs/profiles.md",
            Subject::Schedule(_) => "docs/schedules.md",
            Subject::Chat(_) => "docs/chat.md",
            Subject::Plugin(_) => "docs/plugins.md",
            Subject::Tenant(_) | Subject::Directory | Subject::Settings => "docs/configuration.md",
        };
        format!(
            "correct the file (`supervisor help {manual}` describes it), then let the daemon read it: `supervisor service reload`"
        )
    }

    /// Returns the consequence in words.
    pub fn consequence(&self) -> String {
        match self.effect {
            Effect::Disabled => format!("{} is disabled", self.subject),
            Effect::KeptLast => format!("{} stays as it was last read", self.subject),
        }
    }
}

impl From<&Defect> for Finding {
    fn from(defect: &Defect) -> Self {
        let data = json!({ "path": defect.path, "line": defect.line, "key": defect.key });
        Finding::error(FindingCode::ConfigurationDefect, defect.to_string())
            .about(defect.subject.to_string())
            .detail(defect.consequence())
            .advice(defect.hint())
            .seen(Seen { data, ..Seen::lasting(defect.seen_at, SystemClock.now()) })
    }
}

/// Returns the line, counted from 1, that contains a byte offset.
fn line_of(text: &str, offset: usize) -> usize {
    text.bytes().take(offset).filter(|byte| *byte == b'\n').count() + 1
}

/// Returns the key that a line sets.
fn key_of(text: &str, line: usize) -> Option<String> {
    let key = text.lines().nth(line - 1)?.split_once('=')?.0.trim().trim_matches(['"', '\'']);
    (!key.is_empty()).then(|| key.to_owned())
}

/// Format: `lanes.d/mine.toml:3 (prompt): REASON`.
impl fmt::Display for Defect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.path.display())?;
        if let Some(line) = self.line {
            write!(f, ":{line}")?;
        }
        if let Some(key) = &self.key {
            write!(f, " ({key})")?;
        }
        write!(f, ": {}", self.message)
    }
}
