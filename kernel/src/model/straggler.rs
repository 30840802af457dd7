//! Processes of a run that SIGKILL does not end.

use serde::{Deserialize, Serialize};

/// Process of a run that SIGKILL does not end: it waits in the kernel.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Straggler {
    /// Process id.
    pub pid: i32,
    /// Name of the program, at most 15 bytes (`/proc/PID/comm`).
    pub name: String,
    /// State of the process as the kernel shows it, mostly `D`.
    pub state: char,
}
