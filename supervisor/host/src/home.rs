//! Homes of users, by the host's list of users.

use std::os::unix::fs::MetadataExt as _;
use std::path::PathBuf;

use kernel::Task;
use policies::{Identity, Policy, Toolchains};
use workspace::WorkspaceSpec;

use super::unix_user::user_by_uid;
use super::worker_user::job_user;

/// Returns the home of a worker's user, if the user has one.
pub fn home_of(identity: Option<Identity>) -> Option<PathBuf> {
    let uid = identity.map_or_else(nix::unistd::geteuid, |identity| nix::unistd::Uid::from_raw(identity.uid));
    let home = user_by_uid(uid)?.home;
    Some(home.canonicalize().unwrap_or(home))
}

/// Returns the home whose toolchains a run may use: the home of the worker's user if the policy names toolchains, and
/// the home of the run's programs if it takes installed ones. Other policies need none.
pub fn toolchain_home(policy: &Policy, identity: Option<Identity>, is_tenants: bool) -> Option<PathBuf> {
    match policy.filesystem.toolchains {
        Toolchains::Installed => program_home(identity, is_tenants),
        Toolchains::Named(ref named) if named.is_empty() => None,
        Toolchains::Named(_) => home_of(identity),
    }
}

/// Returns the home in which a run's programs are searched: the home of the worker's user. A user that the supervisor
/// assigns has none; then the home of the supervisor's user is searched, except for tenants.
pub fn program_home(identity: Option<Identity>, is_tenants: bool) -> Option<PathBuf> {
    home_of(identity).or_else(|| home_of(None).filter(|_| !is_tenants))
}

/// Returns the home in which the programs of a task would be searched if it started now, by the owner of its
/// directory. Blocking: reads the directory.
pub fn home_for(task: &Task) -> Option<PathBuf> {
    let is_tenants = task.tenant.is_some();
    if !nix::unistd::geteuid().is_root() {
        return home_of(None);
    }
    let (WorkspaceSpec::Directory(path) | WorkspaceSpec::Worktree { repository: Some(path) }) =
        task.workspace.parse().unwrap_or_default()
    else {
        // The worker gets a uid of the supervisor's range.
        return home_of(None).filter(|_| !is_tenants);
    };
    // A directory that does not exist yet will belong to the owner of its nearest existing ancestor.
    let owner = path.ancestors().find_map(|dir| dir.metadata().ok())?;
    program_home(Some(job_user(owner.uid())), is_tenants)
}
