//! `doctor`: checks the root, its boards and this host, and reports defects.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use api::command::Command;
use api::{Call, Verb, blocking, verb};
use base::exit::Code;
use base::failure::Failure;
use base::terminal::Screen;
use upkeep::diagnosis;
use upkeep::doctor::{self, DoctorReport, Examination};

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
        let asked = Examination { replay: self.replay, repair: false };
        let problems = call.service.daemon().is_some().then(|| diagnosis::collect(&call, Vec::new(), None));
        blocking("the examination did not finish", move || {
            doctor::examine(call.service.root(), asked, problems.as_deref())
        })
        .await?
    }
}

impl Command for Doctor {
    fn show(reply: &DoctorReport, screen: &mut Screen) {
        screen.findings(&reply.checks);
    }

    fn verdict(reply: &DoctorReport) -> u8 {
        code(reply)
    }
}

/// The exit code of the checks.
pub(crate) fn code(report: &DoctorReport) -> u8 {
    if report.ok { 0 } else { Code::Failed.exit() }
}
