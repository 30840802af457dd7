//! Defaults of a tenant's file for its new tasks: the assignee, the policy, and the workspace.

use kernel::{Profile, Tenant, WorkspaceSpec};

use api::Call;
use base::exit::Code;
use base::failure::Failure;
use host::account::login;
use setup::config::tenants::TenantConfig;

/// Fills in the assignee and the policy that a tenant's task does not name. A worker's task gets the values that its
/// run may give.
///
/// # Errors
/// Fails if the tenant is disabled, because its defaults are unknown then.
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

/// Refuses a place outside of the tenant's directory. Users of a tenant without a directory may only use scratch
/// workspaces.
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
    // A prefix check is sufficient: a workspace's path has no symbolic links.
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

/// Returns the uid whose access rights decide about a caller's workspace: for users of a tenant, the tenant's own user.
pub(super) fn acting_uid(call: &Call) -> Option<u32> {
    let config = call.service.config();
    let user = |own: &TenantConfig| own.user.as_ref().and_then(login).map(|login| login.uid);
    let tenants_user = call.confined().and_then(|tenant| config.tenants.get(tenant)).and_then(user);
    // A tenant must not act as root, which may do anything.
    tenants_user.filter(|uid| *uid != 0).or(call.actor.uid)
}
