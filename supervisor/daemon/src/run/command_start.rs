//! Records the start of a run's command on its board, and reports it to the owner loop.

use std::time::Duration;

use kernel::{Board, Clock, RunId, SystemClock, Timestamp};
use shim::rundir::{RunDir, StartedRecord};

use super::context::Context;
use super::key::TaskKey;
use super::report::Report;
use base::exit::Code;
use base::failpoint;
use service::BoardHandle;

/// Returns the start time of a run's command, by the present clock of the host.
fn begun_at(record: &StartedRecord, clock: &impl Clock) -> Timestamp {
    let ago = clock.boottime().saturating_sub(Duration::from_micros(record.started_at_us));
    clock.now().before(ago)
}

/// Start of a run's command, as its shim has recorded it.
#[derive(Clone, Debug)]
pub(super) struct CommandStart {
    record: StartedRecord,
    /// Report of the enforced sandbox.
    sandbox: serde_json::Value,
    is_of_this_boot: bool,
    /// True if this daemon launched the run and has not told the owner loop of its start.
    is_untold: bool,
}

/// Result of recording the start of a command on its board.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StartRecord {
    /// The board has it now.
    First,
    /// The board had it already.
    Known,
}

impl CommandStart {
    /// Reads the record of a run's shim; none if the command was not started, or the record cannot be read.
    pub(super) fn read(dir: &RunDir, boot_id: &str) -> Option<Self> {
        let record = dir.started().ok().flatten()?;
        let sandbox = serde_json::to_value(&record.report).unwrap_or_default();
        let is_of_this_boot = dir.pid().is_ok_and(|pid| pid.is_some_and(|pid| pid.boot_id == boot_id));
        Some(CommandStart { record, sandbox, is_of_this_boot, is_untold: false })
    }

    /// Marks the start as news for the owner loop, even if the board has it.
    pub(super) fn untold(self) -> Self {
        CommandStart { is_untold: true, ..self }
    }

    /// Records the start on the board of an open run.
    pub(super) fn record(&self, board: &mut Board<'_>, run: RunId) -> Result<StartRecord, kernel::Error> {
        let is_first = board.record_spawned(run, self.record.worker.pid, &self.sandbox)?;
        Ok(if is_first { StartRecord::First } else { StartRecord::Known })
    }

    /// Returns the report of the start for the owner loop.
    pub(super) fn report(self, recorded: StartRecord) -> Report {
        let is_news = (self.is_untold || recorded == StartRecord::First) && self.is_of_this_boot;
        let started_at = is_news.then(|| begun_at(&self.record, &SystemClock));
        Report::Started(Box::new(self.record), started_at)
    }
}

/// Records the start of a run's command, and shows it. The owner loop gets it as news once in the life of the run. Returns
/// true if the owner loop knows of the start now.
pub(crate) async fn tell_started(
    context: &Context,
    board: &BoardHandle,
    key: &TaskKey,
    run: RunId,
    dir: &RunDir,
) -> bool {
    let Some(start) = CommandStart::read(dir, &context.host.boot_id) else { return false };
    let (id, written) = (run, start.clone());
    let recorded = board.write(move |board| written.record(board, id)).await;
    match recorded {
        Ok(recorded) => {
            failpoint::pass("after-started");
            context.tell(key, start.report(recorded)).await;
            true
        }
        Err(error) if error.code == Code::Conflict => false,
        Err(error) => {
            tracing::warn!(task = %key, %error, "start_not_recorded");
            false
        }
    }
}

#[cfg(test)]
mod tests {
    use kernel::ManualClock;

    use super::*;

    #[test]
    fn a_command_began_when_its_shim_says_also_where_the_clock_was_set_since() {
        let clock = ManualClock::new(Timestamp::from_secs(1_000_000));
        let started_at_us = u64::try_from(clock.boottime().as_micros()).unwrap();
        let record = serde_json::json!({
            "version": 2, "pid": 7, "start_ticks": 9, "started_at_us": started_at_us,
            "report": { "policy": "strict", "landlock_abi": 7, "layers": [] },
        });
        let record: StartedRecord = serde_json::from_value(record).unwrap();
        clock.advance(Duration::from_secs(100));
        assert_eq!(begun_at(&record, &clock), Timestamp::from_secs(1_000_000));
        clock.set(Timestamp::from_secs(500_100));
        assert_eq!(begun_at(&record, &clock), Timestamp::from_secs(500_000));
    }
}
