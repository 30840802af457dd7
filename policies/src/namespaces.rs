//! Namespaces that a process makes for itself and its children: of users, and of processes.
//!
//! A pid namespace ties a tree of processes to its first process: when that ends, for any reason, the kernel kills all
//! others. Making one needs privileges, or a user namespace in which the caller keeps its own uid.

use std::io;
use std::path::{Path, PathBuf};

use caps::{CapSet, Capability};
use nix::sched::{CloneFlags, unshare};
use nix::unistd::{getegid, geteuid};
use serde::{Deserialize, Serialize};

use crate::shares;
use crate::support::View;

/// Capabilities that a run needs to make its view: to mount, to bring a loopback interface up, and to close its
/// bounding set afterwards.
const NEEDED: [Capability; 3] =
    [Capability::CAP_SYS_ADMIN, Capability::CAP_NET_ADMIN, Capability::CAP_SETPCAP];

/// A step of making a namespace that failed.
#[derive(Debug, thiserror::Error)]
#[error("make a namespace: {step} {}: {source}", .path.display())]
pub struct NamespaceError {
    pub(crate) step: &'static str,
    pub(crate) path: PathBuf,
    #[source]
    pub(crate) source: io::Error,
}

/// Means by which a process makes a pid namespace for its children.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PidNamespace {
    /// The process has `CAP_SYS_ADMIN`.
    Privileged,
    /// The process makes a user namespace first.
    UserNamespace,
}

impl PidNamespace {
    /// Returns the means that fit a host with this view; none if there are none. Only an attempt shows that they work.
    pub fn for_view(view: &View) -> Option<Self> {
        match view {
            View::Privileged => Some(Self::Privileged),
            View::UserNamespace => Some(Self::UserNamespace),
            View::Unavailable { .. } => None,
        }
    }

    /// Makes a new pid namespace for the children of the calling single-threaded process. The first child is its init.
    ///
    /// # Errors
    /// Names the step that this host does not permit.
    pub fn enter(self) -> Result<(), NamespaceError> {
        match self {
            Self::Privileged => {
                let unshared = unshare(CloneFlags::CLONE_NEWPID).map_err(io::Error::from);
                at("unshare", Path::new("/proc/self/ns/pid_for_children"), unshared)
            }
            Self::UserNamespace => unshare_as_self(CloneFlags::CLONE_NEWPID),
        }
    }

    /// Lets programs that the caller executes later make a view in its user namespace. Without a user namespace they
    /// need nothing.
    ///
    /// # Errors
    /// Fails if the capabilities cannot be set.
    pub fn pass_on(self) -> Result<(), NamespaceError> {
        let raise = |set| NEEDED.into_iter().try_for_each(|capability| caps::raise(None, set, capability));
        match self {
            Self::Privileged => Ok(()),
            Self::UserNamespace => {
                let raised = raise(CapSet::Inheritable).and_then(|()| raise(CapSet::Ambient));
                at("pass on the capabilities of", Path::new("/proc/self"), raised.map_err(io::Error::other))
            }
        }
    }
}

/// Makes a user namespace in which the calling single-threaded process keeps its ids, together with `others`.
pub(crate) fn unshare_as_self(others: CloneFlags) -> Result<(), NamespaceError> {
    let here = Path::new("/proc/self");
    let (uid, gid) = (geteuid(), getegid());
    at("unshare", here, unshare(CloneFlags::CLONE_NEWUSER | others).map_err(io::Error::from))?;
    for (name, text) in [
        ("setgroups", "deny".to_owned()),
        ("uid_map", format!("{uid} {uid} 1")),
        ("gid_map", format!("{gid} {gid} 1")),
    ] {
        let path = here.join(name);
        at("write", &path, std::fs::write(&path, text))?;
    }
    shares::limit_watches();
    Ok(())
}

fn at<T>(step: &'static str, path: &Path, outcome: io::Result<T>) -> Result<T, NamespaceError> {
    outcome.map_err(|source| NamespaceError { step, path: path.to_owned(), source })
}
