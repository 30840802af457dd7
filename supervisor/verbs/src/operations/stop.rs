//! `stop`: ends the daemon, and reports what happens to its workers.

use kernel::Clock as _;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use api::command::Command;
use api::{Call, Verb, verb};
use base::exit::Code;
use base::failure::Failure;
use base::terminal::{Screen, printable};
use daemon::{Event, OwnerLink, StopMode, StopPlan};

/// Stop the daemon
#[derive(Clone, Debug, Default, clap::Args, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[command(after_help = "\
Without a flag the daemon drains: no task is started, and workers get up to
worker.drain to finish before they are ended. --leave works at any time, even during
a drain. Exit code: 1 if runs may have left processes that were not found; where the
board cannot be read, --wait reports that and succeeds.

Examples:
  supervisor stop --wait
  supervisor stop --leave   (an upgrade: the next daemon takes the workers over)
  supervisor stop --kill")]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of the command line")]
pub struct Stop {
    /// End workers now: SIGTERM, then SIGKILL after worker.grace; their tasks are ready again
    #[arg(long, group = "mode")]
    pub now: bool,
    /// Leave workers running; the next daemon takes them over
    #[arg(long, group = "mode")]
    pub leave: bool,
    /// Kill workers at once; their tasks are ready again
    #[arg(long, group = "mode")]
    pub kill: bool,
    /// Return when the daemon has exited
    #[arg(long)]
    #[serde(skip)]
    pub wait: bool,
}

impl Verb for Stop {
    verb! {
        "stop": Operator, Daemon,
        on(None),
        // A page of the dashboard could stop the daemon, but not start it again.
        no_sessions
        => StopPlan
    }

    async fn run(self, call: Call) -> Result<StopPlan, Failure> {
        let mode = match (self.now, self.leave, self.kill) {
            (_, _, true) => StopMode::Kill,
            (_, true, _) => StopMode::Leave,
            (true, _, _) => StopMode::Preempt,
            (false, false, false) => StopMode::Drain,
        };
        let gone = || Failure::new(Code::TryAgain, "the daemon is already stopping");
        let daemon = OwnerLink::from_service(&call.service).ok_or_else(gone)?;
        let plan: StopPlan = daemon.ask(|reply| Event::Stop(mode, reply)).await.map_err(|_| gone())?;
        let mut unserved: Vec<_> = call.service.refusals().into_keys().collect();
        unserved.retain(|board| call.service.root().has_runs_of(board));
        Ok(StopPlan { unserved, ..plan })
    }
}

impl Command for Stop {
    fn show(reply: &StopPlan, screen: &mut Screen) {
        for line in reply.lines(kernel::SystemClock.now()) {
            screen.line(printable(&line));
        }
    }

    fn verdict(reply: &StopPlan) -> u8 {
        // Workers that the caller asked to leave are no failure.
        if reply.left.is_empty() || reply.mode == StopMode::Leave { 0 } else { Code::Failed.exit() }
    }
}
