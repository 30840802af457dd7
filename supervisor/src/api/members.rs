//! The Unix users of tenants: who one is, and what of the API they have. To such a caller there is nothing but its tenant.
//!
//! 1. The kernel says which uid connects; the files of tenants say whose member it is, at each request.
//! 2. A verb is refused unless it says what it is for a member ([`super::Verb::MEMBERS`]).
//! 3. Every task that a request names has to be the tenant's, in the same snapshot or transaction as what is done
//!    ([`super::Call::read`], [`super::Call::write`]). Another one does not exist for the caller.
//! 4. What a request may name beside tasks (a tenant, a workspace, a policy) is looked at by the verb
//!    ([`super::Verb::confine`]).

use std::sync::Arc;

use kernel::Tenant;

use super::work::blocking;
use crate::config::tenants::UserName;
use crate::exit::Code;
use crate::failure::Failure;
use crate::host::account::{account, groups, login};
use crate::service::Service;

/// Decides which tenant a uid is a member of, as the files say now.
pub(super) async fn tenant_of(service: &Arc<Service>, uid: u32) -> Result<Tenant, Failure> {
    let config = service.config();
    // A directory of users may be one that does not answer at once.
    blocking("the user was not looked up", move || {
        let own = nix::unistd::Uid::from_raw(uid);
        let account = account(own);
        let primary = login(&UserName::Number(uid)).map(|login| login.gid);
        let groups = match (&account, primary) {
            (Some(account), Some(gid)) => groups(account, gid),
            _ => Vec::new(),
        };
        let name = account.as_ref().map(|account| account.name.as_str());
        // Root directs every tenant, and workers may have the daemon's own user.
        let is_own = own.is_root() || own == nix::unistd::geteuid();
        match config.tenant_of_user((uid, name), &groups) {
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
