//! Watches the shim of a run that is not a child of the daemon, and reports the start of its command.

use std::sync::Arc;
use std::time::Duration;

use kernel::{Board, Clock, Run, RunId, SystemClock, Timestamp};
use shim::rundir::{LockState, RunDir, StartedRecord, StopRequest};

use super::context::{Context, RETRY};
use super::key::TaskKey;
use super::listen;
use super::live::{Phase, ShimHandle};
use super::messages::WatchedRun;
use super::report::Report;
use super::stopping::stop;
use super::unkillable::tell_unkillable;
use base::exit::Code;
use base::failpoint;
use host::watch::Watched;
use service::BoardHandle;

/// First pause between two looks for a shim that holds its lock without a pid record.
const LOOK: Duration = Duration::from_millis(5);

/// Watches the shim of a run that is not a child, as long as the run's lock is held. `ending` asks the shim to end the
/// run.
pub(crate) async fn watch_to_end(
    context: &Context,
    board: &BoardHandle,
    key: &TaskKey,
    run: &Run,
    ending: Option<&StopRequest>,
) {
    let path = context.host.root.run_dir(board.name(), run.id);
    let mut pause = LOOK;
    while let Ok(dir) = RunDir::open(&path)
        && matches!(dir.lock_state(), Ok(LockState::Held))
    {
        // The shim takes its lock before it writes its pid record, both within its first milliseconds.
        match find_shim(&dir, &context.host.boot_id) {
            Ok(Some(watched)) => {
                let watched = Arc::new(watched);
                let shim = handle(&dir, &watched);
                context.tell(key, Report::Launched(shim.clone())).await;
                if let Some(request) = ending {
                    stop(context, key.clone(), &shim, request);
                }
                tell_started(context, board, key, run.id, &dir).await;
                tell_unkillable(context, board, key, run, &dir).await;
                let live = WatchedRun { key, run: run.id, dir: &dir, watched: &watched, followed: None };
                let ended = listen::until_ended(context, board, live);
                if let Err(error) = ended.await {
                    tracing::error!(task = %key, %error, "watch_failed");
                }
                return;
            }
            Ok(None) => {}
            Err(error) => tracing::warn!(task = %key, %error, "watch_failed"),
        }
        if pause == RETRY {
            let why = "the run's lock is taken, and its shim cannot be watched".to_owned();
            context.tell(key, Report::Delayed(Phase::Settling, why)).await;
        }
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(RETRY);
    }
}

/// Opens the shim that holds the lock of a run directory. None if it has no pid record yet, or has just ended.
///
/// The lock was seen held, so the record names a live process, unless that has ended in between. Then the pid may have
/// been reused, so the identity is compared after opening it.
pub(super) fn find_shim(dir: &RunDir, boot_id: &str) -> std::io::Result<Option<Watched>> {
    let Some(record) = dir.pid().map_err(std::io::Error::other)? else { return Ok(None) };
    if record.boot_id != boot_id {
        return Ok(None);
    }
    let watched = match Watched::open(record.shim.pid) {
        Ok(watched) => watched,
        Err(e) if e.raw_os_error() == Some(nix::errno::Errno::ESRCH as i32) => return Ok(None),
        Err(e) => return Err(e),
    };
    Ok(watched.is(&record.shim)?.then_some(watched))
}

fn handle(dir: &RunDir, watched: &Arc<Watched>) -> ShimHandle {
    let spec = dir.spec().ok();
    ShimHandle {
        dir: dir.clone(),
        process: Arc::clone(watched),
        deadline_us: spec.as_ref().and_then(|spec| spec.deadline_us),
        cgroup: spec.as_ref().and_then(|spec| spec.cgroup.clone()),
        workspace_path: spec.map(|spec| spec.cwd),
    }
}

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
