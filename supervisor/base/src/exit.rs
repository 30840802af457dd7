//! Table of the exit codes. Each class of refusal has an exit code, an HTTP status and a word for JSON; further codes
//! report the state of a task or a run.
//!
//! A command that follows work (`run`, `wait`, `tail`, `logs -f`, `attach`, `dispatch`) takes its exit code from
//! `cli::outcome`. The code reflects the task if the task cannot go on without a person, and otherwise the run that
//! the command followed. So `kill`, which leaves the task to a person, is 5 for each of these commands.
//!
//! See decision 0119.

use serde::{Deserialize, Serialize};

/// Exit code for a task that waits for a person.
pub const NEEDS_A_PERSON: u8 = 5;
/// Exit code for a run that took too long; timeout(1) uses the same.
pub const TIMED_OUT: u8 = 124;
/// Base of the exit code for a command that a signal ended: shells add the signal's number to it.
pub const BY_SIGNAL: i32 = 128;

/// Class of a refusal. Each class has one exit code, one HTTP status and one word; several classes may share a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Code {
    /// The operation failed for a reason of its own.
    Failed,
    /// The request makes no sense as it stands: an argument or a value is wrong.
    Usage,
    /// The id in the path is malformed.
    Malformed,
    /// The path exists, but not for this method.
    Method,
    /// The body exceeds the size limit.
    TooLarge,
    /// The endpoint does not take a body of this type.
    MediaType,
    /// The named thing does not exist.
    NotFound,
    /// The thing exists and its state forbids this: a lost claim, a cycle, a wrong status.
    Conflict,
    /// The request needs a daemon, and none is reachable.
    Unreachable,
    /// The request is valid but cannot be served now: something is locked, the disk is full, the daemon is stopping.
    TryAgain,
    /// The request is valid, but the caller exceeds its rate limit.
    Throttled,
    /// A limit of the caller's run or tenant is reached; another try does not help.
    Exhausted,
    /// The caller lacks the permission.
    NotPermitted,
    /// The browser has no session.
    NoSession,
}

struct Row {
    code: Code,
    exit: u8,
    http: u16,
    word: &'static str,
}

const fn row(code: Code, exit: u8, http: u16, word: &'static str) -> Row {
    Row { code, exit, http, word }
}

/// Rows of one word differ in the HTTP status alone. The first of them applies when only the word is known.
const TABLE: [Row; 14] = [
    row(Code::Failed, 1, 500, "failed"),
    row(Code::Usage, 2, 422, "usage"),
    row(Code::Malformed, 2, 400, "usage"),
    row(Code::Method, 2, 405, "usage"),
    row(Code::TooLarge, 2, 413, "usage"),
    row(Code::MediaType, 2, 415, "usage"),
    row(Code::NotFound, 3, 404, "not_found"),
    row(Code::Conflict, 4, 409, "conflict"),
    row(Code::Unreachable, 69, 502, "unreachable"),
    row(Code::TryAgain, 75, 503, "try_again"),
    row(Code::Throttled, 75, 429, "throttled"),
    row(Code::NotPermitted, 77, 403, "not_permitted"),
    row(Code::NoSession, 77, 401, "not_permitted"),
    row(Code::Exhausted, 77, 429, "exhausted"),
];

impl Code {
    fn row(self) -> &'static Row {
        // Every variant has a row (a test walks them); the first row stands in for the impossible.
        TABLE.iter().find(|row| row.code == self).unwrap_or(&TABLE[0])
    }

    pub fn exit(self) -> u8 {
        self.row().exit
    }

    pub fn http(self) -> u16 {
        self.row().http
    }

    /// Returns the next step for a reader whose refusal has no hint of its own.
    pub fn next_step(self) -> &'static str {
        match self {
            Code::Failed => "`supervisor doctor` looks for what is wrong; the log of the daemon may say more",
            Code::Usage | Code::Malformed | Code::Method | Code::TooLarge | Code::MediaType => {
                "`supervisor --help` lists the commands, and each has a --help of its own"
            }
            Code::NotFound => "`supervisor list` shows the tasks, `supervisor boards list` the boards",
            Code::Conflict => {
                "`supervisor show <task>` says where a task stands, `supervisor status` the rest"
            }
            Code::Unreachable => "start one with: supervisor daemon",
            Code::TryAgain | Code::Throttled => {
                "try again in a moment; `supervisor status` says what is wrong"
            }
            Code::Exhausted => {
                "`supervisor events` shows what was used; the operator sets the bounds in supervisor.toml"
            }
            Code::NoSession => "get a link with: supervisor dashboard",
            Code::NotPermitted => {
                "run the command as the user that owns the root, or choose another with --root DIR"
            }
        }
    }

    /// Returns the stable word for problem documents and JSON errors.
    pub fn word(self) -> &'static str {
        self.row().word
    }

    /// Returns true if a refusal of this class normally precedes any change. `Failure::after_a_change` marks the
    /// exceptions.
    pub fn changed_nothing(self) -> bool {
        match self {
            Code::Usage
            | Code::Malformed
            | Code::Method
            | Code::TooLarge
            | Code::MediaType
            | Code::NotFound
            | Code::Conflict
            | Code::Throttled
            | Code::Exhausted
            | Code::NotPermitted
            | Code::NoSession => true,
            Code::Failed | Code::Unreachable | Code::TryAgain => false,
        }
    }

    /// Returns the class for a word and an HTTP status: the row that matches both, else the word alone, else the
    /// status alone.
    pub fn from_wire(word: Option<&str>, http: u16) -> Self {
        TABLE
            .iter()
            .find(|row| word == Some(row.word) && row.http == http)
            .or_else(|| TABLE.iter().find(|row| word == Some(row.word)))
            .or_else(|| TABLE.iter().find(|row| row.http == http))
            .map_or(Code::Failed, |row| row.code)
    }
}

impl From<kernel::ErrorCode> for Code {
    fn from(code: kernel::ErrorCode) -> Self {
        match code {
            kernel::ErrorCode::NotFound => Code::NotFound,
            kernel::ErrorCode::Conflict => Code::Conflict,
            kernel::ErrorCode::Invalid => Code::Usage,
            kernel::ErrorCode::Forbidden => Code::NotPermitted,
            kernel::ErrorCode::Exhausted => Code::Exhausted,
            kernel::ErrorCode::Unavailable => Code::TryAgain,
            kernel::ErrorCode::Internal => Code::Failed,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_class_has_its_own_row_and_survives_the_wire() {
        for row in &TABLE {
            assert_eq!(row.code.exit(), row.exit);
            assert_eq!(Code::from_wire(Some(row.word), row.http), row.code);
            assert_eq!(Code::from_wire(None, row.http).http(), row.http);
            assert_eq!(Code::from_wire(Some(row.word), 200).exit(), row.exit);
        }
    }
}
