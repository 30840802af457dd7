//! Defaults of a tenant's file for its new tasks: the assignee, the policy, and the workspace.

use kernel::{Profile, Tenant};
use workspace::WorkspaceSpec;

use api::Call;
use base::exit::Code;
use base::failure::Failure;
use host::account::login;
use setup::config::tenants::TenantConfig;

/// Fills in what a task of a tenant does not name. The task of a worker has what its run may give it.
///
/// # Errors
/// Says why the tenant is disabled: what its tasks are given is not known.
pub(super) fn fill_in(
    call: &Call,
    tenant: Option<&Tenant>,
    assignee: &mut Option<Profile>,
    policy: &mut Option<String>,
) -> Result<(), Failure> {
    let config = call.service.config();
    let Some(own) = config.tenants.require(tenant)? else { return Ok(()) };
    if assignee.is_none() {
        assignee.clone_from(&own.assignee);
    }
    if policy.is_none() {
        policy.clone_from(&own.policy);
    }
    Ok(())
}

/// Refuses a place that is not beneath the directory of the tenant. The users of a tenant without a directory have scratch ones alone.
pub(super) fn require_place(
    call: &Call,
    tenant: Option<&Tenant>,
    place: &WorkspaceSpec,
) -> Result<(), Failure> {
    let Some(tenant) = tenant else { return Ok(()) };
    let config = call.service.config();
    let root = config.tenants.require(Some(tenant))?.and_then(|own| own.root.as_ref());
    let path = match place {
        WorkspaceSpec::Scratch => return Ok(()),
        WorkspaceSpec::Directory(path) | WorkspaceSpec::Worktree { repository: Some(path) } => Some(path),
        WorkspaceSpec::Worktree { repository: None } => None,
    };
    // No part of the path may be a symbolic link, so what begins with the root lies beneath it.
    match (root, path) {
        (Some(root), Some(path)) if path.starts_with(root) => Ok(()),
        (None, _) if call.confined().is_none() => Ok(()),
        (Some(root), _) => Err(Failure::new(
            Code::NotPermitted,
            format!(
                "the tasks of the tenant {tenant} work in scratch directories and beneath {}",
                root.display()
            ),
        )
        .hint(format!("use a directory such as dir:{}/work", root.display()))),
        (None, _) => Err(Failure::new(
            Code::NotPermitted,
            format!("the tenant {tenant} has no directory, so its users have scratch workspaces alone"),
        )
        .hint("ask an operator: supervisor tenant edit NAME --dir DIR")),
    }
}

/// The uid that a caller acts as where a directory decides as whom a worker runs: the tenant's user, for its users.
pub(super) fn acting_uid(call: &Call) -> Option<u32> {
    let config = call.service.config();
    let user = |own: &TenantConfig| own.user.as_ref().and_then(login).map(|login| login.uid);
    let tenants_user = call.confined().and_then(|tenant| config.tenants.get(tenant)).and_then(user);
    // Root may act as anybody, and the user of a tenant is never root.
    tenants_user.filter(|uid| *uid != 0).or(call.actor.uid)
}
