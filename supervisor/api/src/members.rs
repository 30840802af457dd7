//! Members of tenants: Unix users who may use the API for their tenant alone. To such a caller only its tenant
//! exists.
//!
//! 1. The kernel reports the connecting uid; the tenant files are consulted for its membership at each request.
//! 2. A verb is refused unless it declares itself fit for members ([`super::Verb::MEMBERS`]).
//! 3. Every task in a request must belong to the tenant, checked in the same snapshot or transaction as the action
//!    ([`super::Call::read`], [`super::Call::write`]). Other tasks do not exist for the caller.
//! 4. The verb checks other names in its request (a tenant, a workspace, a policy) ([`super::Verb::confine`]).
//!
//! See decision 0151.

use std::sync::Arc;

use kernel::Tenant;

use super::work::blocking;
use base::exit::Code;
use base::failure::Failure;
use host::unix_user::{groups, login, user_by_uid};
use service::Service;
use setup::config::tenants::UserName;

/// Returns the tenant of which a uid is a member, by the present files.
pub(super) async fn tenant_of(service: &Arc<Service>, uid: u32) -> Result<Tenant, Failure> {
    let config = service.config();
    // Blocking: the user database may be a slow network service.
    blocking("the user was not looked up", move || {
        let user = nix::unistd::Uid::from_raw(uid);
        let account = user_by_uid(user);
        let primary = login(&UserName::Number(uid)).map(|login| login.gid);
        let groups = match (&account, primary) {
            (Some(account), Some(gid)) => groups(account, gid),
            _ => Vec::new(),
        };
        let name = account.as_ref().map(|account| account.name.as_str());
        // Root controls every tenant, and workers may share the daemon's user; neither can be a member.
        let is_own = user.is_root() || user == nix::unistd::geteuid();
        match config.tenant_of_user(uid, name, &groups) {
            Ok(Some(tenant)) if !is_own => Ok(tenant),
            Ok(_) if !is_own && config.tenants.defects().next().is_some() => {
                let message = format!(
                    "no tenant that can be used has the user uid {uid}, and files of tenants are defective"
                );
                Err(Failure::new(Code::NotPermitted, message)
                    .hint("an operator corrects them: `supervisor status` names each"))
            }
            Ok(_) => Err(Failure::new(Code::NotPermitted, format!("no tenant has the user uid {uid}"))
                .hint("an operator adds it: supervisor tenant edit NAME --member USER")),
            Err((first, second)) => Err(Failure::new(
                Code::NotPermitted,
                format!("the user uid {uid} belongs to two tenants, {first} and {second}"),
            )
            .hint("an operator leaves it in one of them: supervisor tenant edit NAME --unset users")),
        }
    })
    .await?
}
