//! Main function of the job process: reads its task from standard input, does it, and prints the reply.

use std::cell::Cell;
use std::ffi::OsString;
use std::io::{Read as _, Write as _};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Instant;

use nix::sys::prctl;
use nix::sys::signal::Signal;
use nix::unistd::{Pid, getppid, setsid};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use shim::shortage::is_shortage;
use workspace::placing::{self, PlacingError};
use workspace::{CheckedOut, Job};

use super::{Cause, JobFailure, MEMORY, PACE, Placing, Reply, Taking, Task};

/// Runs the job process.
///
/// The process does not outlive its caller: after a daemon was killed, no job must remain in a workspace that the
/// next daemon prepares.
pub fn main(mut arguments: impl Iterator<Item = OsString>) -> ExitCode {
    let parent = arguments.next().and_then(|pid| pid.to_str()?.parse().ok()).map(Pid::from_raw);
    let mut text = String::new();
    // A new session: the daemon's share of the processors must not serve work on a worker's files.
    let apart = setsid().map(drop).map_err(std::io::Error::from);
    let ready = apart.and_then(|()| die_with(parent)).and_then(|()| bound_memory());
    let reply = match ready.and_then(|()| std::io::stdin().read_to_string(&mut text)) {
        Ok(_) => answer(&text, parent),
        Err(e) => Reply::Failed(JobFailure::process(format!("the task cannot be read: {e}"))),
    };
    let written = serde_json::to_vec(&reply).map_err(std::io::Error::from);
    match written.and_then(|bytes| std::io::stdout().write_all(&bytes)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}

/// Makes the kernel kill this process when its parent ends. The calling thread waits for the reply, so it exists
/// until then.
fn die_with(parent: Option<Pid>) -> std::io::Result<()> {
    prctl::set_pdeathsig(Signal::SIGKILL)?;
    // A parent that ended before the call sends no signal any more.
    if Some(getppid()) == parent { Ok(()) } else { Err(std::io::ErrorKind::BrokenPipe.into()) }
}

/// Limits the memory that this process may allocate. Mapped files do not count (getrlimit(2), `RLIMIT_DATA`).
fn bound_memory() -> std::io::Result<()> {
    let hard = getrlimit(Resource::Data).maximum.map_or(MEMORY, |hard| hard.min(MEMORY));
    Ok(setrlimit(Resource::Data, Rlimit { current: Some(hard), maximum: Some(hard) })?)
}

/// Changes to a user, if another, and keeps the signal at the parent's end.
fn become_another(identity: Option<policies::Identity>, parent: Option<Pid>) -> Result<(), JobFailure> {
    if let Some(identity) = identity {
        policies::become_user(identity).map_err(|e| JobFailure::process(base::failure::with_causes(&e)))?;
    }
    // The kernel clears the signal when the user changes (prctl(2), PR_SET_PDEATHSIG).
    die_with(parent).map_err(|e| JobFailure::process(e.to_string()))
}

fn answer(text: &str, parent: Option<Pid>) -> Reply {
    let task: Task = match serde_json::from_str(text) {
        Ok(task) => task,
        Err(e) => return Reply::Failed(JobFailure::process(format!("the task cannot be understood: {e}"))),
    };
    match task {
        Task::ProbePids(namespace) => match shim::probe_init(namespace) {
            Ok(()) => Reply::Probed,
            Err(why) => Reply::Failed(JobFailure::process(why)),
        },
        Task::Probe => match policies::probe_view() {
            Ok(()) => Reply::Probed,
            Err(e) => Reply::Failed(JobFailure::process(base::failure::with_causes(&e))),
        },
        // First the user, then the paths: they are opened with the user's rights.
        Task::Work { identity, mut read, mut write, job } => {
            if let Err(failure) = become_another(Some(identity), parent) {
                return Reply::Failed(failure);
            }
            match job.before_confinement() {
                Ok(further) => {
                    read.extend(further.read);
                    write.extend(further.write);
                }
                Err(e) => return Reply::Failed(JobFailure::from(&e)),
            }
            if let Err(e) = policies::confine_paths(&read, &write) {
                return Reply::Failed(JobFailure::process(base::failure::with_causes(&e)));
            }
            run(*job)
        }
        Task::Here { read, write, job } => match confine_git(read, write, &job) {
            Ok(()) => run(*job),
            Err(failure) => Reply::Failed(failure),
        },
        Task::Take { identity, taking } => {
            if let Err(failure) = become_another(identity, parent) {
                return Reply::Failed(failure);
            }
            if let Err(e) = policies::confine_paths(std::slice::from_ref(&taking.workspace), &[]) {
                return Reply::Failed(JobFailure::process(base::failure::with_causes(&e)));
            }
            copy_out(&taking)
        }
        Task::Place { identity, placing } => match become_another(identity, parent) {
            Ok(()) => place_file(&placing),
            Err(failure) => Reply::Failed(failure),
        },
        Task::Deny { identity, failed } => match become_another(identity, parent) {
            Ok(()) => Reply::Denied(failed.find_denial()),
            Err(failure) => Reply::Failed(failure),
        },
    }
}

/// Confines git to its repository: a worker of the same user could have planted a configuration that leads git out of
/// it.
fn confine_git(mut read: Vec<PathBuf>, mut write: Vec<PathBuf>, job: &Job) -> Result<(), JobFailure> {
    if job.repository().is_none() || write.is_empty() || policies::Support::detect().landlock_abi == 0 {
        return Ok(());
    }
    let further = job.before_confinement().map_err(|e| JobFailure::from(&e))?;
    read.extend(workspace::own_configuration());
    read.extend(further.read);
    write.extend(further.write);
    policies::confine_paths(&read, &write).map_err(|e| JobFailure::process(base::failure::with_causes(&e)))
}

fn copy_out(taking: &Taking) -> Reply {
    let mut sink = std::io::stderr().lock();
    match workspace::artifacts::take(&taking.workspace, &taking.path, taking.limit, &mut sink) {
        Ok(_) => Reply::Taken,
        Err(e) => {
            let cause = if is_shortage(&e) { Cause::Shortage } else { Cause::NotTaken };
            Reply::Failed(JobFailure { cause, message: base::failure::with_causes(&e), hint: None })
        }
    }
}

fn place_file(order: &Placing) -> Reply {
    let failed = |e: &PlacingError| {
        let cause = if is_shortage(e) { Cause::Shortage } else { Cause::NotTaken };
        Reply::Failed(JobFailure { cause, message: base::failure::with_causes(e), hint: None })
    };
    for path in &order.gone {
        if let Err(e) = placing::remove(&order.dir, path) {
            return failed(&e);
        }
    }
    for (path, text) in &order.files {
        let Ok(bytes) = hex::decode(text) else {
            let message = format!("{} is not in hex", path.display());
            return Reply::Failed(JobFailure { cause: Cause::NotTaken, message, hint: None });
        };
        if let Err(e) = placing::place_file(&order.dir, path, &bytes) {
            return failed(&e);
        }
    }
    Reply::Placed
}

fn run(job: Job) -> Reply {
    let told_at = Cell::new(Instant::now());
    let tell = |files: CheckedOut| {
        if told_at.get().elapsed() < PACE {
            return;
        }
        told_at.set(Instant::now());
        if let Ok(line) = serde_json::to_string(&files) {
            // A caller that has gone ends this process.
            writeln!(std::io::stdout(), "{line}").ok();
        }
    };
    match job.run_telling(&tell) {
        Ok(outcome) => Reply::Done(Box::new(outcome)),
        Err(e) => Reply::Failed(JobFailure::from(&e)),
    }
}
