//! Part of a policy about namespaces, system calls and other processes.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Limits on namespaces, system calls, tracing and System V IPC.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Process {
    /// Set of refused system calls.
    pub seccomp: Seccomp,
    /// File system view of the run, which contains only its granted paths.
    pub mount_namespace: MountNamespace,
    /// True if a run may trace its own processes (a debugger, strace).
    pub debug: bool,
    /// True if System V and POSIX message queues, semaphores and shared memory are allowed.
    pub sysv_ipc: bool,
}

/// Set of refused system calls.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Seccomp {
    /// System calls that reach other processes, the kernel's administration or unmediated networks.
    #[default]
    Default,
    /// The calls of the default set, netlink sockets, and calls for anonymous executable files.
    Strict,
    /// No system call.
    Off,
}

/// File system view of a run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum MountNamespace {
    /// The run has a view of its own if the host permits it.
    #[default]
    Auto,
    /// The run has a view of its own; without one it is refused.
    Require,
    /// The run has the view of the host.
    Off,
}
