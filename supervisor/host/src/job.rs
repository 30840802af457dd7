//! Job processes. Each does one job beside the daemon, under another user if needed, and ends.
//!
//! Every access to a tree that a worker could write is made in such a process, in root's daemon and any other. The worker may
//! have planted symbolic links, repositories and FIFOs. In root's daemon, the process takes the user of the worker, so that a
//! trap gives the worker no rights that it does not have. A process that hangs is killed, so that the daemon does not hang.
//!
//! `supervisor __job <pid of the caller>` reads a [`Task`] as JSON from standard input and prints a [`Reply`].
//!
//! See decision 0026.

mod failure;
mod serve;
mod wait;

use std::cell::Cell;
use std::ffi::OsString;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use shim::rundir::RunSpec;
use shim::shortage::is_shortage;
use tokio_util::sync::CancellationToken;
use workspace::{CheckedOut, Effort, Irregular, IrregularKind, Job, Outcome};

use self::wait::NoAnswer;
use super::denial::Failed;

pub use self::failure::{Cause, JobFailure};
pub use self::serve::main;

/// Time limit for examining a few directories. Network file systems may have to be mounted first.
const GLANCE: Duration = Duration::from_secs(10);
/// Time limit for reading a tree. A process without progress is killed earlier.
const LOOK: Duration = Duration::from_secs(30);
/// Time limit for changing a whole tree, such as the checkout of a large repository.
const CHANGE: Duration = Duration::from_mins(2);
/// Time for which the end of a killed process is awaited. A process that waits for a device may end later.
const FAREWELL: Duration = Duration::from_secs(1);
/// Shortest interval between two reports about a checkout that are passed on.
const PACE: Duration = Duration::from_secs(1);
/// Limit on the memory of a job process, in bytes. git loads whole objects, and a worker may have forged an object whose
/// header has a size beyond the memory of the host.
const MEMORY: u64 = 1 << 30;

/// Request to a job process.
#[derive(Debug, Serialize, Deserialize)]
pub enum Task {
    /// Takes a user, confines the process to these paths, and does a job.
    Work {
        /// User and group.
        identity: policies::Identity,
        /// Readable paths.
        read: Vec<PathBuf>,
        /// Writable paths.
        write: Vec<PathBuf>,
        job: Box<Job>,
    },
    /// Does a job as the present user. If the host supports it, a job that uses git and has writable paths is confined to
    /// these paths and the git configuration of the user.
    Here {
        /// Readable paths.
        read: Vec<PathBuf>,
        /// Writable paths.
        write: Vec<PathBuf>,
        job: Box<Job>,
    },
    /// Takes a user and copies a file to standard error, which the caller provides.
    Take {
        /// User, if another.
        identity: Option<policies::Identity>,
        /// File to copy.
        taking: Taking,
    },
    /// Takes a user, and deletes and creates files in a directory.
    Place {
        /// User, if another.
        identity: Option<policies::Identity>,
        /// Files to delete and create.
        placing: Placing,
    },
    /// Takes a user and searches for the denied access that made a run fail.
    Deny {
        /// User, if another.
        identity: Option<policies::Identity>,
        /// Facts about the run.
        failed: Box<Failed>,
    },
    /// Checks that this host permits a file system view for a run.
    Probe,
    /// Checks that this host permits a pid namespace.
    ProbePids(policies::PidNamespace),
}

impl Task {
    fn job(&self) -> Option<&Job> {
        match self {
            Task::Work { job, .. } | Task::Here { job, .. } => Some(job),
            Task::Take { .. } | Task::Place { .. } | Task::Deny { .. } | Task::Probe | Task::ProbePids(_) => {
                None
            }
        }
    }

    fn limit(&self) -> Duration {
        match self.job().map(Job::effort) {
            Some(Effort::Glance) => GLANCE,
            Some(Effort::Change) => CHANGE,
            Some(Effort::Look) | None => LOOK,
        }
    }

    /// Returns the same request with another job.
    fn with(&self, job: Job) -> Option<Task> {
        match self {
            Task::Work { identity, read, write, .. } => Some(Task::Work {
                identity: *identity,
                read: read.clone(),
                write: write.clone(),
                job: Box::new(job),
            }),
            Task::Here { read, write, .. } => {
                Some(Task::Here { read: read.clone(), write: write.clone(), job: Box::new(job) })
            }
            Task::Take { .. } | Task::Place { .. } | Task::Deny { .. } | Task::Probe | Task::ProbePids(_) => {
                None
            }
        }
    }
}

/// File to copy out of a workspace.
#[derive(Debug, Serialize, Deserialize)]
pub struct Taking {
    pub workspace: PathBuf,
    /// Path of the file, relative to the workspace.
    pub path: PathBuf,
    /// Limit on the size of the file, in bytes.
    pub limit: u64,
}

/// Files to delete and create in a directory.
#[derive(Default, Serialize, Deserialize)]
pub struct Placing {
    pub dir: PathBuf,
    /// Files to delete first, relative to the directory.
    pub gone: Vec<PathBuf>,
    /// Files to create, relative to the directory, with their contents in hexadecimal.
    pub files: Vec<(PathBuf, String)>,
}

impl std::fmt::Debug for Placing {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // The contents may be secret.
        f.debug_struct("Placing").field("dir", &self.dir).finish_non_exhaustive()
    }
}

/// Reply of a job process.
#[derive(Debug, Serialize, Deserialize)]
pub enum Reply {
    /// Outcome of the job.
    Done(Box<Outcome>),
    /// Failure of the job.
    Failed(JobFailure),
    /// The check succeeded.
    Probed,
    /// The file was copied.
    Taken,
    /// The files were placed.
    Placed,
    /// Denied access that made the run fail; none if none was found.
    Denied(Option<kernel::Denied>),
}

/// Does a job in a separate process, as the user `identity` if given. Blocks, within a time limit.
pub fn work(
    identity: Option<policies::Identity>,
    read: Vec<PathBuf>,
    write: Vec<PathBuf>,
    job: Job,
) -> Result<Outcome, JobFailure> {
    work_unless(&CancellationToken::new(), identity, read, write, job)
}

/// Does a job as [`work`] does. `cancel` ends it early.
pub fn work_unless(
    cancel: &CancellationToken,
    identity: Option<policies::Identity>,
    read: Vec<PathBuf>,
    write: Vec<PathBuf>,
    job: Job,
) -> Result<Outcome, JobFailure> {
    work_telling(&Asker { cancel, on_checkout: &|_| {} }, identity, read, write, job)
}

/// Connection of a long job to its caller.
#[expect(missing_debug_implementations, reason = "a function")]
pub struct Asker<'a> {
    /// Token that ends the job early.
    pub cancel: &'a CancellationToken,
    /// Receiver of the progress of a checkout, about once a second.
    pub on_checkout: &'a dyn Fn(CheckedOut),
}

/// Does a job as [`work_unless`] does, and reports its progress to the caller.
pub fn work_telling(
    asker: &Asker<'_>,
    identity: Option<policies::Identity>,
    read: Vec<PathBuf>,
    write: Vec<PathBuf>,
    job: Job,
) -> Result<Outcome, JobFailure> {
    let cancel = asker.cancel;
    let task = match identity {
        Some(identity) => Task::Work { identity, read, write, job: Box::new(job) },
        None => Task::Here { read, write, job: Box::new(job) },
    };
    match ask_telling(&task, Stdio::null(), asker)? {
        Reply::Done(outcome) => Ok(*outcome),
        Reply::Failed(failure) => Err(explained(&task, failure, cancel)),
        Reply::Probed | Reply::Taken | Reply::Placed | Reply::Denied(_) => Err(JobFailure::another_answer()),
    }
}

/// Returns the denied access that kept a run from starting its command, or made the command fail; none if none is found.
/// Blocks.
pub fn denied(spec: &RunSpec) -> Option<kernel::Denied> {
    let identity = spec.run_context.identity;
    if identity.is_none() && nix::unistd::geteuid().is_root() {
        return None;
    }
    let task = Task::Deny { identity, failed: Box::new(Failed::from_spec(spec)) };
    let failure = match ask(&task, Stdio::null(), &CancellationToken::new()) {
        Ok(Reply::Denied(denied)) => return denied,
        Ok(Reply::Failed(failure)) | Err(failure) => failure,
        Ok(Reply::Done(_) | Reply::Probed | Reply::Taken | Reply::Placed) => JobFailure::another_answer(),
    };
    tracing::warn!(task = %spec.task, run = spec.run, error = %failure.message, "denial_not_found");
    None
}

/// Copies a file out of a workspace into `sink`, with the rights of a user.
pub fn take(
    identity: Option<policies::Identity>,
    taking: Taking,
    sink: std::fs::File,
) -> Result<(), JobFailure> {
    match ask(&Task::Take { identity, taking }, sink.into(), &CancellationToken::new())? {
        Reply::Taken => Ok(()),
        Reply::Failed(failure) => Err(failure),
        Reply::Done(_) | Reply::Probed | Reply::Placed | Reply::Denied(_) => {
            Err(JobFailure::another_answer())
        }
    }
}

/// Deletes and creates files in a directory, with the rights of a user.
pub fn place_file(identity: Option<policies::Identity>, placing: Placing) -> Result<(), JobFailure> {
    match ask(&Task::Place { identity, placing }, Stdio::null(), &CancellationToken::new())? {
        Reply::Placed => Ok(()),
        Reply::Failed(failure) => Err(failure),
        Reply::Done(_) | Reply::Probed | Reply::Taken | Reply::Denied(_) => Err(JobFailure::another_answer()),
    }
}

/// Checks that this host permits a file system view for a run. The error is the reason why it does not.
pub(crate) fn probe_view() -> Result<(), String> {
    match ask(&Task::Probe, Stdio::null(), &CancellationToken::new()) {
        Ok(Reply::Probed) => Ok(()),
        Ok(Reply::Failed(failure)) | Err(failure) => Err(failure.message),
        Ok(Reply::Done(_) | Reply::Taken | Reply::Placed | Reply::Denied(_)) => {
            Err(JobFailure::another_answer().message)
        }
    }
}

/// Checks that this host permits a pid namespace. The error is the reason why it does not.
pub(crate) fn probe_pid_namespace(namespace: policies::PidNamespace) -> Result<(), String> {
    match ask(&Task::ProbePids(namespace), Stdio::null(), &CancellationToken::new()) {
        Ok(Reply::Probed) => Ok(()),
        Ok(Reply::Failed(failure)) | Err(failure) => Err(failure.message),
        Ok(Reply::Done(_) | Reply::Taken | Reply::Placed | Reply::Denied(_)) => {
            Err(JobFailure::another_answer().message)
        }
    }
}

/// Returns the variables by which libgit2 finds the configuration of this process's user. libgit2 skips a missing directory,
/// but fails at a directory that it may not enter, such as the `HOME` of another user under `setpriv`. So the result is
/// empty if such a directory is among them.
fn places_of_configuration() -> Vec<(&'static str, OsString)> {
    let closed = |dir: &OsString| {
        matches!(rustix::fs::access(dir, rustix::fs::Access::EXEC_OK), Err(rustix::io::Errno::ACCESS))
    };
    let variables: Vec<_> = ["HOME", "XDG_CONFIG_HOME"]
        .into_iter()
        .filter_map(|name| Some((name, std::env::var_os(name)?)))
        .collect();
    if variables.iter().any(|(_, dir)| closed(dir)) { Vec::new() } else { variables }
}

fn ask(task: &Task, stderr: Stdio, cancel: &CancellationToken) -> Result<Reply, JobFailure> {
    ask_telling(task, stderr, &Asker { cancel, on_checkout: &|_| {} })
}

fn ask_telling(task: &Task, stderr: Stdio, asker: &Asker<'_>) -> Result<Reply, JobFailure> {
    let cancel = asker.cancel;
    let fail = |step: &str, e: &(dyn std::error::Error + 'static)| {
        let cause = if is_shortage(e) { Cause::NoProcess } else { Cause::Process };
        JobFailure { cause, ..JobFailure::process(format!("the job process failed to {step}: {e}")) }
    };
    let mut command = Command::new("/proc/self/exe");
    command
        .arg("__job")
        .arg(std::process::id().to_string())
        .env_clear()
        // The directory does not exist, so libgit2 reads no configuration.
        .env("HOME", "/nonexistent")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(stderr);
    if matches!(task, Task::Here { .. }) {
        command.envs(places_of_configuration());
    }
    let mut child = command.spawn().map_err(|e| fail("start", &e))?;
    let body = serde_json::to_vec(task).map_err(|e| fail("be asked", &e))?;
    // The process may be under the control of the worker, whose user it has. So the number of its reports is limited here
    // too.
    let told_at = Cell::new(None::<Instant>);
    let on_line = |line: &[u8]| {
        if told_at.get().is_some_and(|at| at.elapsed() < PACE) {
            return;
        }
        told_at.set(Some(Instant::now()));
        if let Ok(files) = serde_json::from_slice(line) {
            (asker.on_checkout)(files);
        }
    };
    let sent = child.stdin.take().map_or(Ok(()), |mut stdin| stdin.write_all(&body));
    let answer = match sent {
        Ok(()) => {
            wait::answer_of(&mut child, &wait::Terms { limit: task.limit(), cancel, on_line: &on_line })
        }
        Err(e) => Err(NoAnswer::Unread(e)),
    };
    // The process is reaped before the reply is used, so that each return below leaves no zombie.
    reap(child);
    match answer {
        Ok(answer) => serde_json::from_slice(&answer).map_err(|e| fail("answer", &e)),
        Err(NoAnswer::Unread(e)) => Err(fail("answer", &e)),
        Err(NoAnswer::Cancelled) => {
            let failure = JobFailure::process("it was given up before it was done");
            Err(JobFailure { cause: Cause::GivenUp, ..failure })
        }
        Err(NoAnswer::Stands(time)) => {
            let what = format!("stood still for {} s and was ended", time.as_secs());
            Err(ended(task, &what, cancel))
        }
        Err(NoAnswer::Overdue(time)) => {
            let what = format!("took longer than {} s and was ended", time.as_secs());
            Err(ended(task, &what, cancel))
        }
    }
}

/// Reaps a job process that has replied or was killed.
fn reap(mut child: Child) {
    let until = Instant::now() + FAREWELL;
    while matches!(child.try_wait(), Ok(None)) {
        if Instant::now() >= until {
            // The process waits in the kernel, such as for a device. A thread waits for its end, so that the caller can go on.
            std::thread::spawn(move || child.wait());
            return;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Makes the failure for a job process that was killed. It names the directory that did not respond, or the file at which
/// git hangs, if it can be found.
fn ended(task: &Task, what: &str, cancel: &CancellationToken) -> JobFailure {
    if let Some(directory) = task.job().and_then(Job::directory) {
        let shown = directory.display();
        return JobFailure {
            cause: Cause::NoAnswer,
            message: format!("{shown} does not answer: a look at it {what}"),
            hint: Some(format!(
                "see whether what is mounted there answers: timeout 10 stat '{shown}'; a mount whose server is gone goes \
                 with umount --lazy"
            )),
        };
    }
    let Some(repository) = task.job().and_then(Job::repository) else {
        return JobFailure::process(format!("the job process {what}"));
    };
    let shown = repository.display();
    let failure = |why: String, hint: String| JobFailure {
        cause: Cause::Stalled,
        message: format!("git {what} in {shown}{why}"),
        hint: Some(hint),
    };
    match irregular(task, repository, cancel) {
        Some(found) => failure(format!(": {found}"), format!("remove it: rm '{}'", found.path.display())),
        None => failure(
            String::new(),
            format!("see what git does there, with a limit: timeout 60 git -C '{shown}' status"),
        ),
    }
}

/// Adds to a failure in a repository the FIFO that may have caused it. git checks the type of a file before it opens it, and
/// reports a FIFO in place of a file as a missing repository or object. Sockets are ignored, because git makes sockets
/// itself.
fn explained(task: &Task, failure: JobFailure, cancel: &CancellationToken) -> JobFailure {
    let repository = match task.job() {
        Some(Job::PrepareWorktree { worktree, .. }) => &worktree.repository,
        Some(Job::OpenRepository { path }) => path,
        _ => return failure,
    };
    if failure.cause.is_lack() {
        return failure;
    }
    match irregular(task, repository, cancel) {
        Some(found) if found.kind == IrregularKind::Fifo => JobFailure {
            message: format!("{}: {found}", failure.message),
            hint: Some(format!("remove it: rm '{}'", found.path.display())),
            ..failure
        },
        Some(_) | None => failure,
    }
}

fn irregular(task: &Task, repository: &std::path::Path, cancel: &CancellationToken) -> Option<Irregular> {
    let job = Job::FindIrregular { top: repository.to_owned() };
    match ask(&task.with(job)?, Stdio::null(), cancel) {
        Ok(Reply::Done(outcome)) => match *outcome {
            Outcome::Irregular(found) => found,
            _ => None,
        },
        Ok(_) | Err(_) => None,
    }
}
/// Refuses a path on a file system that does not respond. A missing path is not refused.
pub fn require_answer(path: &Path) -> Result<(), JobFailure> {
    match work(None, Vec::new(), Vec::new(), Job::FindExistingDirectory { path: path.to_owned() }) {
        Err(failure) if failure.cause == Cause::NoAnswer => Err(failure),
        Ok(_) | Err(_) => Ok(()),
    }
}

/// Returns the paths that programs of the system read at their start, as far as they exist.
pub fn system_reads() -> Vec<PathBuf> {
    ["/usr", "/lib", "/lib64", "/etc", "/proc", "/dev/null", "/dev/urandom"]
        .map(PathBuf::from)
        .into_iter()
        .filter(|path| path.exists())
        .collect()
}
