//! Gives up users, groups and capabilities permanently.

use caps::CapSet;
use nix::unistd::{Gid, Uid, getegid, geteuid, setgroups, setresgid, setresuid};
use rustix::io::Errno;
use rustix::process::{Signal, getppid, set_parent_process_death_signal};
use rustix::thread::{CapabilitiesSecureBits, CapabilitySet, CapabilitySets};

use crate::run_context::Identity;
use crate::session;

/// A step of giving up privileges that failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PrivilegeError {
    /// The process has other threads, which would stay free.
    #[error("begin with a single thread: {0}")]
    Threads(#[source] std::io::Error),
    /// The requested user or group is root.
    #[error("change the user: a worker is never root; give it a user of its own")]
    Root,
    /// The supplementary groups could not be dropped.
    #[error("drop the supplementary groups: {0}")]
    Groups(#[source] nix::Error),
    /// The group could not be changed.
    #[error("become group {gid}: {source}")]
    Group { gid: u32, source: nix::Error },
    /// The user could not be changed.
    #[error("become user {uid}: {source}")]
    User { uid: u32, source: nix::Error },
    /// The bounding set could not be emptied.
    #[error("empty the bounding set: {0}")]
    Bounding(#[source] caps::errors::CapsError),
    /// The secure bits could not be set.
    #[error("lock the secure bits: {0}")]
    SecureBits(#[source] Errno),
    /// The ambient set could not be emptied.
    #[error("empty the ambient set: {0}")]
    Ambient(#[source] caps::errors::CapsError),
    /// The capabilities could not be dropped.
    #[error("drop all capabilities: {0}")]
    Drop(#[source] Errno),
    /// The capabilities could not be read back.
    #[error("read the capabilities back: {0}")]
    ReadBack(#[source] Errno),
    /// Capabilities are left.
    #[error("drop all capabilities: some are left")]
    Left,
    /// The death signal could not be set.
    #[error("set the parent death signal: {0}")]
    DeathSignal(#[source] Errno),
    /// The parent is gone.
    #[error("check the parent: process {expected} is not the parent any more")]
    Orphan {
        /// Process id of the parent that was expected.
        expected: i32,
    },
    /// `no_new_privs` could not be set.
    #[error("set no_new_privs: {0}")]
    NoNewPrivs(#[source] Errno),
}

/// Sets of capabilities that could be closed. Closing some of them needs `CAP_SETPCAP`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Closed {
    All,
    /// All except the bounding set and the secure bits, for lack of the capability. Empty sets and `no_new_privs`
    /// replace them.
    WithoutBounding,
}

/// Empties the bounding and ambient sets and locks the secure bits, while that is still permitted.
pub(crate) fn close_sources() -> Result<Closed, PrivilegeError> {
    let may = rustix::thread::capabilities(None)
        .map_err(PrivilegeError::ReadBack)?
        .effective
        .contains(CapabilitySet::SETPCAP);
    if may {
        caps::clear(None, CapSet::Bounding).map_err(PrivilegeError::Bounding)?;
    }
    caps::clear(None, CapSet::Ambient).map_err(PrivilegeError::Ambient)?;
    if !may {
        return Ok(Closed::WithoutBounding);
    }
    let locked = CapabilitiesSecureBits::NO_ROOT
        | CapabilitiesSecureBits::NO_ROOT_LOCKED
        | CapabilitiesSecureBits::NO_SETUID_FIXUP
        | CapabilitiesSecureBits::NO_SETUID_FIXUP_LOCKED
        | CapabilitiesSecureBits::KEEP_CAPS_LOCKED
        | CapabilitiesSecureBits::NO_CAP_AMBIENT_RAISE
        | CapabilitiesSecureBits::NO_CAP_AMBIENT_RAISE_LOCKED;
    rustix::thread::set_capabilities_secure_bits(locked).map_err(PrivilegeError::SecureBits)?;
    Ok(Closed::All)
}

/// Becomes a user and its group, without supplementary groups. An ordinary caller can only keep its own user.
pub(crate) fn change_user(identity: Identity) -> Result<(), PrivilegeError> {
    let Identity { uid, gid } = identity;
    if uid == 0 || gid == 0 {
        return Err(PrivilegeError::Root);
    }
    if geteuid().as_raw() == uid && getegid().as_raw() == gid {
        return Ok(());
    }
    setgroups(&[]).map_err(PrivilegeError::Groups)?;
    let group = Gid::from_raw(gid);
    setresgid(group, group, group).map_err(|source| PrivilegeError::Group { gid, source })?;
    let user = Uid::from_raw(uid);
    setresuid(user, user, user).map_err(|source| PrivilegeError::User { uid, source })
}

/// Empties the permitted, effective and inheritable sets and reads them back. Under the secure bits, a change of user does
/// not empty them.
pub(crate) fn drop_capabilities() -> Result<(), PrivilegeError> {
    let none = CapabilitySets {
        effective: CapabilitySet::empty(),
        permitted: CapabilitySet::empty(),
        inheritable: CapabilitySet::empty(),
    };
    rustix::thread::set_capabilities(None, none).map_err(PrivilegeError::Drop)?;
    let remaining = rustix::thread::capabilities(None).map_err(PrivilegeError::ReadBack)?;
    let left = remaining.effective | remaining.permitted | remaining.inheritable;
    if left.is_empty() { Ok(()) } else { Err(PrivilegeError::Left) }
}

/// Makes the process die with its parent. This comes after the change of user, which clears the signal (prctl(2)). The
/// check afterwards notices a parent that died before.
pub(crate) fn die_with(parent: i32) -> Result<(), PrivilegeError> {
    set_parent_process_death_signal(Some(Signal::KILL)).map_err(PrivilegeError::DeathSignal)?;
    if getppid().map_or(0, |pid| pid.as_raw_nonzero().get()) == parent {
        Ok(())
    } else {
        Err(PrivilegeError::Orphan { expected: parent })
    }
}

/// Prevents any gain of privileges by an exec.
pub(crate) fn forbid_new() -> Result<(), PrivilegeError> {
    rustix::thread::set_no_new_privs(true).map_err(PrivilegeError::NoNewPrivs)
}

/// Turns the calling single-threaded process into a process of another user, without groups, capabilities or a way to
/// regain them. For short-lived job processes that work in a tree that the user owns.
///
/// # Errors
/// Names the step; the process must then end.
pub fn become_user(identity: Identity) -> Result<(), PrivilegeError> {
    session::require_one_thread().map_err(PrivilegeError::Threads)?;
    close_sources()?;
    change_user(identity)?;
    drop_capabilities()?;
    forbid_new()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_becomes_root_or_one_of_its_group() {
        for (uid, gid) in [(0, 0), (0, 5), (5, 0)] {
            let refused = change_user(Identity { uid, gid });
            assert!(matches!(refused, Err(PrivilegeError::Root)), "{uid} {gid}: {refused:?}");
        }
    }
}
