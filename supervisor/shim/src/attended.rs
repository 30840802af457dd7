//! `__attend <run dir>`: a command at a person's terminal, confined like a run, and ended with all that it has started.
//!
//! The command has the caller's own standard input, output and error. There is no log, no record and no deadline,
//! because a person sees the output and ends the command. The exit code of this process is the command's;
//! executed, and the reason is printed.

use std::ffi::OsString;
use std::io::{self, PipeReader, Write as _};
use std::os::fd::{AsFd, AsRawFd as _};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};

use nix::fcntl::{FcntlArg, FdFlag, fcntl};
use nix::sys::prctl;
use policies::Keeper;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::init::Init;
use crate::report::{ReportPipe, Start};
use crate::rundir::{FailedStart, RunDir, ShimSpec, Step};
use crate::signals::Attention;
use crate::tree::Tree;

/// Exit code for a command that was not executed. Shells do not return it themselves.
pub const NOT_EXECUTED: u8 = 125;

/// Grace period between the request to end and the kill, in seconds.
const GRACE_SECONDS: i64 = 5;

/// Runs `__attend <run dir>`.
pub(crate) fn main(mut arguments: impl Iterator<Item = OsString>) -> ExitCode {
    let Some(path) = arguments.next() else {
        return not_executed(&"usage: __attend <run dir>");
    };
    match attend(Path::new(&path)) {
        Ok(code) => ExitCode::from(code),
        Err(failed) => not_executed(&failed.error),
    }
}

/// Prints the reason. The caller adds the word `error`.
fn not_executed(why: &dyn std::fmt::Display) -> ExitCode {
    writeln!(io::stderr(), "the command was not executed: {why}").ok();
    ExitCode::from(NOT_EXECUTED)
}

fn attend(path: &Path) -> Result<u8, FailedStart> {
    prctl::set_name(c"supervisor-attd").ok();
    prctl::set_child_subreaper(true).map_err(|e| FailedStart::new(Step::Shim, &e))?;
    // The command ends with its caller.
    prctl::set_pdeathsig(nix::sys::signal::Signal::SIGTERM).map_err(|e| FailedStart::new(Step::Shim, &e))?;
    let attention = Attention::register().map_err(|e| FailedStart::new(Step::Shim, &e))?;
    let run = RunDir::open(path).map_err(|e| FailedStart::new(Step::Shim, &e))?;
    let spec = run.shim_spec().map_err(|e| FailedStart::new(Step::Spec, &e))?;
    let init = spec.run_context.pid_namespace.map(|namespace| Init::start(namespace, run.path()));
    let init = init.transpose().map_err(|e| FailedStart::new(Step::Namespace, &e))?;
    let keeper = spec.run_context.proxy.as_deref().map(Keeper::bind).transpose();
    let mut keeper = keeper.map_err(|e| FailedStart::new(Step::Spawn, &e))?;
    let (pid, report) = spawn(&run, &spec).map_err(|e| FailedStart::new(Step::Spawn, &e))?;
    let (mut report, mut tree) = (ReportPipe::new(report), Tree::new(pid, init, None));
    let mut not_begun = None;
    let mut asked_to_end = false;
    let status = loop {
        // Before the report is read, because an ended process has written all of it.
        let reaped = tree.reap();
        not_begun = not_begun.or(report.read().and_then(failure));
        if let Some(keeper) = &mut keeper {
            keeper.attend();
        }
        if reaped.worker.is_some() || reaped.childless {
            break reaped.worker;
        }
        match wait(&attention, &report, keeper.as_ref(), asked_to_end) {
            Ok(Waited::Something) => attention.clear_child(),
            Ok(Waited::LongEnough) => drop(tree.kill()),
            Err(error) => {
                tree.end();
                return Err(FailedStart::new(Step::Shim, &error));
            }
        }
        if attention.take_end() {
            asked_to_end = true;
            tree.terminate();
        }
    };
    tree.end();
    if let Some(failed) = not_begun {
        return Err(failed);
    }
    let code = status.and_then(|status| {
        status.exit_status().or_else(|| status.terminating_signal().map(|signal| signal + 128))
    });
    Ok(code.and_then(|code| u8::try_from(code).ok()).unwrap_or(1))
}

fn failure(start: Start) -> Option<FailedStart> {
    match start {
        Start::Executed(_) => None,
        Start::Failed(failed) => Some(failed),
        Start::Silent | Start::NotLoaded => {
            Some(FailedStart::new(Step::Confine, &io::Error::other("it ended without a word")))
        }
    }
}

/// Outcome of a wait.
enum Waited {
    Something,
    /// The command was asked to end, and its grace period is over.
    LongEnough,
}

fn wait(
    attention: &Attention,
    report: &ReportPipe,
    keeper: Option<&Keeper>,
    asked_to_end: bool,
) -> Result<Waited, rustix::io::Errno> {
    let fds = attention.fds().into_iter().chain(report.fd()).chain(keeper.map(AsFd::as_fd));
    let fds: Vec<_> = fds.collect();
    let mut polled: Vec<PollFd<'_>> =
        fds.iter().map(|fd| PollFd::from_borrowed_fd(*fd, PollFlags::IN)).collect();
    let limit = Timespec { tv_sec: GRACE_SECONDS, tv_nsec: 0 };
    match poll(&mut polled, asked_to_end.then_some(&limit)) {
        Ok(0) => Ok(Waited::LongEnough),
        Ok(_) | Err(rustix::io::Errno::INTR) => Ok(Waited::Something),
        Err(error) => Err(error),
    }
}

/// Starts `confine` with the standard streams of this process. This process has one thread, so no other code can spawn
/// while the report pipe is inheritable.
fn spawn(run: &RunDir, spec: &ShimSpec) -> io::Result<(i32, PipeReader)> {
    // Within its pid namespace, the command sees this process without a number.
    let parent = if spec.run_context.pid_namespace.is_some() { 0 } else { std::process::id() };
    let (report, report_end) = io::pipe()?;
    fcntl(&report_end, FcntlArg::F_SETFD(FdFlag::empty()))?;
    let child = Command::new("/proc/self/exe")
        .arg0("supervisor-confine")
        .arg("__confine")
        .arg(run.path())
        .arg(report_end.as_raw_fd().to_string())
        .arg(parent.to_string())
        .env_clear()
        .stdin(Stdio::inherit())
        .stdout(Stdio::inherit())
        .stderr(Stdio::inherit())
        .spawn()?;
    drop(report_end);
    rustix::io::ioctl_fionbio(&report, true)?;
    Ok((child.id().cast_signed(), report))
}
