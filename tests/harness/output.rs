//! Output and exit code of a command.

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

    /// The same, where it was refused with a code, words that contain some text, and a hint.
    #[track_caller]
    pub(crate) fn refused(self, code: i32, text: &str) -> Self {
        assert_eq!(self.code, code, "{}{}", self.stdout, self.stderr);
        assert!(self.stderr.starts_with("error: "), "{}", self.stderr);
        assert!(self.stderr.contains(text), "`{text}` is not in: {}", self.stderr);
        assert!(self.stderr.contains("\nhint: "), "no hint in: {}", self.stderr);
        self
    }

    /// Standard output as JSON.
    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.stdout)
            .unwrap_or_else(|e| panic!("{e} in: {}{}", self.stdout, self.stderr))
    }
}

/// Lets snapshots of this test see one word for each id, moment, directory and run time, as long as it is in scope.
pub(crate) fn tidy() -> insta::internals::SettingsBindDropGuard {
    let mut settings = insta::Settings::clone_current();
    settings.add_filter(r"t_[0-9a-f]{8}", "t_[id]");
    settings.add_filter(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d \+00:00", "[time]");
    settings.add_filter(r"\d\d:\d\d:\d\d", "[clock]");
    settings.add_filter(r"/tmp/sv\w{5}", "[dir]");
    settings.add_filter(r"\d+(\.\d+)?m?s(, \[time\]|\.\n)", "[took]$2");
    settings.add_filter(r"by \S+\n", "by [user]\n");
    settings.add_filter(r"\S+ \(person\)", "[user] (person)");
    settings.bind_to_scope()
}
