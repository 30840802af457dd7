//! The end of a run: proof that nothing of it is left, and what the board is told. Nothing else frees a claim.

use std::path::Path;
use std::time::Duration;

use kernel::{EndCause, Ending, Fault, OnCleanExit};

use super::cgroup;
use super::launch::Note;
use crate::lanes::CleanExit;
use crate::rundir::{Cause, ExitRecord, LockState, RunDir, StopReason};

/// What a run directory says once nobody holds its lock.
#[derive(Debug)]
pub(super) enum Proof {
    /// The run is over, and this is how it ended.
    Ended(Box<Ending>),
    /// The shim is gone without a record, and whether its processes are cannot be known here.
    Unknown(String),
    /// The lock is held: the run lives.
    Alive,
}

/// Reads the proof of a run's end, and ends what a killed shim has left behind. Blocking.
///
/// `boot_id` is this boot's. The table is that of DESIGN section 5.
pub(super) fn prove(path: &Path, boot_id: &str) -> Result<Proof, String> {
    let text = |e: &dyn std::error::Error| crate::lanes::with_causes(e);
    let Ok(dir) = RunDir::open(path) else { return Ok(ended(Ending::new(EndCause::NeverStarted))) };
    let guard = match dir.lock_state().map_err(|e| text(&e))? {
        LockState::Held => return Ok(Proof::Alive),
        LockState::Free(guard) => guard,
    };
    let note = Note::read(path);
    if let Some(record) = dir.exit() {
        return Ok(ended(from_record(&record, note.as_ref())));
    }
    let Some(pid) = dir.pid().map_err(|e| text(&e))? else {
        // A shim that is only now coming up will find this and run nothing.
        dir.revoke(guard).map_err(|e| text(&e))?;
        return Ok(ended(Ending::new(EndCause::NeverStarted)));
    };
    if pid.boot_id != boot_id {
        return Ok(ended(Ending::new(EndCause::LostReboot)));
    }
    let spec = dir.spec().map_err(|e| text(&e))?;
    let lost = || {
        let mut ending = Ending::new(EndCause::ShimKilled);
        ending.failure_limit = note.as_ref().map_or(ending.failure_limit, |note| note.failure_limit);
        ended(ending)
    };
    if let Some(group) = &spec.cgroup {
        empty_group(&group.join("work")).map_err(|e| format!("{}: {e}", group.display()))?;
        return Ok(lost());
    }
    match note.as_ref().filter(|note| note.exclusive_uid).and_then(|note| note.identity) {
        Some((uid, _)) => {
            empty_uid(uid).map_err(|e| format!("uid {uid}: {e}"))?;
            Ok(lost())
        }
        None => Ok(Proof::Unknown(
            "survivors unknown: the shim was killed, and without a cgroup or a uid of its own nobody can tell \
             whether the worker's processes are gone"
                .to_owned(),
        )),
    }
}

fn ended(ending: Ending) -> Proof {
    Proof::Ended(Box::new(ending))
}

/// Kills a group until the kernel says that it is empty.
fn empty_group(work: &Path) -> std::io::Result<()> {
    while cgroup::populated(work)? {
        cgroup::kill(work)?;
        // The kernel announces emptiness in cgroup.events, by modifying the file.
        wait_for_change(work)?;
    }
    Ok(())
}

fn wait_for_change(work: &Path) -> std::io::Result<()> {
    use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
    use std::io::Read as _;
    use std::os::fd::AsFd as _;
    let mut events = match std::fs::File::open(work.join("cgroup.events")) {
        Ok(file) => file,
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        Err(e) => return Err(e),
    };
    let mut text = String::new();
    events.read_to_string(&mut text)?;
    if text.lines().any(|line| line == "populated 1") {
        let mut fds = [PollFd::new(events.as_fd(), PollFlags::POLLPRI)];
        // Bounded, because a change between the kill and the open is not announced again.
        poll(&mut fds, PollTimeout::from(100_u8))?;
    }
    Ok(())
}

/// Kills every process of a uid that only one run has, until there is none.
fn empty_uid(uid: u32) -> std::io::Result<()> {
    loop {
        let mut found = false;
        for process in procfs::process::all_processes().map_err(std::io::Error::other)?.flatten() {
            if !process.status().is_ok_and(|status| [status.ruid, status.euid, status.suid].contains(&uid)) {
                continue;
            }
            if process.stat().is_ok_and(|stat| matches!(stat.state, 'Z' | 'X')) {
                continue;
            }
            found = true;
            let handle = super::watch::open(process.pid())?;
            // The pid may have been reused between the look and the handle: looked at again through the handle's life.
            let same = procfs::process::Process::new(process.pid())
                .and_then(|again| again.status())
                .is_ok_and(|status| status.euid == uid);
            if same && let Some(handle) = handle {
                super::watch::signal(&handle, rustix::process::Signal::KILL)?;
            }
        }
        if !found {
            return Ok(());
        }
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// What an exit record means in the lane of its run.
fn from_record(record: &ExitRecord, note: Option<&Note>) -> Ending {
    let cause = match &record.cause {
        _ if record.oom == Some(true) => EndCause::OutOfMemory,
        Cause::Deadline => EndCause::TimedOut,
        Cause::Stopped { reason } => EndCause::Stopped(stop_reason(*reason)),
        Cause::SpawnFailed { step, error } => {
            EndCause::SpawnFailed { step: step.clone(), error: error.clone(), fault: fault(step) }
        }
        Cause::Exited => match (record.code, record.signal) {
            (_, Some(signal)) => EndCause::Signaled { signal },
            (code, None) => EndCause::Exited { code: code.unwrap_or(-1) },
        },
    };
    let mut ending = Ending::new(cause);
    ending.exit_code = record.code;
    ending.signal = record.signal;
    ending.usage = serde_json::to_value(record.usage).ok();
    ending.stderr_tail = Some(record.stderr_tail.clone()).filter(|tail| !tail.is_empty());
    if let Some(note) = note {
        ending.failure_limit = note.failure_limit;
        if note.on_clean_exit == CleanExit::Complete {
            let summary = Some(record.stdout_tail.trim().to_owned()).filter(|tail| !tail.is_empty());
            ending.result_policy = OnCleanExit::Complete { summary };
        }
    }
    ending
}

/// A command that cannot be executed fails for every task of its lane; whatever else confine refuses is the task's.
fn fault(step: &str) -> Fault {
    if step.contains("exec") { Fault::Environment } else { Fault::Task }
}

fn stop_reason(reason: StopReason) -> kernel::StopReason {
    match reason {
        StopReason::Verdict => kernel::StopReason::Verdict,
        StopReason::Reclaimed => kernel::StopReason::Reclaimed,
        StopReason::Cancelled => kernel::StopReason::Cancelled,
        StopReason::Preempted => kernel::StopReason::Preempted,
        StopReason::Kill => kernel::StopReason::Kill,
    }
}
