//! What a command said, and how it ended.

use std::os::unix::process::ExitStatusExt;
use std::process::Command;

use serde_json::Value;

/// The end of a command.
#[derive(Clone, Debug)]
pub(crate) struct Output {
    /// The exit code; 128 and the signal's number for one that was killed.
    pub(crate) code: i32,
    /// Standard output.
    pub(crate) stdout: String,
    /// Standard error.
    pub(crate) stderr: String,
}

impl Output {
    /// Runs a command to its end.
    pub(crate) fn of(command: &mut Command) -> Self {
        let output = command.output().unwrap_or_else(|e| panic!("{command:?}: {e}"));
        Output {
            code: output.status.code().unwrap_or_else(|| 128 + output.status.signal().unwrap_or(0)),
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }

    /// The same, where it succeeded.
    #[track_caller]
    pub(crate) fn ok(self) -> Self {
        assert_eq!(self.code, 0, "{}{}", self.stdout, self.stderr);
        self
    }

    /// The same, where it was refused with a code and words that contain some text.
    #[track_caller]
    pub(crate) fn refused(self, code: i32, text: &str) -> Self {
        assert_eq!(self.code, code, "{}{}", self.stdout, self.stderr);
        assert!(self.stderr.starts_with("error: "), "{}", self.stderr);
        assert!(self.stderr.contains(text), "`{text}` is not in: {}", self.stderr);
        self
    }

    /// Standard output as JSON.
    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.stdout)
            .unwrap_or_else(|e| panic!("{e} in: {}{}", self.stdout, self.stderr))
    }
}
