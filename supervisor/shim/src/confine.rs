//! `__confine <run dir> <report fd> <shim pid> [<messages fd> <receipts fd>]`: applies the run's policy, then becomes
//! the worker, or the relay of its messages if it takes any.
//!
//! A failure before the command is reported to the shim as a step and an error, through a descriptor that closes at the
//! exec. The exit code means nothing, because a command may use any code.

use std::ffi::OsString;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use policies::Holding;

use crate::conversation::{Ends, Relay};
use crate::report::Word;
use crate::rundir::{Concern, FailedStart, RunDir, RunDirError, RunSpec, Step, VERSION};

/// Exit code for a command that was not executed: not 0, and the shell's code for a command that was not found.
const NOT_EXECUTED: u8 = 127;

/// The step that failed on the way to the command.
#[derive(Debug, thiserror::Error)]
enum ConfineError {
    #[error("usage: __confine <run dir> <report fd> <shim pid> [<messages fd> <receipts fd>]")]
    Usage,
    #[error("own the report descriptor {0}")]
    Descriptor(i32, #[source] io::Error),
    #[error(transparent)]
    Spec(RunDirError),
    #[error("the run has no command")]
    NoCommand,
    #[error("make the terminal the worker's own")]
    Terminal(#[source] io::Error),
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
    fn step(&self) -> Step {
        match self {
            Self::Usage | Self::Descriptor(..) | Self::Terminal(_) => Step::Confine,
            Self::Spec(_) | Self::NoCommand => Step::Spec,
            Self::Plan(_) => Step::Plan,
            Self::Apply(_) => Step::Apply,
            Self::WorkingDirectory { .. } => Step::Cwd,
            Self::Report(_) => Step::Report,
            Self::Execute { .. } => Step::Exec,
        }
    }

    /// Describes the failure for the daemon.
    fn described(&self) -> FailedStart {
        FailedStart::new(self.step(), self)
    }
}

/// Confines this process and executes the run's command. Returns only if that fails.
pub(crate) fn main(arguments: impl Iterator<Item = OsString>) -> ExitCode {
    // Only for readers of process lists. The command gets its own name.
    nix::sys::prctl::set_name(c"supervisor-conf").ok();
    let Arguments { run, report, shim, channel } = match parse(arguments) {
        Ok(parsed) => parsed,
        Err(error) => return without_report(&error),
    };
    let mut report = match own(report, PipeEnd::Write) {
        Ok(report) => report,
        Err(error) => return without_report(&error),
    };
    // A failure before this word is a failure to load. If this write fails, the shim sees the end of the pipe.
    report_word(&mut report, &Word::Begun { begun: VERSION }).ok();
    let failed = match confine(&run, &mut report, shim, channel) {
        Ok(relay) => {
            // The end of the pipe means that the command was executed.
            drop(report);
            return relay.run();
        }
        Err(failed) => failed,
    };
    if report_word(&mut report, &Word::Failed(failed.clone())).is_err() {
        writeln!(io::stderr(), "error: confine: {}", failed.error).ok();
    }
    ExitCode::from(NOT_EXECUTED)
}

fn confine(
    run: &Path,
    report: &mut File,
    shim: i32,
    channel: Option<(i32, i32)>,
) -> Result<Relay, FailedStart> {
    let failed = |error: ConfineError| error.described();
    let ends =
        channel.map(|(messages, receipts)| own_ends(messages, receipts)).transpose().map_err(failed)?;
    let spec = RunDir::open(run).and_then(|run| run.spec()).map_err(ConfineError::Spec).map_err(failed)?;
    let RunSpec {
        argv,
        env,
        cwd,
        outside,
        policy,
        mut run_context,
        cgroup,
        host,
        conversation,
        terminal,
        ..
    } = spec;
    if terminal.is_some() {
        take_terminal().map_err(ConfineError::Terminal).map_err(failed)?;
    }
    let Some((command, arguments)) = argv.split_first() else { return Err(failed(ConfineError::NoCommand)) };
    run_context.parent = shim;
    if run_context.work_cgroup.is_none() {
        run_context.work_cgroup = cgroup.map(|cgroup| cgroup.join("work"));
    }

    let host = host.unwrap_or_else(policies::Support::detect);
    let plan = policy.plan(&run_context, &host).map_err(|error| {
        let concern = if error.is_general(&run_context) { Concern::Policy } else { Concern::Run };
        failed(ConfineError::Plan(error)).concerning(concern)
    })?;
    let limited = |failed: FailedStart, holding: Holding| match failed.errno {
        Some(errno) if policy.limits.explain(errno, holding) => failed.concerning(Concern::Limit),
        _ => failed,
    };
    let search = env.get("PATH").cloned().unwrap_or_default();
    let confined = plan.confine(command, arguments, env).map_err(|error| {
        let (is_general, holding) = (error.is_general(&run_context), error.holding());
        let failed = failed(ConfineError::Apply(error));
        limited(if is_general { failed } else { failed.concerning(Concern::Run) }, holding)
    })?;
    let cwd = outside.unwrap_or(cwd);
    // After the restrictions, so that the worker cannot be in a directory that it may not enter.
    std::env::set_current_dir(&cwd).map_err(|source| {
        limited(failed(ConfineError::WorkingDirectory { path: cwd.clone(), source }), Holding::All)
    })?;
    let policies::Confined { report: enforced, command: mut worker } = confined;
    report_word(report, &Word::Confined(Box::new(enforced))).map_err(ConfineError::Report).map_err(failed)?;

    let source = match (&conversation, ends) {
        (Some(conversation), Some(ends)) => match Relay::start(&mut worker, conversation, &cwd, ends) {
            Ok(relay) => return Ok(relay),
            Err(source) => source,
        },
        _ => worker.exec(),
    };
    let is_own = is_the_runs(Path::new(command), &run_context);
    let failed = failed(ConfineError::Execute { command: command.clone(), search, source });
    Err(limited(if is_own { failed.concerning(Concern::Run) } else { failed }, Holding::All))
}

/// Begins a session with the terminal at standard input as its controlling terminal.
fn take_terminal() -> io::Result<()> {
    nix::unistd::setsid()?;
    Ok(rustix::process::ioctl_tiocsctty(io::stdin())?)
}

/// Returns true if a command is a file in the run's own places, so that its failure concerns this run alone.
fn is_the_runs(command: &Path, context: &policies::RunContext) -> bool {
    let is_looked_up = command.components().count() == 1 && !command.is_absolute();
    let run_directories = [&context.workspace, &context.home, &context.tmp];
    !is_looked_up
        && (!command.is_absolute() || run_directories.into_iter().any(|place| command.starts_with(place)))
}

/// Arguments of `confine`, as the shim passes them.
struct Arguments {
    run: PathBuf,
    report: i32,
    shim: i32,
    /// Ends of the pipes for messages and for their receipts.
    channel: Option<(i32, i32)>,
}

fn parse(mut arguments: impl Iterator<Item = OsString>) -> Result<Arguments, ConfineError> {
    let number = |text: OsString| text.to_str().and_then(|text| text.parse().ok()).ok_or(ConfineError::Usage);
    let run = arguments.next().ok_or(ConfineError::Usage)?.into();
    let numbers: Vec<i32> = arguments.map(number).collect::<Result<_, _>>()?;
    match numbers[..] {
        [report, shim] => Ok(Arguments { run, report, shim, channel: None }),
        [report, shim, messages, receipts] => {
            Ok(Arguments { run, report, shim, channel: Some((messages, receipts)) })
        }
        _ => Err(ConfineError::Usage),
    }
}

#[derive(Clone, Copy)]
enum PipeEnd {
    Read,
    Write,
}

/// Opens the inherited descriptor anew, close-on-exec, and closes the inherited copy, so that the command does not get it.
fn own(descriptor: i32, side: PipeEnd) -> Result<File, ConfineError> {
    let failed = |source| ConfineError::Descriptor(descriptor, source);
    let mut options = OpenOptions::new();
    match side {
        PipeEnd::Read => options.read(true),
        PipeEnd::Write => options.write(true),
    };
    let opened = options.open(format!("/proc/self/fd/{descriptor}")).map_err(failed)?;
    nix::unistd::close(descriptor).map_err(|error| failed(error.into()))?;
    Ok(opened)
}

fn own_ends(messages: i32, receipts: i32) -> Result<Ends, ConfineError> {
    Ok(Ends { messages: own(messages, PipeEnd::Read)?, receipts: own(receipts, PipeEnd::Write)? })
}

fn report_word(report: &mut File, word: &Word) -> io::Result<()> {
    let mut line = serde_json::to_vec(word)?;
    line.push(b'\n');
    report.write_all(&line)
}

fn without_report(error: &ConfineError) -> ExitCode {
    writeln!(io::stderr(), "error: confine: {}", error.described().error).ok();
    ExitCode::from(NOT_EXECUTED)
}
