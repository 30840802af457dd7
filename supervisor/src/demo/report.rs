//! What a demo comes to: named checks with what was expected and what was seen, and the evidence beside them.

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Serialize;

use super::place;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Story {
    Pipeline,
    Fleet,
    /// What one of the fleet tried.
    Theft,
    /// What is left of all this.
    Afterwards,
}

/// The clone that the demo works in.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Clone {
    pub(super) path: PathBuf,
    /// The repository it was made from; none where it is a sample.
    pub(super) source: Option<PathBuf>,
    /// The commit it stands at.
    pub(super) commit: String,
    /// How many files that commit holds.
    pub(super) files: usize,
}

/// A command to go on with.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Further {
    pub(super) command: String,
    /// What it is good for.
    pub(super) why: &'static str,
}

#[derive(Clone, Debug, Serialize)]
pub(super) struct Check {
    /// The part of the demo that it belongs to.
    pub(super) part: Story,
    pub(super) name: String,
    pub(super) expected: String,
    pub(super) seen: String,
    pub(super) ok: bool,
    /// Whether this host cannot show it; then it counts neither way.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(super) skipped: bool,
}

/// Something that was tried and must be refused.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Denial {
    pub(super) what: &'static str,
    pub(super) path: PathBuf,
    /// The outcome outside the sandbox.
    pub(super) outside: String,
    pub(super) inside: String,
    /// Why, in a few words.
    pub(super) why: &'static str,
}

#[derive(Clone, Debug, Serialize)]
pub(super) struct Took {
    pub(super) part: &'static str,
    pub(super) seconds: f64,
}

/// Everything that a demo found out.
#[derive(Clone, Debug, Default, Serialize)]
pub(super) struct Report {
    /// Whether every expectation was met.
    pub(super) ok: bool,
    /// The root, kept or not.
    #[serde(skip)]
    pub(super) base: PathBuf,
    /// Why it ended early, where it did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) interrupted: Option<String>,
    /// Whose workers they were.
    pub(super) users: String,
    /// The clone that was worked on.
    pub(super) repository: Option<Clone>,
    /// What the sandbox enforced, in a line.
    pub(super) sandbox: String,
    pub(super) checks: Vec<Check>,
    pub(super) denials: Vec<Denial>,
    /// How many processes were looked at in the search for survivors.
    pub(super) processes_checked: usize,
    pub(super) survivors: usize,
    pub(super) times: Vec<Took>,
    /// The root, where it was kept.
    pub(super) root: Option<PathBuf>,
    pub(super) further: Vec<Further>,
}

impl Check {
    /// Whether it should have come true and did not.
    pub(super) fn failed(&self) -> bool {
        !self.ok && !self.skipped
    }
}

impl Report {
    /// Adds an expectation and whether it was met.
    pub(super) fn check(
        &mut self,
        part: Story,
        name: impl Into<String>,
        expected: impl Into<String>,
        seen: impl Into<String>,
        verdict: Verdict,
    ) {
        let (name, expected, seen) = (name.into(), expected.into(), seen.into());
        let (ok, skipped) = (verdict == Verdict::Ok, verdict == Verdict::Skipped);
        self.checks.push(Check { part, name, expected, seen, ok, skipped });
    }

    /// Adds an expectation that is met if what was seen equals what was expected.
    pub(super) fn equal(
        &mut self,
        part: Story,
        name: impl Into<String>,
        expected: impl Into<String>,
        seen: impl Into<String>,
    ) {
        let (expected, seen) = (expected.into(), seen.into());
        let verdict = Verdict::of(expected == seen);
        self.check(part, name, expected, seen, verdict);
    }

    /// Adds the expectation that nothing in a tree belongs to root.
    pub(super) fn not_of_root(&mut self, part: Story, name: &str, tree: &Path) {
        let (seen, verdict) = match place::of_root(tree) {
            Ok((all, roots)) => (format!("{roots} of {all} entries are root's"), Verdict::of(roots == 0)),
            Err(e) => (e.to_string(), Verdict::Failed),
        };
        self.check(part, name, "no entry is root's", seen, verdict);
    }

    /// Adds the time of a part.
    pub(super) fn took(&mut self, part: &'static str, time: Duration) {
        self.times.push(Took { part, seconds: (time.as_secs_f64() * 100.0).round() / 100.0 });
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    Ok,
    Failed,
    /// This host cannot show it.
    Skipped,
}

impl Verdict {
    /// The verdict that a condition stands for.
    pub(super) fn of(condition: bool) -> Self {
        if condition { Verdict::Ok } else { Verdict::Failed }
    }
}
