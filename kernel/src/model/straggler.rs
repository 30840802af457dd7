//! A process of a run that SIGKILL does not end.

use serde::{Deserialize, Serialize};

/// A process of a run that SIGKILL does not end: it waits in the kernel.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Straggler {
    /// Its id.
    pub pid: i32,
    /// The name of the program, at most 15 bytes (`/proc/PID/comm`).
    pub name: String,
    /// Its state as the kernel has it, mostly `D`.
    pub state: char,
}
