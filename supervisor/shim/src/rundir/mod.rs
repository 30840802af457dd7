//! The run directory: the versioned contract between the daemon and one run's shim.
//!
//! | file | by | what it proves |
//! |---|---|---|
//! | `spec.json` | daemon | the spec of the run; complete before the shim starts |
//! | `place` | daemon | which directory this is: in a copy it names another one, whose run is left alone |
//! | `daemon.json` | daemon | what the daemon needs to settle the run, such as what its lane said about endings when it began |
//! | `lock` | shim | owned: the shim lives. The kernel drops it at death, so no pid is ever trusted |
//! | `revoked` | daemon, under `lock` | a shim that comes late runs nothing and exits 76 |
//! | `pid` | shim | the run began; which process the shim is, and on which its pid namespace depends |
//! | `started` | shim | the command was exec'ed, with the report of its restrictions |
//! | `stop` | daemon | how the run is to be ended, read at each SIGTERM |
//! | `stdout` | shim | what the worker wrote to its standard output alone; its beginning and its end where it met its cap |
//! | `heartbeat` | daemon | by its time of change: when the worker has last said that it is at work |
//! | `inbox` | daemon | a directory of messages to the agent, each in a file with its number |
//! | `messages` | shim | what became of the messages that it passed on |
//! | `keys` | shim | a FIFO: what a person types at the terminal of the run, and its size |
//! | `keeper` | shim | a socket: who asks there gets the listening socket of the run's proxy |
//! | `unkillable` | shim | what outlives SIGKILL; there only while it lasts |
//! | `overdue` | daemon | why the shim was to end the run, which it did not: the daemon has killed it |
//! | `exit` | shim | how the run ended; length and checksum tell a whole record from a torn one |
//!
//! A shim may be older or newer than the daemon that reads its files, so each record has a version. Readers ignore
//! unknown fields, and do without fields that an earlier version lacks.
//!
//! | version | first release |
//! |---|---|
//! | 2 | 0.1.0 |
//!
//! See decision 0136.

mod atomic;
mod directory;
mod exit;
mod failed_start;
#[cfg(test)]
mod fuzz_tests;
mod host;
mod lock;
mod message;
mod records;
mod spec;
mod stat;
mod stdout;
mod terminal;

pub use atomic::write_json;
pub use directory::{RunDir, RunDirError};
pub(crate) use exit::{ExitSlot, StoreError};
pub use failed_start::{Concern, FailedStart, Step};
pub use host::{ProcessIdentity, boot_id, boottime_us};
pub(crate) use host::{identity_of, own_identity, slept_us, wall_us};
pub use lock::{LockGuard, LockState};
pub(crate) use message::Received;
pub use message::{AgentMessage, Conversation, Form, MessagesRecord, Receipt};
pub use records::{
    Cause, ExitRecord, OverdueRecord, PidRecord, StartedRecord, StdoutRecord, StopReason, StopRequest,
    Straggler, UnkillableRecord, Usage,
};
pub(crate) use spec::ShimSpec;
pub use spec::{LeaseSpec, RunSpec, Stdin, TerminalSize};
pub use stat::ProcessStat;
pub use stdout::Stdout;
pub use terminal::{Keyed, NotKeyed};

/// Version that this release writes into every file of a run directory.
pub const VERSION: u32 = 2;
/// Oldest version that this release reads.
pub const OLDEST: u32 = 2;

/// Returns true if this release reads run directories of this version. Records of other versions have no known meaning.
pub fn is_known(version: u32) -> bool {
    (OLDEST..=VERSION).contains(&version)
}

/// Returns a range of versions in words: `2`, or `2 to 3`.
pub fn versions(oldest: u32, newest: u32) -> String {
    if oldest == newest { newest.to_string() } else { format!("{oldest} to {newest}") }
}
