//! Results of a demo: named checks with expectation and evidence, and further facts.

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Serialize;

use super::directory;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Story {
    Pipeline,
    Fleet,
    /// Attempts of the thief.
    Theft,
    /// State after all stories.
    Afterwards,
}

/// Clone in which the demo works.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Clone {
    pub(super) path: PathBuf,
    /// Repository that was cloned; none for a sample.
    pub(super) source: Option<PathBuf>,
    /// Commit id of its HEAD.
    pub(super) commit: String,
    /// Number of files in that commit.
    pub(super) files: usize,
}

/// Command that the reader of the report may try next.
#[derive(Clone, Debug, Serialize)]
pub(super) struct NextCommand {
    pub(super) command: String,
    /// Purpose of the command.
    pub(super) why: &'static str,
}

#[derive(Clone, Debug, Serialize)]
pub(super) struct Expectation {
    /// Story, or the end of the demo.
    pub(super) part: Story,
    pub(super) name: String,
    pub(super) expected: String,
    pub(super) seen: String,
    pub(super) ok: bool,
    /// True if this host cannot show it; then it counts neither way.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(super) skipped: bool,
}

/// An attempt that must be refused.
#[derive(Clone, Debug, Serialize)]
pub(super) struct RefusedAttempt {
    pub(super) what: &'static str,
    pub(super) path: PathBuf,
    /// Result outside of the sandbox.
    pub(super) outside: String,
    pub(super) inside: String,
    /// Reason in a few words.
    pub(super) why: &'static str,
}

#[derive(Clone, Debug, Serialize)]
pub(super) struct StoryTime {
    pub(super) part: &'static str,
    pub(super) seconds: f64,
}

/// All results of a demo.
#[derive(Clone, Debug, Default, Serialize)]
pub(super) struct DemoReport {
    /// True if every expectation was met.
    pub(super) ok: bool,
    /// Directory of the demo, kept or not.
    #[serde(skip)]
    pub(super) base: PathBuf,
    /// Signal that ended it early, if any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) interrupted: Option<String>,
    /// Description of the workers' users.
    pub(super) users: String,
    /// Clone that the workers used.
    pub(super) repository: Option<Clone>,
    /// Enforced layers of the sandbox, as one line.
    pub(super) sandbox: String,
    pub(super) checks: Vec<Expectation>,
    pub(super) denials: Vec<RefusedAttempt>,
    /// Number of processes examined for survivors.
    pub(super) processes_checked: usize,
    pub(super) survivors: usize,
    pub(super) times: Vec<StoryTime>,
    /// Path of the root, if it was kept.
    pub(super) root: Option<PathBuf>,
    pub(super) further: Vec<NextCommand>,
}

impl Expectation {
    /// Returns true if the expectation was not met and this host could show it.
    pub(super) fn failed(&self) -> bool {
        !self.ok && !self.skipped
    }
}

impl DemoReport {
    /// Adds an expectation with its result.
    pub(super) fn check(
        &mut self,
        part: Story,
        name: impl Into<String>,
        expected: impl Into<String>,
        seen: impl Into<String>,
        verdict: impl Into<ExpectationResult>,
    ) {
        let (name, expected, seen) = (name.into(), expected.into(), seen.into());
        let verdict = verdict.into();
        let (ok, skipped) = (verdict == ExpectationResult::Ok, verdict == ExpectationResult::Skipped);
        self.checks.push(Expectation { part, name, expected, seen, ok, skipped });
    }

    /// Adds an expectation that is met if both texts are equal.
    pub(super) fn equal(
        &mut self,
        part: Story,
        name: impl Into<String>,
        expected: impl Into<String>,
        seen: impl Into<String>,
    ) {
        let (expected, seen) = (expected.into(), seen.into());
        let ok = expected == seen;
        self.check(part, name, expected, seen, ok);
    }

    /// Adds the expectation that root owns no entry of a tree.
    pub(super) fn not_of_root(&mut self, part: Story, name: &str, tree: &Path) {
        let (seen, verdict) = match directory::of_root(tree) {
            Ok((all, roots)) => (format!("{roots} of {all} entries are root's"), (roots == 0).into()),
            Err(e) => (e.to_string(), ExpectationResult::Failed),
        };
        self.check(part, name, "no entry is root's", seen, verdict);
    }

    /// Adds the time of a part.
    pub(super) fn took(&mut self, part: &'static str, time: Duration) {
        self.times.push(StoryTime { part, seconds: (time.as_secs_f64() * 100.0).round() / 100.0 });
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ExpectationResult {
    Ok,
    Failed,
    /// This host cannot show it.
    Skipped,
}

impl From<bool> for ExpectationResult {
    fn from(condition: bool) -> Self {
        if condition { ExpectationResult::Ok } else { ExpectationResult::Failed }
    }
}
