//! A refusal as the reader sees it: the class, a sentence about the failure, and the next step.
//!
//! See decision 0064.

use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::exit::Code;

/// Prefix of the refusal of a body that does not parse as a request of its verb.
pub const INVALID_BODY: &str = "invalid body: ";

/// A refusal: one class, one sentence, and a hint where the reader can act.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Failure {
    /// Class, from the table in `exit.rs`.
    pub code: Code,
    /// The failed operation and the reason, without a full stop.
    pub message: String,
    /// Next step for the reader.
    pub hint: Option<String>,
    /// True if the request changed something before the refusal, or may have.
    pub has_changed: bool,
}

impl Failure {
    pub fn new(code: Code, message: impl Into<String>) -> Self {
        Failure { code, message: message.into(), hint: None, has_changed: false }
    }

    /// Marks a refusal of a request that changed something before it failed, or may have.
    #[must_use]
    pub fn after_a_change(self) -> Self {
        Failure { has_changed: true, ..self }
    }

    /// Returns true if the caller can rely on the board being unchanged.
    pub fn changed_nothing(&self) -> bool {
        self.code.changed_nothing() && !self.has_changed
    }

    #[must_use]
    pub fn hint(self, hint: impl Into<String>) -> Self {
        Failure { hint: Some(hint.into()), ..self }
    }

    /// Makes a refusal of a wrong argument.
    pub fn usage(message: impl Into<String>) -> Self {
        Failure::new(Code::Usage, message)
    }

    /// Makes a refusal for a failure of this program or its host that the caller did not cause.
    pub fn failed(message: impl Into<String>) -> Self {
        Failure::new(Code::Failed, message)
    }

    /// Rewords the refusal as the reason why a board is not served.
    #[must_use]
    pub fn not_served(self, board: &kernel::BoardName) -> Self {
        Failure { message: format!("the board `{board}` is not served: {}", self.message), ..self }
    }

    /// Makes a refusal for a failed file operation. The message names the operation, the path and the system's
    /// reason.
    pub fn file(act: &str, path: &Path, error: &std::io::Error) -> Self {
        let code = match error.kind() {
            std::io::ErrorKind::PermissionDenied => Code::NotPermitted,
            _ if shim::shortage::is_shortage(error) => Code::TryAgain,
            _ => Code::Failed,
        };
        let failure = Failure::new(code, format!("failed to {act} {}: {error}", path.display()));
        match code {
            Code::NotPermitted => failure
                .hint("run the command as the user that owns the root, or choose another with --root DIR"),
            Code::TryAgain => failure.hint(
                "the host lacks space, descriptors or memory, or its disk fails; fix that and try again",
            ),
            _ if error.kind() == std::io::ErrorKind::NotFound => {
                failure.hint("there is no such path: check it, and make the directories above it")
            }
            _ if error.kind() == std::io::ErrorKind::ReadOnlyFilesystem => failure
                .hint("its file system is mounted read-only: make it writable, or choose another place"),
            _ => failure,
        }
    }
}

impl Failure {
    /// Makes a refusal for a file or directory that the caller named. A missing path is `not_found`; a path of the
    /// wrong type is a wrong argument. `wanted` describes a suitable path for the hint.
    pub fn named_file(act: &str, path: &Path, error: &std::io::Error, wanted: &str) -> Self {
        use std::io::ErrorKind;
        let failure = Failure::file(act, path, error);
        match error.kind() {
            ErrorKind::NotFound | ErrorKind::NotADirectory => {
                Failure::new(Code::NotFound, failure.message).hint(format!("name {wanted}"))
            }
            ErrorKind::IsADirectory => {
                Failure::usage(format!("{} is a directory, not a file", path.display()))
                    .hint(format!("name {wanted}"))
            }
            ErrorKind::PermissionDenied => {
                failure.hint(format!("name {wanted} that the user of this process may use"))
            }
            _ => failure,
        }
    }
}

impl From<kernel::Error> for Failure {
    fn from(error: kernel::Error) -> Self {
        Failure { hint: error.hint(), ..Failure::new(error.code().into(), error.to_string()) }
    }
}

impl From<kernel::OpenError> for Failure {
    fn from(error: kernel::OpenError) -> Self {
        use kernel::OpenError as E;
        let code = match &error {
            E::Missing { .. } => Code::NotFound,
            E::Permission { .. } => Code::NotPermitted,
            E::Io { source, path, step } => {
                let failure = Failure::file(step, path, source);
                return Failure { message: error.to_string(), ..failure };
            }
            E::Full { .. } => Code::TryAgain,
            E::Exists { .. } => Code::Conflict,
            // The daemon migrates it, so the remedy is to start a daemon.
            E::OlderSchema { .. } => Code::Unreachable,
            E::Empty { .. }
            | E::Truncated { .. }
            | E::NotABoard { .. }
            | E::Foreign { .. }
            | E::Unfit { .. }
            | E::NotAFile { .. }
            | E::Corrupt { .. }
            | E::OlderFormat { .. }
            | E::NewerSchema { .. }
            | E::Mixed { .. }
            | E::Sqlite { .. } => Code::Failed,
        };
        Failure { hint: error.hint(), ..Failure::new(code, error.to_string()) }
    }
}

/// Returns an error with its causes on one line.
pub fn with_causes(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text.push_str(": ");
        text.push_str(&error.to_string());
        cause = error.source();
    }
    text
}

/// RFC 9457 problem document: the form of a refusal in the API and in `--json`.
#[derive(Debug, Serialize, Deserialize)]
pub struct Problem {
    /// Always `about:blank`; the class is in `code`.
    #[serde(rename = "type")]
    pub kind: String,
    /// Class in words.
    pub title: String,
    pub status: u16,
    /// The failed operation and the reason.
    pub detail: String,
    /// Stable word of the class.
    pub code: String,
    /// Next step for the reader.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    /// True if the request changed something before the refusal, or may have.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub changed: bool,
}

impl From<&Failure> for Problem {
    fn from(failure: &Failure) -> Self {
        Problem {
            kind: "about:blank".to_owned(),
            title: failure.code.word().replace('_', " "),
            status: failure.code.http(),
            detail: failure.message.clone(),
            code: failure.code.word().to_owned(),
            hint: failure.hint.clone(),
            changed: failure.has_changed,
        }
    }
}

impl From<Problem> for Failure {
    fn from(problem: Problem) -> Self {
        Failure {
            code: Code::from_wire(Some(&problem.code), problem.status),
            message: problem.detail,
            hint: problem.hint,
            has_changed: problem.changed,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_caller_names_and_does_not_exist_is_not_found_and_what_is_of_another_kind_is_a_wrong_argument() {
        let dir = tempfile::tempdir().unwrap();
        let (file, none) = (dir.path().join("file"), dir.path().join("none"));
        std::fs::write(&file, "").unwrap();
        for (path, code) in [
            (none.clone(), Code::NotFound),
            (none.join("below"), Code::NotFound),
            (file.join("below"), Code::NotFound),
            (dir.path().to_owned(), Code::Usage),
        ] {
            let error = std::fs::read(&path).unwrap_err();
            let failure = Failure::named_file("read", &path, &error, "a file");
            assert_eq!(failure.code, code, "{failure}");
            assert!(failure.message.contains(path.to_str().unwrap()), "{failure}");
            assert_eq!(failure.hint.as_deref(), Some("name a file"));
        }
    }
}
