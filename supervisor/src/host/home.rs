//! The home of a user, by the host's list of users.

use std::os::unix::fs::MetadataExt as _;
use std::path::PathBuf;

use kernel::Task;
use policies::{Identity, Policy, Toolchains};
use workspace::WorkspaceSpec;

use super::account::account;

/// Returns the home of a worker's user, where it has one.
pub(crate) fn home_of(identity: Option<Identity>) -> Option<PathBuf> {
    let uid = identity.map_or_else(nix::unistd::geteuid, |identity| nix::unistd::Uid::from_raw(identity.uid));
    let home = account(uid)?.home;
    Some(home.canonicalize().unwrap_or(home))
}

/// Returns the home whose toolchains a run may have: that of the worker's user where the policy names some, and that of its programs where
/// the policy takes what is installed. Another policy has no use for one.
pub(crate) fn toolchain_home(
    policy: &Policy,
    identity: Option<Identity>,
    is_tenants: bool,
) -> Option<PathBuf> {
    match policy.filesystem.toolchains {
        Toolchains::Installed => program_home(identity, is_tenants),
        Toolchains::Named(ref named) if named.is_empty() => None,
        Toolchains::Named(_) => home_of(identity),
    }
}

/// Returns the home in which the programs of a run are looked for: that of the worker's user. A user of the supervisor's own has none; its
/// programs are in that of the supervisor's user, unless it works for a tenant.
pub(crate) fn program_home(identity: Option<Identity>, is_tenants: bool) -> Option<PathBuf> {
    home_of(identity).or_else(|| home_of(None).filter(|_| !is_tenants))
}

/// Returns the home in which the programs of a task would be looked for if it started now: that of the user who owns its directory, or of the
/// supervisor's. Looks at the directory: blocking.
pub(crate) fn home_for(task: &Task) -> Option<PathBuf> {
    let is_tenants = task.tenant.is_some();
    if !nix::unistd::geteuid().is_root() {
        return home_of(None);
    }
    let (WorkspaceSpec::Directory(path) | WorkspaceSpec::Worktree { repository: Some(path) }) =
        task.workspace.parse().unwrap_or_default()
    else {
        // Its worker has a user of the supervisor's own.
        return home_of(None).filter(|_| !is_tenants);
    };
    // One that is to be made belongs to the owner of what it is made in.
    let owner = path.ancestors().find_map(|dir| dir.metadata().ok())?;
    program_home(Some(Identity { uid: owner.uid(), gid: owner.gid() }), is_tenants)
}
