//! Text form of findings: severity, subject, details, age and remedies.

use kernel::{Finding, FindingCode, Severity};
use unicode_width::UnicodeWidthStr as _;

use crate::cli_context;
use crate::failure::Failure;
use crate::terminal::{Ink, Screen, printable, printable_lines, without_styles};
use crate::time::timestamp;

/// Width of the column of severities.
const SEVERITY: usize = 8;

/// Returns the colour of a severity.
pub fn ink(severity: Severity) -> Ink {
    match severity {
        Severity::Ok => Ink::Green,
        Severity::Warning => Ink::Yellow,
        Severity::Error | Severity::Critical => Ink::Red,
    }
}

/// Makes the finding of an examination that failed.
pub fn failed(code: FindingCode, failure: Failure) -> Finding {
    let finding = Finding::error(code, failure.message);
    match failure.hint {
        Some(hint) => finding.advice(hint),
        None => finding,
    }
}

impl Screen {
    /// Adds findings, each after its severity.
    pub fn findings(&mut self, findings: &[Finding]) {
        for finding in findings {
            let word = finding.severity.as_str();
            let gap = " ".repeat(SEVERITY.saturating_sub(word.len()).max(1));
            let label = format!("{}{gap}", self.paint(ink(finding.severity), word));
            self.finding(&label, &finding.line(), finding);
        }
    }

    /// Adds a label and a head, and below them the details, the age and the suggested remedies of a finding.
    pub fn finding(&mut self, label: &str, head: &str, finding: &Finding) {
        let indent = " ".repeat(without_styles(label).width());
        self.hanging(label, &printable(head));
        if !finding.detail.is_empty() {
            self.hanging(&indent, &printable(&finding.detail));
        }
        if let Some(seen) = &finding.seen {
            let [first, last] = [seen.first_seen_at, seen.last_seen_at].map(timestamp::local);
            self.line(format!("{indent}since {first}, last {last}"));
        }
        for remedy in finding.remedies.iter().filter(|remedy| remedy.suggested) {
            let text = printable_lines(&remedy.to_string());
            // Commands and the contents of files are not wrapped, so that they can be copied.
            if remedy.payload.command.is_some() {
                self.line(format!("{indent}{}", cli_context::repeated(&text)));
                continue;
            }
            let mut lines = text.lines();
            self.hanging(&indent, lines.next().unwrap_or_default());
            for line in lines {
                self.line(format!("{indent}{line}"));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use kernel::Remedy;

    use super::*;

    #[test]
    fn a_finding_has_its_details_and_its_suggested_remedies_below_it() {
        let mut screen = Screen::plain(80);
        let retry = Remedy::command("see what fails", "notify test ops").suggested();
        screen.findings(&[
            Finding::ok(FindingCode::Root, "/srv can be served"),
            Finding::error(FindingCode::Channel, "it takes no messages")
                .named("ops")
                .detail("no route to host")
                .remedy(retry)
                .remedy(Remedy::command("drop them", "notify drop")),
            Finding::warning(FindingCode::Program, "`wren` is missing").advice("you have it:\nmkdir -p /a"),
        ]);
        insta::assert_snapshot!(screen.into_text(), @r"
        ok      root: /srv can be served
        error   channel ops: it takes no messages
                no route to host
                see what fails: supervisor notify test ops
        warning program: `wren` is missing
                you have it:
                mkdir -p /a
        ");
    }
}
