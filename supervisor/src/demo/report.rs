//! What a demo comes to: named checks with what was expected and what was seen, and the evidence beside them.

use std::path::PathBuf;
use std::time::Duration;

use serde::Serialize;

use super::repository::Clone;
use crate::terminal::{Ink, Screen};

/// One expectation.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Check {
    /// The part of the demo that it belongs to.
    pub(super) part: &'static str,
    /// What was to come true.
    pub(super) name: String,
    /// What was expected.
    pub(super) expected: String,
    /// What was seen.
    pub(super) seen: String,
    /// Whether it came true.
    pub(super) ok: bool,
}

/// Something that was tried and must be refused.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Denial {
    /// What was tried.
    pub(super) what: &'static str,
    /// The path that was opened.
    pub(super) path: PathBuf,
    /// What came of it outside the sandbox.
    pub(super) outside: String,
    /// What came of it inside.
    pub(super) inside: String,
    /// Why, in a few words.
    pub(super) why: &'static str,
}

/// How long a part took.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Took {
    /// The part.
    pub(super) part: &'static str,
    /// The time, in seconds.
    pub(super) seconds: f64,
}

/// Everything that a demo found out.
#[derive(Clone, Debug, Default, Serialize)]
pub(super) struct Report {
    /// Whether all of it came true.
    pub(super) ok: bool,
    /// Why it ended early, where it did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) interrupted: Option<String>,
    /// Whose workers they were.
    pub(super) users: String,
    /// The clone that was worked on.
    pub(super) repository: Option<Clone>,
    /// What the sandbox enforced, in a line.
    pub(super) sandbox: String,
    /// The checks.
    pub(super) checks: Vec<Check>,
    /// What the kernel refused.
    pub(super) denials: Vec<Denial>,
    /// How many processes were looked at in the search for survivors.
    pub(super) processes_checked: usize,
    /// How many were left.
    pub(super) survivors: usize,
    /// How long each part took.
    pub(super) times: Vec<Took>,
    /// The root, where it was kept.
    pub(super) root: Option<PathBuf>,
    /// Commands that show more.
    pub(super) further: Vec<String>,
}

impl Report {
    /// Adds an expectation and whether it came true.
    pub(super) fn check(
        &mut self,
        part: &'static str,
        name: impl Into<String>,
        expected: impl Into<String>,
        seen: impl Into<String>,
        verdict: Verdict,
    ) {
        let (name, expected, seen) = (name.into(), expected.into(), seen.into());
        self.checks.push(Check { part, name, expected, seen, ok: verdict == Verdict::Ok });
    }

    /// Adds an expectation that came true if what was seen is what was expected.
    pub(super) fn equal(
        &mut self,
        part: &'static str,
        name: impl Into<String>,
        expected: impl Into<String>,
        seen: impl Into<String>,
    ) {
        let (expected, seen) = (expected.into(), seen.into());
        let verdict = Verdict::of(expected == seen);
        self.check(part, name, expected, seen, verdict);
    }

    /// Adds the time of a part.
    pub(super) fn took(&mut self, part: &'static str, time: Duration) {
        self.times.push(Took { part, seconds: (time.as_secs_f64() * 100.0).round() / 100.0 });
    }

    /// Shows it to a person.
    pub(super) fn show(&self, screen: &mut Screen) {
        screen.heading("What happened");
        let rows: Vec<[String; 4]> = self
            .checks
            .iter()
            .map(|check| {
                let (mark, seen) = if check.ok {
                    (screen.paint(Ink::Green, "ok"), check.seen.clone())
                } else {
                    let seen = format!("expected {}, saw {}", check.expected, check.seen);
                    (screen.paint(Ink::Red, "FAILED"), seen)
                };
                [mark, check.part.to_owned(), check.name.clone(), seen.replace('\n', "; ")]
            })
            .collect();
        screen.table(["", "PART", "EXPECTATION", "EVIDENCE"], rows);
        if !self.denials.is_empty() {
            screen.heading("Refused by the kernel");
            let rows: Vec<[String; 3]> = self
                .denials
                .iter()
                .map(|denial| {
                    let inside = match denial.inside.as_str() {
                        "read" => screen.paint(Ink::Red, "read"),
                        errno => screen.paint(Ink::Green, &format!("{errno}: {}", denial.why)),
                    };
                    let what = format!("{}: {}", denial.what, denial.path.display());
                    [what, denial.outside.clone(), inside]
                })
                .collect();
            screen.table(["A WORKER TRIED TO READ", "WITHOUT SANDBOX", "INSIDE"], rows);
        }
        screen.heading("In short");
        let left = match self.survivors {
            0 => "none".to_owned(),
            n => screen.paint(Ink::Red, &n.to_string()),
        };
        let times: Vec<String> =
            self.times.iter().map(|took| format!("{} {:.1} s", took.part, took.seconds)).collect();
        for (name, value) in [
            ("survivors", format!("{left} ({} processes checked)", self.processes_checked)),
            ("times", times.join(", ")),
            ("workers", self.users.clone()),
            ("sandbox", self.sandbox.clone()),
        ] {
            if value.is_empty() {
                continue;
            }
            let name = screen.paint(Ink::Dim, &format!("{name:<10}"));
            screen.line(format!("  {name} {value}"));
        }
        if !self.further.is_empty() {
            screen.heading("How to look further");
            for command in &self.further {
                screen.line(format!("  {command}"));
            }
        }
        let failed = self.checks.iter().filter(|check| !check.ok).count();
        screen.line("");
        let end = match failed {
            0 => screen.paint(Ink::Green, &format!("All {} expectations came true.", self.checks.len())),
            n => screen.paint(Ink::Red, &format!("{n} of {} expectations FAILED.", self.checks.len())),
        };
        screen.line(end);
    }
}

/// Whether an expectation came true.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// It did.
    Ok,
    /// It did not.
    Failed,
}

impl Verdict {
    /// The verdict that a condition stands for.
    pub(super) fn of(condition: bool) -> Self {
        if condition { Verdict::Ok } else { Verdict::Failed }
    }
}
