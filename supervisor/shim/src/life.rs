//! `__shim <run dir>`: from the first instruction to the exit code.
//!
//! `__shim --wait [<cgroup>]` is started ahead of a run. It enters the `work` leaf and reads the path of the run
//! directory from standard input. An end of file without a path means that no run needs it.

use std::ffi::OsString;
use std::io::{self, Read as _, Write};
use std::os::unix::ffi::OsStringExt as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use nix::sys::prctl;
use nix::unistd::setsid;
use policies::Keeper;

use crate::init::Init;
use crate::output::Files;
use crate::record;
use crate::signals::Signals;
use crate::timer::Alarm;
use crate::tree::{Tree, join_cgroup};
use crate::watch::Watch;
use crate::worker::Worker;
use lease::{Lease, LeaseError};

use crate::priority;
use crate::rundir::{
    Cause, Concern, ExitRecord, ExitSlot, FailedStart, LeaseSpec, LockGuard, LockState, RunDir, RunDirError,
    ShimSpec, Step, StoreError, VERSION, boottime_us, wall_us,
};

/// Reasons why a shim ended without an exit record. Each has its own exit code, from `sysexits.h` where it has one.
#[derive(Debug, thiserror::Error)]
enum ShimError {
    #[error("usage: __shim <run dir> | --wait [<cgroup>]")]
    Usage,
    #[error("begin a session of its own")]
    Session(#[source] nix::Error),
    #[error("become the reaper of the run's orphans")]
    Subreaper(#[source] nix::Error),
    #[error("wait for the run in its cgroup")]
    Wait(#[source] io::Error),
    #[error("use the run directory")]
    RunDir(#[source] RunDirError),
    #[error("the run has a shim already")]
    Busy,
    #[error("the run was revoked, or has begun before")]
    Late,
    #[error("catch signals")]
    Signals(#[source] io::Error),
    #[error("reserve the space of the exit record")]
    Reserve(#[source] RunDirError),
    #[error("store the exit record")]
    Store(#[source] StoreError),
}

impl ShimError {
    fn code(&self) -> u8 {
        match self {
            Self::Usage => 64,
            Self::RunDir(_) => 66,
            Self::Session(_) | Self::Subreaper(_) | Self::Wait(_) | Self::Signals(_) => 71,
            Self::Reserve(_) => 73,
            Self::Store(_) => 74,
            Self::Busy => 75,
            Self::Late => 76,
        }
    }
}

/// Runs `__shim <run dir>`.
pub(crate) fn main(arguments: impl Iterator<Item = OsString>) -> ExitCode {
    match shim(arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let FailedStart { error: text, .. } = FailedStart::new(Step::Shim, &error);
            writeln!(io::stderr(), "error: shim: {text}").ok();
            ExitCode::from(error.code())
        }
    }
}

fn shim(mut arguments: impl Iterator<Item = OsString>) -> Result<(), ShimError> {
    let (path, place) = match (arguments.next(), arguments.next(), arguments.next()) {
        (Some(word), place, None) if word == "--wait" => (None, place.map(PathBuf::from)),
        (Some(path), None, None) => (Some(PathBuf::from(path)), None),
        _ => return Err(ShimError::Usage),
    };
    // The name is only for readers of process lists.
    prctl::set_name(c"supervisor-shim").ok();
    setsid().map_err(ShimError::Session)?;
    // If this fails, the shim has the same share of the processors as a worker.
    priority::go_first().ok();
    prctl::set_child_subreaper(true).map_err(ShimError::Subreaper)?;

    let path = match path {
        Some(path) => path,
        None => match wait(place.as_deref()).map_err(ShimError::Wait)? {
            Some(path) => path,
            None => return Ok(()),
        },
    };
    let run = RunDir::open(&path).map_err(ShimError::RunDir)?;
    let _lock = take(&run)?;
    let signals = Signals::register().map_err(ShimError::Signals)?;
    let slot = run.reserve_exit().map_err(ShimError::Reserve)?;

    let spec = match run.shim_spec() {
        Ok(spec) => spec,
        Err(error) => return store(&slot, &not_begun(FailedStart::new(Step::Spec, &error))),
    };
    let record = match begin(&run, &spec, place.as_deref(), signals) {
        // The lease is kept beside the watch, and is released when no process of the run is left.
        Ok((watch, _lease)) => watch.until_nothing_is_left(),
        Err(failure) => not_begun(failure),
    };
    store(&slot, &record)?;
    record::send_event(&spec, "exit");
    Ok(())
}

/// Waits for the path of a run directory, in the cgroup in which the worker of the run will be born.
fn wait(place: Option<&Path>) -> io::Result<Option<PathBuf>> {
    if let Some(group) = place {
        join_cgroup(&group.join("work"))?;
    }
    let mut path = Vec::new();
    io::stdin().read_to_end(&mut path)?;
    Ok((!path.is_empty()).then(|| OsString::from_vec(path).into()))
}

/// Takes the run's lock, unless this process must not run the run.
///
/// A daemon that checks whether the run lives owns the lock for a moment, so an owned lock alone is no reason to give
/// up. An owned lock together with a `pid` record belongs to another shim.
fn take(run: &RunDir) -> Result<LockGuard, ShimError> {
    let guard = match run.lock_state().map_err(ShimError::RunDir)? {
        LockState::Free(guard) => guard,
        LockState::Held if run.pid().map_err(ShimError::RunDir)?.is_some() => return Err(ShimError::Busy),
        LockState::Held => run.lock().map_err(ShimError::RunDir)?,
    };
    let is_late =
        run.is_revoked().map_err(ShimError::RunDir)? || run.pid().map_err(ShimError::RunDir)?.is_some();
    if is_late { Err(ShimError::Late) } else { Ok(guard) }
}

/// Takes all steps up to the spawned worker. A failure belongs to a step of the run, not to the shim.
fn begin<'a>(
    run: &'a RunDir,
    spec: &'a ShimSpec,
    place: Option<&Path>,
    signals: Signals,
) -> Result<(Watch<'a>, Option<Lease>), FailedStart> {
    if spec.version != VERSION {
        let error = format!("this release runs version {VERSION} and the spec has {}", spec.version);
        return Err(FailedStart { step: Step::Spec, error, errno: None, concern: Concern::Root });
    }
    let leaf = spec.cgroup.as_ref().map(|cgroup| cgroup.join("shim"));
    let is_placed = place.is_some() && place == spec.cgroup.as_deref();
    if let Some(leaf) = leaf.as_ref().filter(|_| !is_placed) {
        join_cgroup(leaf).map_err(|error| FailedStart::new(Step::Cgroup, &error))?;
    }
    let init = spec.run_context.pid_namespace.map(|namespace| Init::start(namespace, run.path()));
    let init = init.transpose().map_err(|error| FailedStart::new(Step::Namespace, &error))?;
    // The record comes before the worker, so that a reader of the record can also end the worker.
    record::write_pid(run, spec, init.as_ref()).map_err(|error| FailedStart::new(Step::Pid, &error))?;
    let lease = spec
        .lease
        .as_ref()
        .map(take_lease)
        .transpose()
        .map_err(|error| FailedStart::new(Step::Lease, &error))?;
    let files = Files::create(run, spec).map_err(|error| FailedStart::new(Step::Log, &error))?;
    let alarm = Alarm::new().map_err(|error| FailedStart::new(Step::Timer, &error))?;
    // The keeper comes before the worker, because the worker hands its socket over.
    let keeper = spec.run_context.proxy.as_deref().map(Keeper::bind).transpose();
    let keeper = keeper.map_err(|error| FailedStart::new(Step::Spawn, &error))?;
    let worker = Worker::spawn(run, spec).map_err(|error| FailedStart::new(Step::Spawn, &error))?;
    if let Some(leaf) = leaf.as_ref().filter(|_| is_placed) {
        // This step may take long, and the worker does not wait for it.
        join_cgroup(leaf).map_err(|error| {
            Tree::new(worker.identity.pid, None, None).end();
            FailedStart::new(Step::Cgroup, &error)
        })?;
    }
    Ok((Watch::new(run, spec, worker, init, signals, alarm, files).keeping(keeper), lease))
}

fn take_lease(lease: &LeaseSpec) -> Result<Lease, LeaseError> {
    Lease::acquire(&lease.dir, &lease.workspace, lease.place, &lease.holder)
}

fn not_begun(failure: FailedStart) -> ExitRecord {
    let ended_at_wall_us = Some(wall_us());
    ExitRecord { ended_at_wall_us, ..ExitRecord::with_cause(Cause::SpawnFailed(failure), boottime_us()) }
}

fn store(slot: &ExitSlot, record: &ExitRecord) -> Result<(), ShimError> {
    record::store(slot, record).map_err(ShimError::Store)
}
