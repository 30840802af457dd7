//! The controllers of cgroup v2 that enforce the limits of runs.

use serde::{Deserialize, Serialize};

/// A controller of cgroup v2 that enforces a limit of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Controller {
    /// Processor time (`cpu.max`).
    Cpu,
    /// Memory (`memory.max`).
    Memory,
    /// Processes and threads (`pids.max`).
    Pids,
}

impl Controller {
    pub const ALL: [Controller; 3] = [Self::Cpu, Self::Memory, Self::Pids];

    /// Returns the kernel's name of the controller, which is the name of the limit in a policy too.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Cpu => "cpu",
            Self::Memory => "memory",
            Self::Pids => "pids",
        }
    }

    /// Returns true if only the controller enforces the limit. For processes, `RLIMIT_NPROC` is a second limit if the
    /// run has its own user.
    pub(crate) fn is_alone(self) -> bool {
        match self {
            Self::Cpu | Self::Memory => true,
            Self::Pids => false,
        }
    }
}
