//! Parses the text form of a workspace: `scratch`, `dir:/abs`, `worktree`, `worktree:/abs/repo`.

use std::fmt;
use std::path::{Component, Path, PathBuf};
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::code::Code;

/// Workspace that a task requests.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum WorkspaceSpec {
    /// A fresh directory of its own.
    #[default]
    Scratch,
    /// The directory at this path, which is absolute and has no `.` or `..`.
    Directory(PathBuf),
    /// A linked worktree of a git repository.
    Worktree {
        /// Absolute path of the repository; none for the default repository of the caller.
        repository: Option<PathBuf>,
    },
}

/// Reasons why a text is not a [`WorkspaceSpec`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SpecError {
    /// The word before the colon is unknown.
    #[error("unknown workspace kind {kind:?}")]
    UnknownKind { kind: String },
    /// `scratch` takes no path.
    #[error("a scratch workspace takes no path, and {path:?} was given")]
    ScratchWithPath { path: String },
    /// `dir` has no path, or nothing follows the colon of `dir:` or `worktree:`.
    #[error("{kind}: names no path")]
    EmptyPath { kind: String },
    /// The path does not start with a slash.
    #[error(
        "the path {path:?} of {kind} is relative: its meaning would depend on the working directory of the daemon"
    )]
    Relative { kind: String, path: String },
    /// The path contains `..`.
    #[error("the path {path:?} of {kind} contains `..`, which symbolic links can lead elsewhere")]
    Parent { kind: String, path: String },
    /// The path contains NUL, a newline or another control character.
    #[error("the path {path:?} of {kind} contains a control character")]
    ControlCharacter { kind: String, path: String },
    /// The path is `/`.
    #[error("{kind}:/ would make the whole host a workspace")]
    WholeHost { kind: String },
}

impl SpecError {
    /// Returns the text to write instead.
    pub fn hint(&self) -> Option<String> {
        Some(match self {
            Self::UnknownKind { .. } => {
                "use scratch, dir:/abs/path, worktree or worktree:/abs/repository".to_owned()
            }
            Self::ScratchWithPath { path } => {
                format!("use scratch alone, or dir:{} for a directory that exists", absolute_example(path))
            }
            Self::EmptyPath { kind } => format!("write {kind}:/abs/path"),
            Self::Relative { kind, path } => {
                format!("write the absolute path, such as {kind}:{}", absolute_example(path))
            }
            Self::Parent { kind, .. } => format!("write {kind}: with the path that `realpath` prints"),
            Self::ControlCharacter { .. } => "rename the directory, or use another one".to_owned(),
            Self::WholeHost { kind } => format!("name a directory, such as {kind}:/srv/project"),
        })
    }

    /// Returns the stable code of this refusal.
    pub fn code(&self) -> Code {
        match self {
            Self::UnknownKind { .. } => Code::WorkspaceKindUnknown,
            Self::ScratchWithPath { .. } => Code::WorkspaceScratchPath,
            Self::EmptyPath { .. } => Code::WorkspacePathEmpty,
            Self::Relative { .. } => Code::WorkspacePathRelative,
            Self::Parent { .. } | Self::ControlCharacter { .. } | Self::WholeHost { .. } => {
                Code::WorkspacePathInvalid
            }
        }
    }
}

/// Returns an absolute path that ends as `path` does, for a hint.
fn absolute_example(path: &str) -> String {
    let tail = path.trim_start_matches(['~', '.', '/']);
    if path.starts_with('~') { format!("/home/you/{tail}") } else { format!("/path/to/{tail}") }
}

/// Checks a path and returns it without `.`, doubled slashes and a trailing slash.
fn absolute(kind: &str, text: &str) -> Result<PathBuf, SpecError> {
    let kind = kind.to_owned();
    let path = text.to_owned();
    if text.is_empty() {
        return Err(SpecError::EmptyPath { kind });
    }
    if text.chars().any(char::is_control) {
        return Err(SpecError::ControlCharacter { kind, path });
    }
    if !text.starts_with('/') {
        return Err(SpecError::Relative { kind, path });
    }
    if Path::new(text).components().any(|part| part == Component::ParentDir) {
        return Err(SpecError::Parent { kind, path });
    }
    let normal: PathBuf = Path::new(text).components().collect();
    if normal == Path::new("/") { Err(SpecError::WholeHost { kind }) } else { Ok(normal) }
}

impl FromStr for WorkspaceSpec {
    type Err = SpecError;

    fn from_str(text: &str) -> Result<Self, SpecError> {
        let (kind, path) = match text.split_once(':') {
            Some((kind, path)) => (kind, Some(path)),
            None => (text, None),
        };
        match (kind, path) {
            ("scratch", None) => Ok(Self::Scratch),
            ("scratch", Some(path)) => Err(SpecError::ScratchWithPath { path: path.to_owned() }),
            ("dir", path) => Ok(Self::Directory(absolute("dir", path.unwrap_or_default())?)),
            ("worktree", None) => Ok(Self::Worktree { repository: None }),
            ("worktree", Some(path)) => Ok(Self::Worktree { repository: Some(absolute("worktree", path)?) }),
            _ => Err(SpecError::UnknownKind { kind: kind.to_owned() }),
        }
    }
}

impl fmt::Display for WorkspaceSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Scratch => f.write_str("scratch"),
            Self::Directory(path) => write!(f, "dir:{}", path.display()),
            Self::Worktree { repository: None } => f.write_str("worktree"),
            Self::Worktree { repository: Some(path) } => write!(f, "worktree:{}", path.display()),
        }
    }
}

impl TryFrom<String> for WorkspaceSpec {
    type Error = SpecError;

    fn try_from(text: String) -> Result<Self, SpecError> {
        text.parse()
    }
}

impl From<WorkspaceSpec> for String {
    fn from(spec: WorkspaceSpec) -> Self {
        spec.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_is_read_and_written_the_same() {
        for text in ["scratch", "dir:/srv/notes", "worktree", "worktree:/srv/repo"] {
            let spec: WorkspaceSpec = text.parse().unwrap();
            assert_eq!(spec.to_string(), text);
            let json = serde_json::to_string(&spec).unwrap();
            assert_eq!(json, format!("{text:?}"));
            assert_eq!(serde_json::from_str::<WorkspaceSpec>(&json).unwrap(), spec);
        }
    }

    #[test]
    fn a_path_is_stored_in_its_plain_form() {
        let spec: WorkspaceSpec = "dir:/srv//notes/./x/".parse().unwrap();
        assert_eq!(spec, WorkspaceSpec::Directory("/srv/notes/x".into()));
    }

    #[test]
    fn a_relative_path_is_refused_with_the_reason_and_the_remedy() {
        let error = "dir:notes/today".parse::<WorkspaceSpec>().unwrap_err();
        assert_eq!(error.code(), Code::WorkspacePathRelative);
        let message = error.to_string();
        assert!(
            message.contains("\"notes/today\"") && message.contains("working directory of the daemon"),
            "{message}"
        );
        assert!(error.hint().unwrap().contains("dir:/path/to/notes/today"));
        assert!("worktree:repo".parse::<WorkspaceSpec>().is_err());
        assert!(
            "dir:~/notes".parse::<WorkspaceSpec>().unwrap_err().hint().unwrap().contains("/home/you/notes")
        );
    }

    #[test]
    fn odd_paths_and_kinds_are_refused() {
        for bad in [
            "",
            "dir",
            "dir:",
            "worktree:",
            "dir:/",
            "dir:/a/../b",
            "dir:/a\0b",
            "dir:/a\nb",
            "scratch:/x",
            "vm",
        ] {
            let error = bad.parse::<WorkspaceSpec>().unwrap_err();
            assert!(error.hint().is_some(), "{bad:?}: {error}");
        }
    }
}
