//! `doctor`: checks the root, its boards and this host, and reports defects.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::status;
use api::command::Command;
use api::{Call, Verb, blocking, verb};
use base::exit::Code;
use base::failure::Failure;
use base::terminal::{Ink, Screen, printable};
use upkeep::doctor::{self, CheckResult, DoctorReport, Examination};

/// Check the root, its boards and what this host can enforce
#[derive(Clone, Debug, Default, clap::Args, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[command(after_help = "\
Exit code: 0 if nothing is wrong (warnings aside), else 1.

--repair needs the daemon stopped. It rebuilds the indices and, if that is not
enough, copies every readable row into a new file. The damaged file is always kept
beside the board.

Examples:
  supervisor doctor
  supervisor doctor --replay --json
  supervisor stop --wait && supervisor doctor --repair")]
pub struct Doctor {
    /// Replay each board's event log and compare the result with the board
    #[arg(long)]
    pub replay: bool,
    /// Repair damaged boards
    #[arg(long)]
    #[serde(skip)]
    pub repair: bool,
}

impl Verb for Doctor {
    verb! { "doctor": Operator, Read, on(None) => DoctorReport }

    async fn run(self, call: Call) -> Result<DoctorReport, Failure> {
        let troubles = status::troubles(&call);
        let asked = Examination { replay: self.replay, repair: false };
        let unheard = call.service.daemon().is_some().then(|| call.service.unreachable());
        blocking("the examination did not finish", move || {
            doctor::examine(call.service.root(), asked, troubles, unheard.as_ref())
        })
        .await?
    }
}

impl Command for Doctor {
    fn show(reply: &DoctorReport, screen: &mut Screen) {
        show(reply, screen);
    }

    fn verdict(reply: &DoctorReport) -> u8 {
        code(reply)
    }
}

/// The exit code of the checks.
pub(crate) fn code(report: &DoctorReport) -> u8 {
    if report.ok { 0 } else { Code::Failed.exit() }
}

/// Shows the checks, one by one.
pub(crate) fn show(report: &DoctorReport, screen: &mut Screen) {
    for check in &report.checks {
        let (ink, word) = match check.verdict {
            CheckResult::Ok => (Ink::Green, "ok"),
            CheckResult::Warning => (Ink::Yellow, "warning"),
            CheckResult::Error => (Ink::Red, "error"),
        };
        let label = screen.paint(ink, word);
        let gap = " ".repeat(8 - word.len());
        screen.hanging(&format!("{label}{gap}{}: ", check.subject), &printable(&check.detail));
        if let Some(hint) = &check.hint {
            // The lines after the first are commands and file contents. They are not wrapped here, so that they can be
            // copied.
            let mut lines = hint.lines();
            screen.hanging("        ", &printable(lines.next().unwrap_or_default()));
            for line in lines {
                screen.line(format!("        {}", printable(line)));
            }
        }
    }
}
