//! Where a run works and as whom: the rules of DESIGN sections 7 and 8, applied to one task.

use std::path::{Path, PathBuf};

use kernel::{BoardName, LostArtifact, Task, TaskId, Timestamp};
use policies::Identity;
use tokio_util::sync::CancellationToken;
use workspace::directory::Ground;
use workspace::{Author, Base, Job, Name, Outcome, Owner, Prepared, WorkspaceSpec, Worktree};

use super::environment::Environment;
use super::fault::{Fault, LaunchError, with_hint};
use super::stage::Stage;
use crate::config::WorkerConfig;
use crate::daemon::host::job::{self, Cause, JobFailure};
use crate::exit::Code;
use crate::failure::Failure;
use crate::paths::{Root, make_dir};
use crate::shortage::is_shortage;

/// The user of a worker. None keeps the daemon's, which is then not root.
///
/// As root: the owner of the directory or repository for `dir` and `worktree`, else the task's own uid of the range.
/// A uid is taken from an owner only if the task was made by root or by that very user.
pub(in crate::daemon) fn identity(
    spec: &WorkspaceSpec,
    task: &Task,
    own_uid: Option<u32>,
    cancel: &CancellationToken,
) -> Result<Option<Identity>, LaunchError> {
    const STAGE: Stage = Stage::ChooseUser;
    if !nix::unistd::geteuid().is_root() {
        return Ok(None);
    }
    let (path, place) = match spec {
        WorkspaceSpec::Scratch => {
            let uid = own_uid
                .ok_or_else(|| LaunchError::task(STAGE, "no uid was allocated from worker.first_uid on"))?;
            return Ok(Some(Identity { uid, gid: uid }));
        }
        WorkspaceSpec::Directory(path) => (path, Environment::Directory(path.clone())),
        WorkspaceSpec::Worktree { repository: Some(path) } => (path, Environment::Repository(path.clone())),
        WorkspaceSpec::Worktree { repository: None } => {
            return Err(LaunchError::task(
                STAGE,
                "the task names no repository (write worktree:/path/of/the/repository)",
            ));
        }
    };
    let ground = ground_of(spec, path, cancel)
        .map_err(|failure| LaunchError::ground(STAGE, place.clone(), failure))?;
    let owner = ground.owner;
    if owner.uid == 0 || owner.gid == 0 {
        let error = with_hint(
            &format!("{} belongs to root, and no worker runs as root", ground.path.display()),
            Some(other_owner(path)),
        );
        return Err(LaunchError { stage: STAGE, error, fault: Fault::Environment(place) });
    }
    if !matches!(task.creator_uid, Some(creator) if creator == 0 || creator == owner.uid) {
        return Err(LaunchError::task(
            STAGE,
            format!(
                "{} belongs to uid {}, and the task was made by {}, who may not act as that user",
                ground.path.display(),
                owner.uid,
                task.creator_uid.map_or_else(|| "somebody unknown".to_owned(), |uid| format!("uid {uid}"))
            ),
        ));
    }
    Ok(Some(Identity { uid: owner.uid, gid: owner.gid }))
}

/// By whose owner the worker's user is chosen: the directory that is named, or where it may be made that which it is made in.
///
/// A directory may lie on a file system that does not answer, so a job process looks at it.
fn ground_of(spec: &WorkspaceSpec, path: &Path, cancel: &CancellationToken) -> Result<Ground, JobFailure> {
    let path = path.to_owned();
    let job = match spec {
        WorkspaceSpec::Directory(_) => Job::FindGround { path },
        WorkspaceSpec::Worktree { .. } | WorkspaceSpec::Scratch => Job::PrepareDirectory { path },
    };
    match job::work_unless(cancel, None, Vec::new(), Vec::new(), job)? {
        Outcome::Ground(ground) => Ok(ground),
        Outcome::Prepared(prepared) => Ok(Ground { path: prepared.path, owner: prepared.owner }),
        _ => Err(JobFailure::another_answer()),
    }
}

/// Refuses a path that does not answer. Whether anything is there is asked later, by whoever knows what should be.
pub(crate) fn require_answer(path: &Path) -> Result<(), JobFailure> {
    match job::work(None, Vec::new(), Vec::new(), Job::FindGround { path: path.to_owned() }) {
        Err(failure) if failure.cause == Cause::NoAnswer => Err(failure),
        Ok(_) | Err(_) => Ok(()),
    }
}

/// How a directory of root's becomes one that a worker can have. Git refuses a repository of another user, root's git too.
fn other_owner(path: &Path) -> String {
    let shown = path.display();
    if !path.exists() {
        return format!("make it for a user of its own: install -d -o <user> -g <group> {shown}");
    }
    let git = format!("; for root's own git there: git config --global --add safe.directory {shown}");
    let git = if path.join(".git").exists() { git.as_str() } else { "" };
    format!("give it to a user of its own: chown -R <user>: {shown}{git}")
}

/// Whether the directory of a workspace is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Presence {
    /// It is, or each run has one of its own.
    There,
    /// The first run makes it.
    ToBeMade,
}

/// Refuses a workspace that no run could use as things are: a directory that is closed to workers, that is missing and
/// cannot be made, or whose user no worker may be. What changes between now and the start is found again by the start.
pub(crate) fn check(
    (root, config): (&Root, &WorkerConfig),
    spec: &WorkspaceSpec,
    caller: Option<u32>,
) -> Result<Presence, Failure> {
    let (path, what) = match spec {
        WorkspaceSpec::Scratch => return Ok(Presence::There),
        WorkspaceSpec::Directory(path) => (path, "directory"),
        WorkspaceSpec::Worktree { repository: Some(path) } => (path, "repository"),
        WorkspaceSpec::Worktree { repository: None } => {
            return Err(Failure::usage("no repository is given for the worktree")
                .hint("use worktree:/path/to/repository, or create the task from inside a repository"));
        }
    };
    let refused = |code, failure: JobFailure| Failure { code, message: failure.message, hint: failure.hint };
    let ground = match ground_of(spec, path, &CancellationToken::new()) {
        Err(failure) if matches!(failure.cause, Cause::NoAnswer | Cause::Shortage) => {
            return Err(refused(Code::TryAgain, failure));
        }
        found => found,
    };
    // It has answered: this look and those that follow are short.
    super::closed::check(root, config, spec)?;
    let ground = ground
        .map_err(|failure| refused(if path.exists() { Code::Usage } else { Code::NotFound }, failure))?;
    let owner = ground.owner;
    let presence = if ground.path == *path { Presence::There } else { Presence::ToBeMade };
    if matches!(spec, WorkspaceSpec::Worktree { .. })
        && !path.join(".git").exists()
        && !path.join("HEAD").exists()
    {
        return Err(Failure::new(
            Code::NotFound,
            format!("there is no git repository at {}", path.display()),
        )
        .hint(format!("run `git init {0}` and commit something, or use dir:{0}", path.display())));
    }
    if !nix::unistd::geteuid().is_root() {
        may_make(presence, path, &ground)?;
        return require_usable(spec, None).map(|()| presence);
    }
    if owner.uid == 0 || owner.gid == 0 {
        let (code, lacks) = match presence {
            Presence::There => (Code::NotPermitted, String::new()),
            Presence::ToBeMade => (Code::NotFound, format!("{} does not exist: ", path.display())),
        };
        let place = ground.path.display();
        return Err(Failure::new(
            code,
            format!("{lacks}the {what} {place} belongs to root, and no worker runs as root"),
        )
        .hint(other_owner(path)));
    }
    match caller {
        Some(caller) if caller == 0 || caller == owner.uid => {
            let owner = Identity { uid: owner.uid, gid: owner.gid };
            require_usable(spec, Some(owner)).map(|()| presence)
        }
        _ => Err(Failure::new(
            Code::NotPermitted,
            format!(
                "the {what} {} belongs to uid {}, and its worker would act as that user",
                ground.path.display(),
                owner.uid
            ),
        )
        .hint("only root or that user can create such a task")),
    }
}

/// Refuses a repository that cannot have worktrees, such as a submodule, by the rule of the start.
fn require_usable(spec: &WorkspaceSpec, owner: Option<Identity>) -> Result<(), Failure> {
    let WorkspaceSpec::Worktree { repository: Some(path) } = spec else { return Ok(()) };
    let job = Job::OpenRepository { path: path.clone() };
    match job::work(owner, system_reads(), vec![path.clone()], job) {
        Ok(_) => Ok(()),
        Err(failure) => {
            let code = if failure.cause == Cause::Shortage { Code::TryAgain } else { Code::Conflict };
            Err(Failure { code, message: failure.message, hint: failure.hint })
        }
    }
}

/// Refuses a missing directory that this user, as whom its workers run, may not make.
fn may_make(presence: Presence, path: &Path, ground: &Ground) -> Result<(), Failure> {
    use rustix::fs::Access;
    let may = rustix::fs::access(&ground.path, Access::WRITE_OK | Access::EXEC_OK);
    if presence == Presence::There || may.is_ok() {
        return Ok(());
    }
    let (missing, above) = (path.display(), ground.path.display());
    Err(Failure::new(
        Code::NotFound,
        format!("{missing} does not exist, and this user cannot create it in {above}"),
    )
    .hint(format!("use a directory of your own, or have it created: mkdir -p {missing}")))
}

/// Makes the workspace of a task ready, unless it is given up before.
pub(in crate::daemon) fn workspace(
    spec: &WorkspaceSpec,
    task: &Task,
    (board, workspaces): (&BoardName, &Path),
    identity: Option<Identity>,
    cancel: &CancellationToken,
) -> Result<Prepared, LaunchError> {
    const STAGE: Stage = Stage::PrepareWorkspace;
    let here = |job: Job, place: Environment| {
        job.run().map_err(|e| {
            if is_shortage(&e) {
                LaunchError::at(STAGE, place, &e)
            } else {
                LaunchError::workspace(STAGE, place, JobFailure::from(&e))
            }
        })
    };
    let name = Name::new(task.id.as_str()).map_err(|e| LaunchError::task(STAGE, e.to_string()))?;
    let owner = identity.map(|identity| Owner { uid: identity.uid, gid: identity.gid });
    let outcome = match spec {
        WorkspaceSpec::Scratch => {
            let place = Environment::Workspaces(board.clone());
            make_dir(workspaces, 0o711).map_err(|e| LaunchError::refusal(STAGE, place.clone(), e))?;
            // A new directory beneath one that only the daemon writes to: made by the daemon, then given away.
            here(Job::PrepareScratch { base: workspaces.to_owned(), name, owner }, place)?
        }
        WorkspaceSpec::Directory(path) => {
            let place = Environment::Directory(path.clone());
            let made = match ground_of(spec, path, cancel) {
                // Made as the user that it is to belong to, who can make nothing else than that user could.
                Ok(ground) if ground.path != *path => {
                    let job = Job::MakeDirectory { path: path.clone() };
                    job::work_unless(cancel, identity, system_reads(), vec![ground.path], job)
                }
                _ => {
                    let job = Job::PrepareDirectory { path: path.clone() };
                    job::work_unless(cancel, None, Vec::new(), Vec::new(), job)
                }
            };
            made.map_err(|failure| LaunchError::workspace(STAGE, place, failure))?
        }
        WorkspaceSpec::Worktree { repository } => {
            let repository = repository.clone().unwrap_or_default();
            let base = match &task.branch_name {
                Some(branch) => Base::Branch(branch.clone()),
                None => Base::Head,
            };
            let profile = task.assignee.as_ref().map_or("worker", |profile| profile.as_str());
            let author = Author { name: profile.to_owned(), email: format!("{profile}@supervisor.invalid") };
            let read = system_reads();
            let write = vec![repository.clone()];
            let place = Environment::Repository(repository.clone());
            let worktree = Worktree::new(repository, name);
            let job = Job::PrepareWorktree { worktree, base, author: Some(author) };
            job::work_unless(cancel, identity, read, write, job)
                .map_err(|failure| LaunchError::workspace(STAGE, place, failure))?
        }
    };
    match outcome {
        Outcome::Prepared(prepared) => Ok(prepared),
        Outcome::Ground(_)
        | Outcome::Usable
        | Outcome::Removed(_)
        | Outcome::Measured(_)
        | Outcome::Inspected(_)
        | Outcome::Standing(_)
        | Outcome::Provided(_)
        | Outcome::Committed(_)
        | Outcome::Discovered(_)
        | Outcome::Sealed(_)
        | Outcome::Irregular(_) => Err(LaunchError::task(STAGE, "the job process answered another question")),
    }
}

/// The worktree that a task works in, if it is to work in one.
pub(in crate::daemon) fn worktree(spec: &WorkspaceSpec, task: &TaskId) -> Option<Worktree> {
    match spec {
        WorkspaceSpec::Worktree { repository: Some(repository) } => {
            Some(Worktree::new(repository, Name::new(task.as_str()).ok()?))
        }
        WorkspaceSpec::Scratch
        | WorkspaceSpec::Directory(_)
        | WorkspaceSpec::Worktree { repository: None } => None,
    }
}

/// Takes over what a run committed in its worktree, and makes that safe to look at. Blocking. What was wrong is returned
/// for its readers; an error is the host's, and to be tried again.
pub(in crate::daemon) fn seal(
    worktree: Worktree,
    identity: Option<Identity>,
) -> Result<Vec<LostArtifact>, String> {
    let branch = worktree.branch();
    let write = vec![worktree.repository.clone()];
    let lost = |path: String, reason: String| LostArtifact { path, reason };
    match job::work(identity, system_reads(), write, Job::SealWorktree { worktree }) {
        Ok(Outcome::Sealed(sealed)) => Ok(sealed
            .set_aside
            .into_iter()
            .map(|path| {
                let reason = "the worker could write it, and it names what git would run or what is not there: a repository is \
                              renamed to .git.untrusted, a file of git's is removed";
                lost(path.display().to_string(), reason.to_owned())
            })
            .collect()),
        Ok(_) => Ok(vec![lost(branch, "the job process answered another question".to_owned())]),
        Err(failure) if failure.cause == Cause::Shortage => Err(failure.message),
        Err(failure) => {
            let hint = failure.hint.map(|hint| format!(" ({hint})")).unwrap_or_default();
            Ok(vec![lost(branch, format!("{}{hint}", failure.message))])
        }
    }
}

/// What a program of the system reads before it does anything.
pub(crate) fn system_reads() -> Vec<PathBuf> {
    ["/usr", "/lib", "/lib64", "/etc", "/proc", "/dev/null", "/dev/urandom"]
        .map(PathBuf::from)
        .into_iter()
        .filter(|path| path.exists())
        .collect()
}

/// The private places of one run: a home and a directory for temporary files, its worker's and nobody else's.
#[derive(Debug)]
pub(in crate::daemon) struct Private {
    pub(in crate::daemon) home: PathBuf,
    pub(in crate::daemon) tmp: PathBuf,
    pub(in crate::daemon) prompt: PathBuf,
    pub(in crate::daemon) files: PathBuf,
}

/// Makes the private places of a run and writes its prompt.
pub(in crate::daemon) fn private(
    dir: &Path,
    identity: Option<Identity>,
    prompt: &str,
) -> Result<Private, LaunchError> {
    const STAGE: Stage = Stage::MakeHome;
    let fail = |path: &Path, e: &std::io::Error| {
        let failed = LaunchError::system(STAGE, e);
        LaunchError { error: format!("{}: {}", path.display(), failed.error), ..failed }
    };
    let parent = dir.parent().unwrap_or(dir);
    let refused = |e| LaunchError::refusal(STAGE, Environment::Root, e);
    make_dir(parent, 0o711).map_err(refused)?;
    make_dir(dir, 0o711).map_err(refused)?;
    let places = Private {
        home: dir.join("home"),
        tmp: dir.join("tmp"),
        prompt: dir.join("prompt"),
        files: dir.join("files"),
    };
    for path in [&places.home, &places.tmp] {
        make_dir(path, 0o700).map_err(refused)?;
        give(path, identity).map_err(|e| fail(path, &e))?;
    }
    write_private(&places.prompt, prompt).map_err(|e| fail(&places.prompt, &e))?;
    give(&places.prompt, identity).map_err(|e| fail(&places.prompt, &e))?;
    Ok(places)
}

fn write_private(path: &Path, text: &str) -> std::io::Result<()> {
    use std::io::Write as _;
    use std::os::unix::fs::OpenOptionsExt as _;
    let mut options = std::fs::OpenOptions::new();
    options.write(true).create(true).truncate(true).mode(0o400);
    options.open(path)?.write_all(text.as_bytes())
}

fn give(path: &Path, identity: Option<Identity>) -> std::io::Result<()> {
    match identity {
        Some(identity) => std::os::unix::fs::lchown(path, Some(identity.uid), Some(identity.gid)),
        None => Ok(()),
    }
}

/// Wall-clock seconds of a moment on `CLOCK_BOOTTIME`, as workers are told their deadline.
pub(in crate::daemon) fn wall_seconds(now: Timestamp, boottime_us: u64, moment_us: u64) -> i64 {
    let ahead = i64::try_from(moment_us.saturating_sub(boottime_us)).unwrap_or(i64::MAX);
    now.as_micros().saturating_add(ahead) / 1_000_000
}
