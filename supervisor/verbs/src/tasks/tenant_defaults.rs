//! Defaults of a tenant's file for its new tasks: the assignee, the policy, and the workspace.

use kernel::{Profile, Tenant, WorkspaceSpec};

use api::Call;
use base::exit::Code;
use base::failure::Failure;
use host::unix_user::login;
use setup::config::tenants::TenantConfig;

/// Fills in the tenant's assignee and policy if a new task names none. Callers skip the tasks that workers create,
/// because the kernel gives these the values that the worker's run may give.
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
    let Some(tenant_config) = config.tenants.require(tenant)? else { return Ok(()) };
    if assignee.is_none() {
        assignee.clone_from(&tenant_config.assignee);
    }
    if policy.is_none() {
        policy.clone_from(&tenant_config.policy);
    }
    Ok(())
}

/// Refuses a workspace outside of the tenant's directory. Scratch workspaces are always permitted, and are the only
/// ones for users of a tenant without a directory.
pub(super) fn require_workspace(
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

/// Returns the uid whose access rights decide about a caller's workspace: the uid of the tenant's own user for users
/// of a tenant that has one, else the caller's uid.
pub(super) fn acting_uid(call: &Call) -> Option<u32> {
    let config = call.service.config();
    let user = |own: &TenantConfig| own.user.as_ref().and_then(login).map(|login| login.uid);
    let tenants_user = call.confined().and_then(|tenant| config.tenants.get(tenant)).and_then(user);
    // A tenant must not act as root, which may do anything.
    tenants_user.filter(|uid| *uid != 0).or(call.actor.uid)
}
