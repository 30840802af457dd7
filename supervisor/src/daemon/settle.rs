//! The end of a run: proof that nothing of it is left, and what the board is told. Nothing else frees a claim.

use std::io::ErrorKind;
use std::path::Path;
use std::time::{Duration, Instant};

use kernel::{Clock as _, EndCause, Ending, Fault, OnCleanExit, Siblings};

use super::cgroup;
use super::launch::Note;
use crate::lanes::{CleanExit, RateLimit};
use crate::rundir::{Cause, ExitRecord, LockState, RunDir, RunDirError, StopReason};

/// The exit code of a worker whose service refuses it for a while: `EX_TEMPFAIL` of sysexits.h, which workers of
/// `hermes kanban` use for it.
const RATE_LIMITED: i32 = 75;

/// How long a look kills before it says what withstands SIGKILL. The next look goes on.
const PATIENCE: Duration = Duration::from_secs(2);

/// What a run directory says once nobody holds its lock.
#[derive(Debug)]
pub(super) enum Proof {
    /// The run is over, and this is how it ended.
    Ended(Box<Ending>),
    /// The run is over, and nothing of it was tried, because the shim could not: what it lacked.
    Hindered(Box<Ending>, String),
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
    let dir = match RunDir::open(path) {
        Ok(dir) => dir,
        // The directory is removed only after the board knows the end, so this run never had one.
        Err(RunDirError::Open { source, .. }) if source.kind() == ErrorKind::NotFound => {
            return Ok(ended(Ending::new(EndCause::NeverStarted)));
        }
        Err(error) => return Err(text(&error)),
    };
    let guard = match dir.lock_state().map_err(|e| text(&e))? {
        LockState::Held => return Ok(Proof::Alive),
        LockState::Free(guard) => guard,
    };
    let note = Note::read(path);
    if let Some(record) = dir.exit() {
        let ending = from_record(&record, note.as_ref());
        return Ok(match &record.cause {
            Cause::SpawnFailed { step, error } if is_own(step) => {
                Proof::Hindered(Box::new(ending), format!("the shim failed at its step `{step}`: {error}"))
            }
            _ => ended(ending),
        });
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
        // Both leaves: a worker that was just being made is still beside the shim.
        empty_group(group)?;
        return Ok(lost());
    }
    match note.as_ref().filter(|note| note.exclusive_uid).and_then(|note| note.identity) {
        Some((uid, _)) => {
            empty_uid(uid)?;
            Ok(lost())
        }
        None => Ok(Proof::Unknown(
            "survivors unknown: the shim was killed, and without a cgroup or a uid of its own nobody can tell \
             whether the worker's processes are gone; `supervisor reclaim` frees the task when they are"
                .to_owned(),
        )),
    }
}

fn ended(ending: Ending) -> Proof {
    Proof::Ended(Box::new(ending))
}

/// Kills a group until the kernel says that it is empty.
fn empty_group(group: &Path) -> Result<(), String> {
    let fail = |e: std::io::Error| format!("{}: {e}", group.display());
    let until = Instant::now() + PATIENCE;
    while cgroup::populated(group).map_err(fail)? {
        if Instant::now() >= until {
            return Err(format!("SIGKILL does not end {}", named(cgroup::processes(group))));
        }
        cgroup::kill(group).map_err(fail)?;
        cgroup::wait_for_change(group).map_err(fail)?;
    }
    Ok(())
}

/// Kills every process of a uid that only one run has, until there is none.
fn empty_uid(uid: u32) -> Result<(), String> {
    let until = Instant::now() + PATIENCE;
    loop {
        let left = kill_uid(uid).map_err(|e| format!("uid {uid}: {e}"))?;
        if left.is_empty() {
            return Ok(());
        }
        if Instant::now() >= until {
            return Err(format!("SIGKILL does not end {}", named(left)));
        }
        // Nothing announces the end of processes that are not children.
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// Kills the processes of a uid, and returns those that it found.
fn kill_uid(uid: u32) -> std::io::Result<Vec<i32>> {
    let has = |status: &procfs::process::Status| [status.ruid, status.euid, status.suid].contains(&uid);
    let mut found = Vec::new();
    for process in procfs::process::all_processes().map_err(std::io::Error::other)?.flatten() {
        if !process.status().is_ok_and(|status| has(&status)) {
            continue;
        }
        if process.stat().is_ok_and(|stat| matches!(stat.state, 'Z' | 'X')) {
            continue;
        }
        found.push(process.pid());
        let handle = super::watch::open(process.pid())?;
        // The pid may have been reused between the look and the handle: looked at again through the handle's life.
        let same = procfs::process::Process::new(process.pid())
            .and_then(|again| again.status())
            .is_ok_and(|status| has(&status));
        if same && let Some(handle) = handle {
            super::watch::signal(&handle, rustix::process::Signal::KILL)?;
        }
    }
    Ok(found)
}

/// Processes by pid and name, for a person.
fn named(pids: Vec<i32>) -> String {
    let name = |pid: i32| {
        let stat = procfs::process::Process::new(pid).and_then(|process| process.stat());
        stat.map_or_else(|_| pid.to_string(), |stat| format!("{pid} ({}, state {})", stat.comm, stat.state))
    };
    pids.into_iter().map(name).collect::<Vec<_>>().join(", ")
}

/// What an exit record means in the lane of its run.
fn from_record(record: &ExitRecord, note: Option<&Note>) -> Ending {
    let cause = match &record.cause {
        _ if record.oom == Some(true) => EndCause::OutOfMemory,
        Cause::Deadline => EndCause::TimedOut,
        Cause::Stopped { reason } => EndCause::Stopped(stop_reason(*reason)),
        // Nothing of the task was tried yet, so it costs the task nothing.
        Cause::SpawnFailed { step, .. } if is_own(step) => EndCause::NeverStarted,
        Cause::SpawnFailed { step, error } => {
            EndCause::SpawnFailed { step: step.clone(), error: error.clone(), fault: fault(step) }
        }
        Cause::Exited => match (record.code, record.signal) {
            (_, Some(signal)) => EndCause::Signaled { signal },
            (Some(RATE_LIMITED), None) => {
                let pause = note.map_or(Duration::ZERO, |note| Duration::from_secs(note.rate_limit_pause));
                EndCause::RateLimited { until: kernel::SystemClock.now().after(pause) }
            }
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
        if note.rate_limit == RateLimit::Task {
            ending.siblings = Siblings::Spare;
        }
        if note.on_clean_exit == CleanExit::Complete {
            let summary = Some(record.stdout_tail.trim().to_owned()).filter(|tail| !tail.is_empty());
            ending.result_policy = OnCleanExit::Complete { summary };
        }
    }
    ending
}

/// Whether a step is the shim's own, before it comes to the worker: then the host lacked something, or the workspace was
/// still another run's.
fn is_own(step: &str) -> bool {
    matches!(step, "cgroup" | "pid" | "lease" | "log" | "timer" | "spawn")
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
