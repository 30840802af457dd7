//! Display of a report: a table for each part, then a summary and suggested commands.

use super::report::{DemoReport, Expectation, NextCommand, Story};
use base::terminal::{Cell, Ink, Screen};
use kernel::Counted;

impl Story {
    fn heading(self) -> &'static str {
        match self {
            Story::Pipeline => "Pipeline: three workers read a repository, one merges, one commits a report",
            Story::Fleet => "Fleet: fifty tenants at once, each in its own directory",
            Story::Theft => "Theft: what one of them tried, and the kernel refused",
            Story::Afterwards => "Afterwards",
        }
    }
}

impl DemoReport {
    pub(super) fn show(&self, screen: &mut Screen) {
        if let Some(signal) = &self.interrupted {
            self.show_interrupted(signal, screen);
            return;
        }
        for part in [Story::Pipeline, Story::Fleet, Story::Theft, Story::Afterwards] {
            self.show_story(part, screen);
        }
        screen.heading("In short");
        let left = match self.survivors {
            0 => "none".to_owned(),
            n => format!("{n} LEFT"),
        };
        let times: Vec<String> =
            self.times.iter().map(|took| format!("{} {:.1} s", took.part, took.seconds)).collect();
        for (name, value) in [
            ("survivors", format!("{left} ({} checked)", Counted(self.processes_checked, "process"))),
            ("times", times.join(", ")),
            ("workers", self.users.clone()),
            ("sandbox", self.sandbox.clone()),
        ] {
            if !value.is_empty() {
                let name = screen.paint(Ink::Dim, &format!("{name:<11}"));
                screen.hanging(&name, &value);
            }
        }
        if !self.further.is_empty() {
            screen.heading("How to look further");
            for NextCommand { command, why } in &self.further {
                let why = screen.paint(Ink::Dim, &format!("  # {why}"));
                screen.line(format!("{command}{why}"));
            }
        }
        let failed = self.checks.iter().filter(|check| check.failed()).count();
        let skipped = self.checks.iter().filter(|check| check.skipped).count();
        let counted = self.checks.len() - skipped;
        let end = match failed {
            0 => screen.paint(Ink::Green, &format!("All {counted} expectations were met.")),
            n => screen.paint(Ink::Red, &format!("{n} of {counted} expectations FAILED.")),
        };
        let end = match skipped {
            0 => end,
            n => format!("{end} This host cannot show {n} more."),
        };
        screen.line(format!("\n{end}"));
    }

    fn show_interrupted(&self, signal: &str, screen: &mut Screen) {
        let clean =
            self.checks.iter().filter(|check| check.part == Story::Afterwards).all(|check| !check.failed());
        if clean {
            screen.line(format!("Ended by {signal}: nothing that the demo started is left."));
            if let Some(root) = &self.root {
                screen.line(format!("Its root is kept: {}", root.display()));
            }
        } else {
            screen.line(format!("Ended by {signal}, but something is left:"));
            self.show_story(Story::Afterwards, screen);
        }
    }

    fn show_story(&self, part: Story, screen: &mut Screen) {
        let checks: Vec<&Expectation> = self.checks.iter().filter(|check| check.part == part).collect();
        if checks.is_empty() {
            return;
        }
        screen.heading(part.heading());
        let mark = |check: &Expectation| match (check.ok, check.skipped) {
            (true, _) => Cell::inked(Ink::Green, "ok"),
            (false, true) => Cell::inked(Ink::Yellow, "skipped"),
            (false, false) => Cell::inked(Ink::Red, "FAILED"),
        };
        if part == Story::Theft {
            let rows: Vec<[Cell; 5]> = checks
                .iter()
                .zip(&self.denials)
                .map(|(check, denial)| {
                    // Paths are shown relative to the demo's directory, which the first line names.
                    let path = denial.path.strip_prefix(&self.base).unwrap_or(&denial.path);
                    let why = format!("{}: {}", denial.why, path.display());
                    let what = denial.what.to_owned();
                    [
                        mark(check),
                        what.into(),
                        denial.outside.clone().into(),
                        denial.inside.clone().into(),
                        why.into(),
                    ]
                })
                .collect();
            screen.table(["", "IT TRIED TO READ", "OUTSIDE", "INSIDE", "WHY, PATH"], rows);
            return;
        }
        let rows: Vec<[Cell; 3]> = checks
            .iter()
            .map(|check| {
                let seen = check.seen.replace('\n', "; ");
                let seen = if check.ok {
                    seen
                } else {
                    format!("{seen} (expected: {})", check.expected.replace('\n', "; "))
                };
                [mark(check), check.name.clone().into(), seen.into()]
            })
            .collect();
        screen.table(["", "EXPECTATION", "EVIDENCE"], rows);
    }
}
