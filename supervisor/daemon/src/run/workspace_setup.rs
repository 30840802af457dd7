//! Chooses the user of a run, and prepares its workspace.
//!
//! See decision 0093.

use std::path::Path;

use kernel::{BoardName, Profile, ScheduleName, Task, TaskId, Timestamp, WorkspaceSpec};
use policies::Identity;
use shim::shortage::is_shortage;
use tokio_util::sync::CancellationToken;
use workspace::directory::ExistingDirectory;
use workspace::{Author, Base, Job, Name, Outcome, Owner, Prepared, Worktree};

use super::environment::Environment;
use super::fault::{Fault, LaunchError, with_hint};
use super::stage::Stage;
use base::exit::Code;
use base::failure::Failure;
use base::paths::make_dir;
use host::job::{self, Asker, JobFailure, system_reads};
use host::unlinked;
use host::worker_user::{FileOwner, Unfit};

/// User and group ids that only one task has.
pub(crate) struct OwnNumbers<'a> {
    /// Uid of the task, which its claim has allocated; none unless its workspace is a scratch workspace.
    pub uid: Option<u32>,
    /// Allocates a gid for the task, for a directory whose owner has no account.
    pub gid: &'a dyn Fn() -> Result<u32, Failure>,
}

/// Returns the user of a worker; none for the daemon's user, if the daemon does not run as root.
///
/// In a daemon of root, the worker of a `dir` or `worktree` workspace runs as the owner of the directory or repository, with
/// the primary group of the owner's account. The worker of a scratch workspace runs with the task's own uid from the
/// configured range. A task gets the uid of an owner only if root or this user has created the task.
pub(crate) fn identity(
    spec: &WorkspaceSpec,
    task: &Task,
    own: &OwnNumbers<'_>,
    cancel: &CancellationToken,
) -> Result<Option<Identity>, LaunchError> {
    const STAGE: Stage = Stage::ChooseUser;
    if !nix::unistd::geteuid().is_root() {
        return Ok(None);
    }
    let (path, place) = match spec {
        WorkspaceSpec::Scratch => {
            let uid = own
                .uid
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
    // A job process looks at the directory, so that a file system that does not respond does not block the daemon.
    let existing = existing_directory(spec, path, cancel)
        .map_err(|failure| LaunchError::directory(STAGE, place.clone(), failure))?;
    let owner = existing.owner;
    // No worker runs as root or in a group with power over the host, even in a task that root has created.
    let file_owner = FileOwner::look_up(owner.uid).map_err(|unfit| {
        let fault = if unfit.is_momentary() { Fault::Host } else { Fault::Environment(place.clone()) };
        let error = with_hint(&format!("{} {unfit}", existing.path.display()), Some(remedy(&unfit, path)));
        LaunchError { stage: STAGE, error, fault }
    })?;
    if !matches!(task.creator_uid, Some(creator) if creator == 0 || creator == owner.uid) {
        let what = format!("{} belongs to uid {}, and", existing.path.display(), owner.uid);
        let made = |uid| format!("{what} the task was made by uid {uid}, who may not act as that user");
        let why = match (task.creator_uid, &task.origin.schedule) {
            (Some(uid), None) => made(uid),
            (Some(uid), Some(schedule)) => {
                let hint = format!("save it as root or as that user: supervisor schedules edit {schedule}");
                with_hint(&made(uid), Some(hint))
            }
            (None, Some(schedule)) => format!("{what} {}", unknown_creator(schedule)),
            (None, None) => format!("{what} the creator of the task is unknown"),
        };
        return Err(LaunchError::task(STAGE, why));
    }
    let allocated = || (own.gid)().map_err(|failure| LaunchError::refusal(STAGE, Environment::Root, failure));
    file_owner.worker(allocated).map(Some)
}

/// Returns the reason why the creator of a schedule's tasks is unknown, with advice.
pub(crate) fn unknown_creator(schedule: &ScheduleName) -> String {
    with_hint(
        &format!("it is not known who saved the schedule {schedule}"),
        Some(format!(
            "save it again, as root or as that user: supervisor schedules edit {schedule}. A file counts as its owner's \
             unless it is a symbolic link, or others may write to it or to its directory"
        )),
    )
}

/// Returns the directory whose owner decides the user of the worker: the named directory, or its nearest existing parent if
/// it has to be made.
///
/// The directory may be on a file system that does not respond, so a job process looks at it.
pub(super) fn existing_directory(
    spec: &WorkspaceSpec,
    path: &Path,
    cancel: &CancellationToken,
) -> Result<ExistingDirectory, JobFailure> {
    let path = path.to_owned();
    let job = match spec {
        WorkspaceSpec::Directory(_) => Job::FindExistingDirectory { path },
        WorkspaceSpec::Worktree { .. } | WorkspaceSpec::Scratch => Job::PrepareDirectory { path },
    };
    match job::work_unless(cancel, None, Vec::new(), Vec::new(), job)? {
        Outcome::ExistingDirectory(existing) => Ok(existing),
        Outcome::Prepared(prepared) => Ok(ExistingDirectory { path: prepared.path, owner: prepared.owner }),
        _ => Err(JobFailure::another_answer()),
    }
}

/// Returns advice on a directory whose owner cannot be the user of a worker.
pub(super) fn remedy(unfit: &Unfit, path: &Path) -> String {
    unfit.hint().unwrap_or_else(|| other_owner(path))
}

/// Returns advice on giving a directory of root to a user. Git then refuses the repository for any other user, root
/// included. The advice does not add it to root's `safe.directory`, because git would run programs that its configuration
/// names as root.
fn other_owner(path: &Path) -> String {
    let shown = path.display();
    if !unlinked::exists(path) {
        return format!("make it for a user of its own: install -d -o <user> -g <group> {shown}");
    }
    if is_of_system(path) {
        return "it belongs to the system and stays root's: make a directory for the work, such as \
                install -d -o <user> -g <group> /srv/<name>"
            .to_owned();
    }
    let git = format!("; then use git there as that user: runuser -u <user> -- git -C {shown} status");
    let git = if unlinked::exists(&path.join(".git")) { git.as_str() } else { "" };
    format!("give it to a user of its own: chown -R <user>: {shown}{git}")
}

/// Returns true if a directory must stay root's: a directory of the Filesystem Hierarchy Standard 3.0, or one under its
/// directories for programs, libraries, settings, devices and kernel state.
fn is_of_system(path: &Path) -> bool {
    const WHOLE: [&str; 12] =
        ["bin", "boot", "dev", "etc", "lib", "lib32", "lib64", "proc", "run", "sbin", "sys", "usr"];
    const ALONE: [&str; 17] = [
        "/",
        "/home",
        "/media",
        "/mnt",
        "/opt",
        "/root",
        "/srv",
        "/tmp",
        "/var",
        "/var/cache",
        "/var/lib",
        "/var/local",
        "/var/log",
        "/var/mail",
        "/var/opt",
        "/var/spool",
        "/var/tmp",
    ];
    let path = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    ALONE.iter().any(|alone| path == Path::new(alone))
        || WHOLE.iter().any(|whole| path.starts_with(Path::new("/").join(whole)))
}

/// Refuses a directory of scratch workspaces behind a symbolic link, because the paths that are closed to runs are derived
/// from the path of the root.
fn require_own(workspaces: &Path) -> Result<(), Failure> {
    let link = [workspaces.parent(), Some(workspaces)].into_iter().flatten().find(|path| path.is_symlink());
    link.map_or(Ok(()), |link| {
        let shown = link.display();
        Err(Failure::new(Code::Conflict, format!("{shown} is a symbolic link")).hint(format!(
            "make it a directory; one on another file system can be mounted there: mount --bind DIR {shown}"
        )))
    })
}

/// Board of a task, and the directory of its scratch workspaces.
#[derive(Clone, Copy)]
pub(crate) struct At<'a> {
    pub(crate) board: &'a BoardName,
    pub(crate) workspaces: &'a Path,
}

/// Prepares the workspace of a task, unless cancelled.
pub(crate) fn workspace(
    spec: &WorkspaceSpec,
    task: &Task,
    At { board, workspaces }: At<'_>,
    identity: Option<Identity>,
    asker: &Asker<'_>,
) -> Result<Prepared, LaunchError> {
    const STAGE: Stage = Stage::PrepareWorkspace;
    let cancel = asker.cancel;
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
            require_own(workspaces).map_err(|e| LaunchError::refusal(STAGE, place.clone(), e))?;
            make_dir(workspaces, 0o711).map_err(|e| LaunchError::refusal(STAGE, place.clone(), e))?;
            // The daemon prepares the directory itself, as root: it makes the directory where only the daemon can write,
            // then changes its owner.
            here(Job::PrepareScratch { base: workspaces.to_owned(), name, owner }, place)?
        }
        WorkspaceSpec::Directory(path) => {
            let place = Environment::Directory(path.clone());
            let made = match existing_directory(spec, path, cancel) {
                // The job process makes the directory as its future owner, so that a task cannot make a directory that this
                // user could not.
                Ok(existing) if existing.path != *path => {
                    let job = Job::MakeDirectory { path: path.clone() };
                    job::work_unless(cancel, identity, system_reads(), vec![existing.path], job)
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
            let author = author(task.assignee.as_ref());
            let read = system_reads();
            let write = vec![repository.clone()];
            let place = Environment::Repository(repository.clone());
            let worktree = Worktree::new(repository, name);
            let job = Job::PrepareWorktree { worktree, base, author: Some(author) };
            job::work_telling(asker, identity, read, write, job)
                .map_err(|failure| LaunchError::workspace(STAGE, place, failure))?
        }
    };
    match outcome {
        Outcome::Prepared(prepared) => Ok(prepared),
        Outcome::ExistingDirectory(_)
        | Outcome::Usable
        | Outcome::Removed(_)
        | Outcome::Measured(_)
        | Outcome::Inspected(_)
        | Outcome::Snapshot(_)
        | Outcome::Provided(_)
        | Outcome::Committed(_)
        | Outcome::Head(_)
        | Outcome::Evidence(_)
        | Outcome::Diff(_)
        | Outcome::Unfounded(_)
        | Outcome::Discovered(_)
        | Outcome::Sealed(_)
        | Outcome::Rest(_)
        | Outcome::Irregular(_) => Err(LaunchError::task(STAGE, "the job process answered another question")),
    }
}

/// Returns the author of the commits of a profile's runs.
pub(super) fn author(profile: Option<&Profile>) -> Author {
    let name = profile.map_or("worker", Profile::as_str);
    Author { name: name.to_owned(), email: format!("{name}@supervisor.invalid") }
}

/// Returns the worktree of a task, if it works in one.
pub(crate) fn worktree(spec: &WorkspaceSpec, task: &TaskId) -> Option<Worktree> {
    match spec {
        WorkspaceSpec::Worktree { repository: Some(repository) } => {
            Some(Worktree::new(repository, Name::new(task.as_str()).ok()?))
        }
        WorkspaceSpec::Scratch
        | WorkspaceSpec::Directory(_)
        | WorkspaceSpec::Worktree { repository: None } => None,
    }
}

/// Converts a time on `CLOCK_BOOTTIME`, in microseconds, to epoch seconds, the form in which workers get their deadline.
pub(crate) fn wall_seconds(now: Timestamp, boottime_us: u64, moment_us: u64) -> i64 {
    let ahead = i64::try_from(moment_us.saturating_sub(boottime_us)).unwrap_or(i64::MAX);
    now.as_micros().saturating_add(ahead) / 1_000_000
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_of_the_system_is_never_given_away() {
        for system in ["/", "/etc", "/usr/share", "/var", "/home", "/tmp", "/etc/../usr", "/root"] {
            let remedy_text = other_owner(Path::new(system));
            assert!(
                !remedy_text.contains("chown") && remedy_text.contains("install -d"),
                "{system}: {remedy_text}"
            );
        }
        let own = tempfile::tempdir().unwrap();
        let remedy_text = other_owner(own.path());
        assert!(remedy_text.contains(&format!("chown -R <user>: {}", own.path().display())), "{remedy_text}");
    }
}
