//! Changes that a task's runs made in git, as files and lines: from the working tree during a run; afterwards from the
//! tree that it left, or its commits.
//!
//! A worker may have written anything into the tree, so a job process under its uid reads it, within limits.

use std::path::{Path, PathBuf};

use kernel::{BoardName, Purpose, Run, RunId, Task, WorkspaceSpec};
use policies::Identity;
use tokio_util::sync::CancellationToken;
use workspace::{Detail, Diff, DiffOf, Evidence, Job, Outcome, Worktree};

use super::place;
use super::records::Records;
use base::exit::Code;
use base::failure::Failure;
use base::paths::Root;
use host::job;
use host::worker_user::job_user;

/// Request for the changes of a task.
#[derive(Clone, Debug)]
pub struct Wanted {
    pub task: Task,
    /// All runs of the task, oldest first.
    pub runs: Vec<Run>,
    /// Limits the changes to one run; none for all runs.
    pub run: Option<RunId>,
    /// Lines, or only counts.
    pub detail: Detail,
}

/// Changes of runs.
#[derive(Clone, Debug)]
pub struct Work {
    /// Last run that contributed.
    pub run: RunId,
    /// True while that run is in progress.
    pub live: bool,
    pub diff: Diff,
}

/// Git state of a run.
struct Stood<'a> {
    run: &'a Run,
    base: Option<String>,
    /// Commit at its end; none during the run, or if there was none.
    head: Option<String>,
    /// Working tree and user of a run in progress.
    live: Option<Live>,
}

struct Live {
    tree: PathBuf,
    worktree: Option<Worktree>,
    identity: Option<Identity>,
    reach: (Vec<PathBuf>, Vec<PathBuf>),
}

/// Parameters of the job process.
struct Look {
    of: DiffOf,
    live: Option<Worktree>,
    identity: Option<Identity>,
    reach: (Vec<PathBuf>, Vec<PathBuf>),
}

/// Computes the changes, unless cancelled. Blocks.
pub fn diff(
    root: &Root,
    board: &BoardName,
    wanted: &Wanted,
    cancel: &CancellationToken,
) -> Result<Work, Failure> {
    let Wanted { task, runs, run, detail } = wanted;
    let mut stood = Vec::new();
    // A check only tests the work.
    for one in runs.iter().filter(|one| one.purpose != Purpose::Check && run.is_none_or(|run| run == one.id))
    {
        stood.extend(of_run(root, board, one)?);
    }
    let Some(last) = stood.pop() else { return Err(nothing(wanted)) };
    // A task with a new workspace has started over there, so earlier runs elsewhere do not count.
    let first = stood.into_iter().find(|one| one.run.workspace_path == last.run.workspace_path);
    let base = first.map_or_else(|| last.base.clone(), |first| first.base);
    let of = |path: PathBuf, end: Option<String>| DiffOf { path, base: base.clone(), end, detail: *detail };
    let (run, live) = (last.run.id, last.live.is_some());
    let look = match last.live {
        Some(live) => {
            Look { of: of(live.tree, None), live: live.worktree, identity: live.identity, reach: live.reach }
        }
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

/// Returns the git state of a run; none if it did not work in git.
fn of_run<'a>(root: &Root, board: &BoardName, run: &'a Run) -> Result<Option<Stood<'a>>, Failure> {
    if let Some(evidence) = &run.evidence {
        let Ok(evidence) = serde_json::from_value::<Evidence>(evidence.clone()) else { return Ok(None) };
        return Ok(Some(Stood { run, base: evidence.base, head: evidence.head, live: None }));
    }
    if run.ended_at.is_some() {
        return Ok(None);
    }
    let records = Records::read(&root.run_dir(board, run.id)).map_err(Failure::failed)?;
    let Some(note) = records.note else { return Ok(None) };
    let Some(begun) = &note.begun else { return Ok(None) };
    let live = Live {
        tree: begun.tree().to_owned(),
        worktree: note.worktree.clone(),
        identity: note.identity(),
        reach: begun.reach(),
    };
    Ok(Some(Stood { run, base: begun.head().map(str::to_owned), head: None, live: Some(live) }))
}

/// Returns the tree of an ended run if no later run has worked there, else its last commit.
fn left(
    task: &Task,
    runs: &[Run],
    last: &Stood<'_>,
    of: impl Fn(PathBuf, Option<String>) -> DiffOf,
    cancel: &CancellationToken,
) -> Result<Look, Failure> {
    let gone = |why: &str| {
        Failure::new(Code::NotFound, format!("the work of run {} no longer exists: {why}", last.run.id))
            .hint(format!("supervisor show {} has what was found at its end", task.id))
    };
    let spec = task.workspace.spec().ok_or_else(|| gone("its workspace is not a git working tree"))?;
    let (ground, tree) = match spec {
        WorkspaceSpec::Worktree { repository: Some(repository) } => {
            let worktree = place::worktree(spec, &task.id).map(|worktree| worktree.path());
            (repository.clone(), worktree)
        }
        WorkspaceSpec::Directory(path) => (path.clone(), Some(path.clone())),
        WorkspaceSpec::Scratch | WorkspaceSpec::Worktree { repository: None } => {
            return Err(gone("its workspace is not a git working tree"));
        }
    };
    let worked_there = |tree: &Path, run: &Run| run.workspace_path.as_deref() == tree.to_str();
    // The directory may have been replaced since, so its owner is compared before anything in it is read.
    let found = place::ground_of(spec, &ground, cancel)?;
    if found.path != ground {
        return Err(gone(&format!("there is no {}", ground.display())));
    }
    let own = nix::unistd::geteuid().as_raw();
    let expected = last.run.worker_uid.unwrap_or(own);
    if found.owner.uid != expected {
        return Err(gone(&format!("{} belongs to uid {} now", ground.display(), found.owner.uid)));
    }
    let identity = (found.owner.uid != own).then(|| job_user(found.owner.uid));
    // Changes of a later run there do not belong to this run.
    let is_last = runs
        .iter()
        .filter(|run| run.id > last.run.id && run.purpose == Purpose::Work)
        .all(|later| later.workspace_path.is_none() || later.workspace_path != last.run.workspace_path);
    let reach = (job::system_reads(), vec![ground.clone()]);
    let whole =
        tree.filter(|tree| is_last && worked_there(tree, last.run) && tree.symlink_metadata().is_ok());
    let of = match (whole, &last.head) {
        (Some(tree), _) => of(tree, None),
        (None, Some(head)) => of(ground, Some(head.clone())),
        (None, None) => return Err(gone("it has committed nothing, and its tree is gone")),
    };
    Ok(Look { of, live: None, identity, reach })
}

fn nothing(wanted: &Wanted) -> Failure {
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
