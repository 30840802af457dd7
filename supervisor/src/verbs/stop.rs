//! `stop`: ends the daemon, and says what becomes of its workers.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::api::{Audience, Call, Effect, Verb};
use crate::daemon::{Event, StopMode};
use crate::exit::Code;
use crate::failure::Failure;
use crate::terminal::Screen;

/// Stop the daemon
#[derive(Clone, Debug, Default, clap::Args, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[command(after_help = "\
Without a flag it drains: nothing more is started, workers are waited for up to
worker.drain, and then ended.

Examples:
  supervisor stop --wait
  supervisor stop --leave     (an upgrade: workers go on, the next daemon has them)
  supervisor stop --kill")]
pub(crate) struct Stop {
    /// End workers now, with TERM, grace and KILL; their tasks go back to ready
    #[arg(long, group = "mode")]
    pub(crate) now: bool,
    /// Leave workers running; the next daemon takes them over
    #[arg(long, group = "mode")]
    pub(crate) leave: bool,
    /// Kill workers at once; their tasks go back to ready
    #[arg(long, group = "mode")]
    pub(crate) kill: bool,
}

/// What the daemon was told.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Stopping {
    /// The daemon's pid.
    pub(crate) pid: u32,
    /// How it stops.
    pub(crate) mode: StopMode,
}

impl Verb for Stop {
    const NAME: &'static str = "stop";
    const AUDIENCE: Audience = Audience::Operator;
    const EFFECT: Effect = Effect::Daemon;
    type Reply = Stopping;

    async fn run(self, call: Call) -> Result<Stopping, Failure> {
        let mode = match (self.now, self.leave, self.kill) {
            (_, _, true) => StopMode::Kill,
            (_, true, _) => StopMode::Leave,
            (true, _, _) => StopMode::Preempt,
            (false, false, false) => StopMode::Drain,
        };
        let gone = || Failure::new(Code::TryAgain, "the daemon is stopping already");
        let events = call.service.daemon().ok_or_else(gone)?;
        events.send(Event::Stop(mode)).map_err(|_| gone())?;
        Ok(Stopping { pid: std::process::id(), mode })
    }

    fn show(reply: &Stopping, screen: &mut Screen) {
        let how = match reply.mode {
            StopMode::Leave => "leaves its workers to the next one",
            StopMode::Drain => "starts no more workers, and ends when the last one has",
            StopMode::Preempt => "ends its workers and itself",
            StopMode::Kill => "kills its workers and ends",
        };
        screen.line(format!("The daemon (pid {}) {how}.", reply.pid));
    }
}
