//! Why a policy cannot be applied to a run on this host.

use std::path::PathBuf;

use crate::paths::PathError;
use crate::ruleset::RulesetError;
use crate::syscalls::FilterError;

/// Why a policy cannot be applied to a run on this host.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PlanError {
    /// The run would be root.
    #[error("choose the user: a worker is never root; give the run a user of its own")]
    Root,
    /// An ordinary user cannot become another one.
    #[error("choose the user: user {caller} cannot become user {wanted}; only root can")]
    Foreign {
        /// Who asks.
        caller: u32,
        /// Who is asked for.
        wanted: u32,
    },
    /// Landlock is too old for the policy.
    #[error(
        "rule files: the policy {policy} needs Landlock ABI {needed} and this host has {found}; a newer kernel, or \
         compatibility = \"best_effort\" in the policy"
    )]
    Abi {
        /// The policy.
        policy: String,
        /// What it needs.
        needed: u32,
        /// What there is.
        found: u32,
    },
    /// System calls cannot be filtered.
    #[error("filter system calls: this kernel has no seccomp")]
    Seccomp,
    /// The policy requires a mount namespace.
    #[error("make the file system view: the policy {policy} requires one: {why}")]
    View {
        /// The policy.
        policy: String,
        /// Why it cannot be had.
        why: String,
    },
    /// Unix sockets are denied, and the board is one.
    #[error(
        "reach the board at {}: without a file system view or Landlock ABI 9 this policy denies Unix sockets; serve \
         the board on a loopback port",
        .path.display()
    )]
    BoardSocket {
        /// The socket.
        path: PathBuf,
    },
    /// A path cannot be granted.
    #[error(transparent)]
    Path(#[from] PathError),
    /// The cgroup cannot be joined.
    #[error("open the cgroup {}: {source}", .path.display())]
    Cgroup {
        /// The directory.
        path: PathBuf,
        /// What the kernel says.
        source: std::io::Error,
    },
    /// The Landlock ruleset cannot be made.
    #[error(transparent)]
    Ruleset(#[from] RulesetError),
    /// The filter cannot be made.
    #[error(transparent)]
    Filter(#[from] FilterError),
}
