//! Reasons why a policy cannot be applied to a run on this host.

use std::path::PathBuf;

use crate::controller::Controller;
use crate::egress::EgressError;
use crate::filter::FilterError;
use crate::paths::PathError;
use crate::ruleset::RulesetError;
use crate::secrets::SecretError;

/// Reasons why a policy cannot be applied to a run on this host.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PlanError {
    /// The user of the run is root.
    #[error("choose the user: a worker is never root; give the run a user of its own")]
    Root,
    /// The caller is not root and cannot switch to the user of the run.
    #[error("choose the user: user {caller} cannot become user {wanted}; only root can")]
    Foreign { caller: u32, wanted: u32 },
    /// Landlock is too old for the policy.
    #[error(
        "restrict files: the policy {policy} needs Landlock ABI {needed} and this host has {found}; a newer kernel, or \
         compatibility = \"best_effort\" in the policy"
    )]
    Abi { policy: String, needed: u32, found: u32 },
    /// The kernel has no seccomp, so system calls cannot be filtered.
    #[error("filter system calls: this kernel has no seccomp")]
    Seccomp,
    /// The policy requires a mount namespace, and this host cannot make one.
    #[error("make the file system view: the policy {policy} requires one: {why}")]
    View {
        policy: String,
        /// Reason why there is no mount namespace.
        why: String,
    },
    /// The policy denies Unix sockets, and the board is served on a Unix socket.
    #[error(
        "reach the board at {}: without a file system view or Landlock ABI 9 this policy denies Unix sockets; serve \
         the board on a loopback port",
        .path.display()
    )]
    BoardSocket { path: PathBuf },
    /// The tables of mounts and sockets in `/proc` cannot be read, so the paths to close are unknown.
    #[error("find what must stay closed: {0}")]
    Mounts(#[source] std::io::Error),
    /// A granted path is in a directory of the supervisor.
    #[error(
        "grant {}: it lies in {}, which is the supervisor's own and closed to every worker; choose another directory",
        .path.display(),
        .place.display()
    )]
    Closed { path: PathBuf, place: PathBuf },
    /// A path granted for writing contains a directory of the supervisor.
    #[error(
        "grant {} for writing: {} lies in it, which is the supervisor's own and closed to every worker; choose a \
         directory that does not hold it, or move the root",
        .path.display(),
        .place.display()
    )]
    Around { path: PathBuf, place: PathBuf },
    /// A granted path contains a path that is closed to the run, and without a file system view nothing can be hidden.
    #[error(
        "grant {}: {} lies in it, which is closed to this run and cannot be hidden ({why}); move it, or grant a \
         directory that does not hold it",
        .path.display(),
        .place.display()
    )]
    Uncovered {
        path: PathBuf,
        place: PathBuf,
        /// Reason why there is no view.
        why: String,
    },
    /// The files would not be confined.
    #[error(
        "restrict files: this host has no Landlock, and {why}; a newer kernel{hint}, or accept = [\"files\"] in the \
         policy {policy} to run it with every file of its user open"
    )]
    Files { policy: String, why: &'static str, hint: &'static str },
    /// The network would not be confined.
    #[error(
        "restrict the network: {why}; a newer kernel, or accept = [\"network\"] in the policy {policy} to run it with an \
         open network"
    )]
    Network { policy: String, why: &'static str },
    /// A loopback interface for this run alone cannot be made.
    #[error("make a loopback interface for the run, as the policy {policy} asks for: {why}")]
    Loopback { policy: String, why: &'static str },
    /// The policy needs a proxy, and only the daemon offers one to its runs.
    #[error("reach the proxy that the policy {policy} leaves open: only a run of the daemon has one")]
    NoProxy { policy: String },
    /// The listening socket of the proxy could not be handed over.
    #[error(transparent)]
    Egress(#[from] EgressError),
    /// A secret could not be read.
    #[error(transparent)]
    Secret(#[from] SecretError),
    /// The policy grants a toolchain of a home directory, and the worker's user has no home directory.
    #[error(
        "grant the toolchain {name}: the worker's user has no home directory; name one with toolchain_home in \
         [filesystem] of the policy {policy}"
    )]
    Toolchain { policy: String, name: String },
    /// A path cannot be granted.
    #[error(transparent)]
    Path(#[from] PathError),
    /// The policy requires a limit that this host cannot enforce.
    #[error("limit {}: the policy {policy} requires it and nothing here enforces it: {why}", .limit.as_str())]
    Limit {
        policy: String,
        limit: Controller,
        /// Reason why it cannot be enforced.
        why: String,
    },
    /// The cgroup cannot be joined.
    #[error("open the cgroup {}: {source}", .path.display())]
    Cgroup { path: PathBuf, source: std::io::Error },
    /// The Landlock ruleset cannot be made.
    #[error(transparent)]
    Ruleset(#[from] RulesetError),
    /// The filter of system calls cannot be made.
    #[error(transparent)]
    Filter(#[from] FilterError),
}
