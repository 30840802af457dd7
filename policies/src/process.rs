//! The part of a policy that says what a process may do to the system.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Namespaces and system calls.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Process {
    /// Which system calls are refused.
    pub seccomp: Seccomp,
    /// Whether the run sees a file system of its own that holds only what is granted.
    pub mount_namespace: MountNamespace,
    /// Whether a run may trace its own processes (a debugger, strace).
    pub debug: bool,
    /// Whether System V and POSIX message queues, semaphores and shared memory are allowed.
    pub sysv_ipc: bool,
}

/// Which system calls are refused.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Seccomp {
    /// Those that reach other processes, the kernel's administration or unmediated networks.
    #[default]
    Default,
    /// Further also netlink and anonymous executables.
    Strict,
    /// None.
    Off,
}

/// Whether a run sees a file system of its own.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum MountNamespace {
    /// Where the host permits it.
    #[default]
    Auto,
    /// The run is refused without one.
    Require,
    /// Never.
    Off,
}
