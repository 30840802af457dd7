//! The part of a policy that says what a process may do to the system.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Namespaces and system calls.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Process {
    /// Refused system calls.
    pub seccomp: Seccomp,
    /// True if the run sees a file system of its own that holds only its granted paths.
    pub mount_namespace: MountNamespace,
    /// True if a run may trace its own processes (a debugger, strace).
    pub debug: bool,
    /// True if System V and POSIX message queues, semaphores and shared memory are allowed.
    pub sysv_ipc: bool,
}

/// Refused system calls.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Seccomp {
    /// System calls that reach other processes, the kernel's administration or unmediated networks.
    #[default]
    Default,
    /// Further also netlink and anonymous executables.
    Strict,
    /// None.
    Off,
}

/// File system view of a run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum MountNamespace {
    /// A view of its own where the host permits it.
    #[default]
    Auto,
    /// The run is refused without one.
    Require,
    /// Never.
    Off,
}
