//! What a task's runs have done in git, as files and lines: while a run goes on, as its worker has it; afterwards from the tree that it
//! has left, or from what it has committed.
//!
//! A worker may have written anything into the tree: a job process under its own uid looks, within limits.

use std::path::{Path, PathBuf};

use kernel::{BoardName, Purpose, Run, RunId, Task};
use policies::Identity;
use tokio_util::sync::CancellationToken;
use workspace::{Detail, Diff, DiffOf, Evidence, Job, Outcome, WorkspaceSpec, Worktree};

use super::place;
use super::records::Records;
use crate::exit::Code;
use crate::failure::Failure;
use crate::host::job;
use crate::paths::Root;

/// The work that is to be shown.
#[derive(Clone, Debug)]
pub(crate) struct Wanted {
    pub(crate) task: Task,
    /// All runs of the task, oldest first.
    pub(crate) runs: Vec<Run>,
    /// Of this run alone; none for all runs of the task.
    pub(crate) run: Option<RunId>,
    /// Whether lines are wanted, or counts.
    pub(crate) detail: Detail,
}

/// The work of runs.
#[derive(Clone, Debug)]
pub(crate) struct Work {
    /// The last run that has a share in it.
    pub(crate) run: RunId,
    /// Whether that run goes on.
    pub(crate) live: bool,
    pub(crate) diff: Diff,
}

/// Where a run was in git.
struct Stood<'a> {
    run: &'a Run,
    base: Option<String>,
    /// The commit at its end; none where it goes on, or where there was none.
    head: Option<String>,
    /// What a run that goes on has, and who its worker is.
    live: Option<Live>,
}

struct Live {
    tree: PathBuf,
    worktree: Option<Worktree>,
    identity: Option<Identity>,
    reach: (Vec<PathBuf>, Vec<PathBuf>),
}

/// A look that a job process is to make.
struct Look {
    of: DiffOf,
    live: Option<Worktree>,
    identity: Option<Identity>,
    reach: (Vec<PathBuf>, Vec<PathBuf>),
}

/// Finds the work, unless it is given up. Blocking.
pub(crate) fn diff(
    root: &Root,
    board: &BoardName,
    wanted: &Wanted,
    cancel: &CancellationToken,
) -> Result<Work, Failure> {
    let Wanted { task, runs, run, detail } = wanted;
    let mut stood = Vec::new();
    // What proves the work has done none.
    for one in runs.iter().filter(|one| one.purpose != Purpose::Check && run.is_none_or(|run| run == one.id))
    {
        stood.extend(of_run(root, board, one)?);
    }
    let Some(last) = stood.pop() else { return Err(nothing(wanted)) };
    // A task that was given another workspace has begun there anew.
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

/// Where a run was in git; none where it was in no tree of git.
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

/// What a run that has ended has left: its tree where no later run has worked there, else its commits.
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
    let spec: WorkspaceSpec =
        task.workspace.parse().map_err(|_| gone("its workspace is not a git working tree"))?;
    let (ground, tree) = match &spec {
        WorkspaceSpec::Worktree { repository: Some(repository) } => {
            let worktree = place::worktree(&spec, &task.id).map(|worktree| worktree.path());
            (repository.clone(), worktree)
        }
        WorkspaceSpec::Directory(path) => (path.clone(), Some(path.clone())),
        WorkspaceSpec::Scratch | WorkspaceSpec::Worktree { repository: None } => {
            return Err(gone("its workspace is not a git working tree"));
        }
    };
    let worked_there = |tree: &Path, run: &Run| run.workspace_path.as_deref() == tree.to_str();
    let found = place::ground_of(&spec, &ground, cancel)?;
    if found.path != ground {
        return Err(gone(&format!("there is no {}", ground.display())));
    }
    let own = nix::unistd::geteuid().as_raw();
    let expected = last.run.worker_uid.unwrap_or(own);
    if found.owner.uid != expected {
        return Err(gone(&format!("{} belongs to uid {} now", ground.display(), found.owner.uid)));
    }
    let identity =
        (found.owner.uid != own).then_some(Identity { uid: found.owner.uid, gid: found.owner.gid });
    // What a later run did there is not this run's.
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
