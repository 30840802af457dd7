//! Restricts members of tenants to their tenant.

use kernel::{Actor, BoardId, BoardName, RunId, Tenant};

use base::exit::Code;
use base::failure::Failure;
use service::Service;

/// Returns the tenant to which a caller is restricted; none for operators, and for workers, whose run restricts them.
pub(super) fn confined(actor: &Actor) -> Option<&Tenant> {
    actor.tenant.as_ref().filter(|_| actor.run.is_none() && actor.kind == kernel::ActorKind::Person)
}

/// Refuses a board that a tenant's members may not access, whether it exists or not.
pub(super) fn require_board(service: &Service, tenant: &Tenant, board: &BoardName) -> Result<(), Failure> {
    let config = service.config();
    if config.tenants.get(tenant).is_some_and(|tenant| tenant.reaches(board)) {
        return Ok(());
    }
    Err(Failure::new(
        Code::NotPermitted,
        format!("the users of the tenant {tenant} do not reach the board {board}"),
    )
    .hint("leave --board out, or ask an operator: supervisor tenant edit NAME --on-board BOARD"))
}

/// Returns the key under which a member's requests are counted. No run has this key, because runs are numbered from
/// 1.
pub(super) fn account_of(uid: u32) -> (BoardId, RunId) {
    (BoardId(uuid::Uuid::nil()), RunId(-1 - i64::from(uid)))
}

/// Refuses another tenant than the caller's, for a request without other tenants.
pub fn require_own(tenant: &Tenant, named: Option<&Tenant>) -> Result<(), Failure> {
    match named {
        Some(other) if other != tenant => {
            Err(Failure::new(Code::NotPermitted, format!("this user sees the tenant {tenant} alone"))
                .hint("leave --tenant out"))
        }
        Some(_) | None => Ok(()),
    }
}

/// Sets the tenant of a request to the caller's, and refuses a request that names another.
pub fn confine_to(tenant: &Tenant, named: &mut Option<Tenant>) -> Result<(), Failure> {
    require_own(tenant, named.as_ref())?;
    *named = Some(tenant.clone());
    Ok(())
}

/// Returns the refusal of an operator's function.
pub fn not_for_members(what: &str) -> Failure {
    Failure::new(Code::NotPermitted, format!("{what} is for operators, and this user is one of a tenant's"))
        .hint("ask an operator")
}
