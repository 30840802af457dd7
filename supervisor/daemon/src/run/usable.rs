//! Checks at the creation of a task that its workspace can be used, by the rules of the start.

use std::path::Path;
use std::sync::Arc;

use kernel::WorkspaceSpec;
use policies::Identity;
use tokio_util::sync::CancellationToken;
use workspace::Job;
use workspace::directory::ExistingDirectory;

use super::closed_paths;
use super::workspace_setup::{existing_directory, remedy};
use base::exit::Code;
use base::failure::Failure;
use base::paths::Root;
use host::job::{self, Cause, JobFailure};
use host::unlinked;
use host::worker_user::{FileOwner, job_user};
use service::Service;
use setup::config::WorkerConfig;

/// State of a workspace's directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Presence {
    /// The directory exists, or each run has its own.
    There,
    /// The first run makes it.
    ToBeMade,
}

/// Refuses a workspace that no run could use now: a directory that is closed to workers, that is missing and cannot be
/// made, or whose user no worker may be. The start checks again.
pub async fn check(
    service: &Arc<Service>,
    spec: &WorkspaceSpec,
    caller: Option<u32>,
) -> Result<Presence, Failure> {
    let (path, what) = match spec.clone() {
        // There is nothing to look at, so no blocking thread is needed.
        WorkspaceSpec::Scratch => return Ok(Presence::There),
        WorkspaceSpec::Directory(path) => (path, "directory"),
        WorkspaceSpec::Worktree { repository: Some(path) } => (path, "repository"),
        WorkspaceSpec::Worktree { repository: None } => {
            return Err(Failure::usage("no repository is given for the worktree")
                .hint("use worktree:/path/to/repository, or create the task from inside a repository"));
        }
    };
    // A plugin or the sender of a chat: the answer of the host would tell it of places that root alone may see, and no
    // worker could act for it there.
    if nix::unistd::geteuid().is_root() && caller.is_none() {
        let why = format!(
            "nothing works in the {what} {} for a creator who is no known user of this host",
            path.display()
        );
        return Err(Failure::new(Code::NotPermitted, why)
            .hint("leave the workspace out, or have a user make the task"));
    }
    let (service, spec) = (Arc::clone(service), spec.clone());
    let looked = tokio::task::spawn_blocking(move || {
        look(service.root(), &service.config().worker, &spec, &path, what, caller)
    });
    looked.await.map_err(|panic| Failure::failed(format!("the workspace was not looked at: {panic}")))?
}

fn look(
    root: &Root,
    config: &WorkerConfig,
    spec: &WorkspaceSpec,
    path: &Path,
    what: &str,
    caller: Option<u32>,
) -> Result<Presence, Failure> {
    let refused =
        |code, failure: JobFailure| Failure { hint: failure.hint, ..Failure::new(code, failure.message) };
    // A job process looks first, because the file system may not respond.
    let existing = match existing_directory(spec, path, &CancellationToken::new()) {
        Err(failure) if failure.cause == Cause::NoAnswer || failure.cause.is_lack() => {
            return Err(refused(Code::TryAgain, failure));
        }
        found => found,
    };
    // The file system has responded, so this look and the following ones are short.
    closed_paths::check(root, config, spec)?;
    let existing = existing.map_err(|failure| match spec {
        // A directory made there would be no repository.
        WorkspaceSpec::Worktree { .. } if !unlinked::exists(path) => {
            Failure::new(Code::NotFound, format!("there is no git repository at {}", path.display()))
                .hint("name a repository that is there, as in worktree:/path/to/repository")
        }
        _ => refused(if unlinked::exists(path) { Code::Usage } else { Code::NotFound }, failure),
    })?;
    let owner = existing.owner;
    let presence = if existing.path == path { Presence::There } else { Presence::ToBeMade };
    if matches!(spec, WorkspaceSpec::Worktree { .. })
        && !unlinked::exists(&path.join(".git"))
        && !unlinked::exists(&path.join("HEAD"))
    {
        return Err(Failure::new(
            Code::NotFound,
            format!("there is no git repository at {}", path.display()),
        )
        .hint(format!("run `git init {0}` and commit something, or use dir:{0}", path.display())));
    }
    if !nix::unistd::geteuid().is_root() {
        may_make(presence, path, &existing)?;
        return require_usable(spec, None).map(|()| presence);
    }
    if let Err(unfit) = FileOwner::look_up(owner.uid) {
        let (code, lacks) = match presence {
            _ if unfit.is_momentary() => (Code::TryAgain, String::new()),
            Presence::There => (Code::NotPermitted, String::new()),
            Presence::ToBeMade => (Code::NotFound, format!("{} does not exist: ", path.display())),
        };
        let place = existing.path.display();
        return Err(
            Failure::new(code, format!("{lacks}the {what} {place} {unfit}")).hint(remedy(&unfit, path))
        );
    }
    match caller {
        Some(caller) if caller == 0 || caller == owner.uid => {
            require_usable(spec, Some(job_user(owner.uid))).map(|()| presence)
        }
        _ => Err(Failure::new(
            Code::NotPermitted,
            format!(
                "the {what} {} belongs to uid {}, and its worker would act as that user",
                existing.path.display(),
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
    match job::work(owner, job::system_reads(), vec![path.clone()], job) {
        Ok(_) => Ok(()),
        Err(failure) => {
            let code = if failure.cause.is_lack() { Code::TryAgain } else { Code::Conflict };
            Err(Failure { hint: failure.hint, ..Failure::new(code, failure.message) })
        }
    }
}

/// Refuses a missing directory that this user, who also runs the workers, may not make.
fn may_make(presence: Presence, path: &Path, existing: &ExistingDirectory) -> Result<(), Failure> {
    use rustix::fs::Access;
    let may = rustix::fs::access(&existing.path, Access::WRITE_OK | Access::EXEC_OK);
    if presence == Presence::There || may.is_ok() {
        return Ok(());
    }
    let (missing, above) = (path.display(), existing.path.display());
    Err(Failure::new(
        Code::NotFound,
        format!("{missing} does not exist, and this user cannot create it in {above}"),
    )
    .hint(format!("use a directory of your own, or have it created: mkdir -p {missing}")))
}
