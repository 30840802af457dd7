//! The home of a user, by the host's list of users.

use std::path::PathBuf;

use policies::{Identity, Policy};

use super::account::account;

/// Returns the home of a worker's user, where it has one.
pub(crate) fn home_of(identity: Option<Identity>) -> Option<PathBuf> {
    let uid = identity.map_or_else(nix::unistd::geteuid, |identity| nix::unistd::Uid::from_raw(identity.uid));
    let home = account(uid)?.home;
    Some(home.canonicalize().unwrap_or(home))
}

/// Returns the home of the worker's user, where the policy grants toolchains: another policy has no use for it.
pub(crate) fn toolchain_home(policy: &Policy, identity: Option<Identity>) -> Option<PathBuf> {
    if policy.filesystem.toolchains.is_empty() { None } else { home_of(identity) }
}
