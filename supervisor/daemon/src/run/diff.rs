//! Computes the changes that the runs of a task made in git, as files and lines. The source is the working tree during a
//! run, and afterwards the tree that the run left, or its last commit.
//!
//! A worker may have written anything into the tree, so a job process under the worker's uid reads it, within limits.

use std::path::{Path, PathBuf};

use kernel::{BoardName, Purpose, Run, RunId, Task, WorkspaceSpec};
use policies::Identity;
use tokio_util::sync::CancellationToken;
use workspace::{Detail, Diff, DiffOf, Evidence, Job, Outcome, Worktree};

use super::records::Records;
use super::workspace_setup;
use base::exit::Code;
use base::failure::Failure;
use base::paths::Root;
use host::job;
use host::worker_user::job_user;

/// Request for the changes of a task.
#[derive(Clone, Debug)]
pub struct DiffRequest {
    pub task: Task,
    /// All runs of the task, oldest first.
    pub runs: Vec<Run>,
    /// Limits the changes to one run; none for all runs.
    pub run: Option<RunId>,
    /// Extent of the reply: the changed lines, or only their numbers.
    pub detail: Detail,
}

/// Changes that runs made.
#[derive(Clone, Debug)]
pub struct Work {
    /// Last run whose changes are included.
    pub run: RunId,
    /// True while that run is in progress.
    pub live: bool,
    pub diff: Diff,
}

/// Git state of a run, at its begin and at its end.
struct Stood<'a> {
    run: &'a Run,
    /// Commit at the begin of the run, in hex; none if the repository had none.
    base: Option<String>,
    /// Commit at the end of the run, in hex; none during the run, or if the repository had none.
    head: Option<String>,
    /// Working tree of a run in progress; none for an ended run.
    live: Option<Live>,
}

/// Working tree of a run in progress.
struct Live {
    tree: PathBuf,
    worktree: Option<Worktree>,
    /// User of the worker; none if it is the daemon's.
    identity: Option<Identity>,
    /// Paths that the job process may read, and paths that it may write.
    reach: (Vec<PathBuf>, Vec<PathBuf>),
}

/// Parameters of the job process.
struct DiffJob {
    of: DiffOf,
    /// Worktree of a run in progress.
    live: Option<Worktree>,
    /// User of the job process; none for the daemon's.
    identity: Option<Identity>,
    /// Paths that the job process may read, and paths that it may write.
    reach: (Vec<PathBuf>, Vec<PathBuf>),
}

/// Computes the changes of a task. Blocks until the job process has replied or the caller cancels.
///
/// # Errors
/// No run worked in git, or the work of the last run no longer exists.
pub fn diff(
    root: &Root,
    board: &BoardName,
    wanted: &DiffRequest,
    cancel: &CancellationToken,
) -> Result<Work, Failure> {
    let DiffRequest { task, runs, run, detail } = wanted;
    let mut stood = Vec::new();
    // The run of a check tests the work and adds nothing to it.
    for one in runs.iter().filter(|one| one.purpose != Purpose::Check && run.is_none_or(|run| run == one.id))
    {
        stood.extend(of_run(root, board, one)?);
    }
    let Some(last) = stood.pop() else { return Err(nothing(wanted)) };
    // The changes begin with the first run in the workspace of the last run, because a task with another workspace has
    // started anew in it.
    let first = stood.into_iter().find(|one| one.run.workspace_path == last.run.workspace_path);
    let base = first.map_or_else(|| last.base.clone(), |first| first.base);
    let of = |path: PathBuf, end: Option<String>| DiffOf { path, base: base.clone(), end, detail: *detail };
    let (run, live) = (last.run.id, last.live.is_some());
    let look = match last.live {
        Some(live) => DiffJob {
            of: of(live.tree, None),
            live: live.worktree,
            identity: live.identity,
            reach: live.reach,
        },
        None => left(task, runs, &last, of, cancel)?,
    };
    if look.identity.is_none() && nix::unistd::geteuid().is_root() {
        return Err(Failure::failed(format!("no user is known who could read the work of run {run}")));
    }
    let (read, write) = look.reach;
    let job = Job::ReadDiff { of: look.of, live: look.live };
    match job::work_unless(cancel, look.identity, read, write, job)? {
        Outcome::Diff(diff) => Ok(Work { run, live, diff }),
        _ => Err(job::JobFailure::another_answer().into()),
    }
}

/// Returns the git state of a run: from the evidence that its end stored, or from its run directory while it is in
/// progress. None if the run did not work in git.
fn of_run<'a>(root: &Root, board: &BoardName, run: &'a Run) -> Result<Option<Stood<'a>>, Failure> {
    if let Some(evidence) = &run.evidence {
        let Ok(evidence) = serde_json::from_value::<Evidence>(evidence.clone()) else { return Ok(None) };
        return Ok(Some(Stood { run, base: evidence.base, head: evidence.head, live: None }));
    }
    if run.ended_at.is_some() {
        return Ok(None);
    }
    let records = Records::read(&root.run_dir(board, run.id)).map_err(Failure::failed)?;
    let Some(run_state) = records.run_state else { return Ok(None) };
    let Some(git_start) = &run_state.git_start else { return Ok(None) };
    let live = Live {
        tree: git_start.tree().to_owned(),
        worktree: run_state.worktree.clone(),
        identity: run_state.identity(),
        reach: git_start.reach(),
    };
    Ok(Some(Stood { run, base: git_start.head().map(str::to_owned), head: None, live: Some(live) }))
}

/// Returns the parameters for an ended run: its tree if the tree exists and no later run has worked in it, else its last
/// commit.
fn left(
    task: &Task,
    runs: &[Run],
    last: &Stood<'_>,
    of: impl Fn(PathBuf, Option<String>) -> DiffOf,
    cancel: &CancellationToken,
) -> Result<DiffJob, Failure> {
    let gone = |why: &str| {
        Failure::new(Code::NotFound, format!("the work of run {} no longer exists: {why}", last.run.id))
            .hint(format!("supervisor show {} has what was found at its end", task.id))
    };
    let spec = task.workspace.spec().ok_or_else(|| gone("its workspace is not a git working tree"))?;
    let (directory, tree) = match spec {
        WorkspaceSpec::Worktree { repository: Some(repository) } => {
            let worktree = workspace_setup::worktree(spec, &task.id).map(|worktree| worktree.path());
            (repository.clone(), worktree)
        }
        WorkspaceSpec::Directory(path) => (path.clone(), Some(path.clone())),
        WorkspaceSpec::Scratch | WorkspaceSpec::Worktree { repository: None } => {
            return Err(gone("its workspace is not a git working tree"));
        }
    };
    let worked_there = |tree: &Path, run: &Run| run.workspace_path.as_deref() == tree.to_str();
    // The directory may have been replaced since the run, so its owner is compared with the run's user before anything in
    // it is read.
    let existing = workspace_setup::existing_directory(spec, &directory, cancel)?;
    if existing.path != directory {
        return Err(gone(&format!("there is no {}", directory.display())));
    }
    let daemon_uid = nix::unistd::geteuid().as_raw();
    let expected = last.run.worker_uid.unwrap_or(daemon_uid);
    if existing.owner.uid != expected {
        return Err(gone(&format!("{} belongs to uid {} now", directory.display(), existing.owner.uid)));
    }
    let identity = (existing.owner.uid != daemon_uid).then(|| job_user(existing.owner.uid));
    // A later run in the same tree has added its own changes to it.
    let is_last = runs
        .iter()
        .filter(|run| run.id > last.run.id && run.purpose == Purpose::Work)
        .all(|later| later.workspace_path.is_none() || later.workspace_path != last.run.workspace_path);
    let reach = (job::system_reads(), vec![directory.clone()]);
    let whole =
        tree.filter(|tree| is_last && worked_there(tree, last.run) && tree.symlink_metadata().is_ok());
    let of = match (whole, &last.head) {
        (Some(tree), _) => of(tree, None),
        (None, Some(head)) => of(directory, Some(head.clone())),
        (None, None) => return Err(gone("it has committed nothing, and its tree is gone")),
    };
    Ok(DiffJob { of, live: None, identity, reach })
}

fn nothing(wanted: &DiffRequest) -> Failure {
    let id = &wanted.task.id;
    let (message, hint) = match wanted.run {
        Some(run) if !wanted.runs.iter().any(|one| one.id == run) => {
            (format!("{id} has no run {run}"), format!("supervisor runs {id}"))
        }
        Some(run) => (
            format!("run {run} of {id} used no git repository, or its repository can no longer be read"),
            format!("supervisor logs {id} {run}"),
        ),
        None => (
            format!("no run of {id} used a git repository, or their repositories can no longer be read"),
            "a task has one with --workspace worktree:/path/of/the/repository".to_owned(),
        ),
    };
    Failure::new(Code::NotFound, message).hint(hint)
}
