//! `__confine <run dir> <report fd> <shim pid>`: applies the run's policy, then becomes the worker.
//!
//! Whatever fails before the command runs is told to the shim as a step and an error, through a descriptor that
//! closes at exec. The exit code says nothing: a command may use each of them.

use std::ffi::OsString;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use crate::rundir::{RunDir, RunDirError, RunSpec};
use crate::shim::report::{Failure, Word};

/// Not 0, and the shell's code for a command that was not found.
const NOT_EXECUTED: u8 = 127;

/// The step that failed on the way to the command.
#[derive(Debug, thiserror::Error)]
enum ConfineError {
    #[error("usage: __confine <run dir> <report fd> <shim pid>")]
    Usage,
    #[error("own the report descriptor {0}")]
    Descriptor(i32, #[source] io::Error),
    #[error(transparent)]
    Spec(RunDirError),
    #[error("the run has no command")]
    NoCommand,
    #[error(transparent)]
    Plan(policies::PlanError),
    #[error(transparent)]
    Apply(policies::ApplyError),
    #[error("enter {path}")]
    WorkingDirectory {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error("report to the shim")]
    Report(#[source] io::Error),
    #[error("execute {command} (PATH={search})")]
    Execute {
        command: String,
        search: String,
        #[source]
        source: io::Error,
    },
}

impl ConfineError {
    fn step(&self) -> &'static str {
        match self {
            Self::Usage | Self::Descriptor(..) => "confine",
            Self::Spec(_) | Self::NoCommand => "spec",
            Self::Plan(_) => "plan",
            Self::Apply(_) => "apply",
            Self::WorkingDirectory { .. } => "cwd",
            Self::Report(_) => "report",
            Self::Execute { .. } => "exec",
        }
    }
}

/// Confines this process and execs the run's command; returns only when that failed.
pub(crate) fn main(arguments: impl Iterator<Item = OsString>) -> ExitCode {
    // Only for those who read process lists; the command gets its own name.
    nix::sys::prctl::set_name(c"supervisor-conf").ok();
    let (run, descriptor, shim) = match parse(arguments) {
        Ok(parsed) => parsed,
        Err(error) => return without_report(&error),
    };
    let mut report = match own(descriptor) {
        Ok(report) => report,
        Err(error) => return without_report(&error),
    };
    let Err(error) = confine(&run, &mut report, shim);
    let told = tell(&mut report, &Word::Failed(Failure::new(error.step(), &error)));
    if told.is_err() { without_report(&error) } else { ExitCode::from(NOT_EXECUTED) }
}

fn confine(run: &Path, report: &mut File, shim: i32) -> Result<std::convert::Infallible, ConfineError> {
    let spec = RunDir::open(run).and_then(|run| run.spec()).map_err(ConfineError::Spec)?;
    let RunSpec { argv, env, cwd, policy, mut surroundings, cgroup, host, .. } = spec;
    let Some((command, arguments)) = argv.split_first() else { return Err(ConfineError::NoCommand) };
    surroundings.parent = shim;
    if surroundings.work_cgroup.is_none() {
        surroundings.work_cgroup = cgroup.map(|cgroup| cgroup.join("work"));
    }

    let host = host.unwrap_or_else(policies::Support::detect);
    let plan = policy.plan(&surroundings, &host).map_err(ConfineError::Plan)?;
    let enforced = plan.apply().map_err(ConfineError::Apply)?;
    // After the restrictions: what this process may not enter, its worker may not stand in.
    std::env::set_current_dir(&cwd).map_err(|source| ConfineError::WorkingDirectory { path: cwd, source })?;
    tell(report, &Word::Confined(Box::new(enforced))).map_err(ConfineError::Report)?;

    let search = env.get("PATH").cloned().unwrap_or_default();
    // exec looks the command up in the new PATH and gives the worker default signal handling.
    let source = Command::new(command).args(arguments).env_clear().envs(env).exec();
    Err(ConfineError::Execute { command: command.clone(), search, source })
}

fn parse(mut arguments: impl Iterator<Item = OsString>) -> Result<(PathBuf, i32, i32), ConfineError> {
    let mut next = || arguments.next().ok_or(ConfineError::Usage);
    let number = |text: OsString| text.to_str().and_then(|text| text.parse().ok()).ok_or(ConfineError::Usage);
    Ok((next()?.into(), number(next()?)?, number(next()?)?))
}

/// Opens the inherited descriptor anew, close-on-exec, and closes the one that the command would inherit.
fn own(descriptor: i32) -> Result<File, ConfineError> {
    let failed = |source| ConfineError::Descriptor(descriptor, source);
    let report =
        OpenOptions::new().write(true).open(format!("/proc/self/fd/{descriptor}")).map_err(failed)?;
    nix::unistd::close(descriptor).map_err(|error| failed(error.into()))?;
    Ok(report)
}

fn tell(report: &mut File, word: &Word) -> io::Result<()> {
    let mut line = serde_json::to_vec(word)?;
    line.push(b'\n');
    report.write_all(&line)
}

fn without_report(error: &ConfineError) -> ExitCode {
    let Failure { error: text, .. } = Failure::new(error.step(), error);
    writeln!(io::stderr(), "error: confine: {text}").ok();
    ExitCode::from(NOT_EXECUTED)
}
