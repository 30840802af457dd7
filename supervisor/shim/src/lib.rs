//! The shim: one small process for each run. It is the worker's parent and watches the worker to its end. It starts
//! `confine`, which becomes the worker. Daemon and shim know each other by the run directory.
//!
//! The shim depends on nothing but its run directory, so the daemon may die, be upgraded or come back at any time.
//! In order:
//!
//! 1. own session, child subreaper: every descendant that loses its parent becomes the shim's child;
//! 2. the run's lock, for life; a run that was revoked or has begun before is not run (76);
//! 3. the space of the exit record, the `pid` record, the `shim` leaf of the run's cgroup (after step 4 by a shim
//!    that has waited for its run in the `work` leaf);
//! 4. `confine` as its only child, which applies the policy and becomes the worker;
//! 5. one loop over signals, output, report and timer until the worker has ended;
//! 6. SIGKILL to whatever is left, until the kernel says that the shim has no child and the cgroup is empty;
//! 7. the exit record, synced; a datagram to the daemon; exit.
//!
//! A shim never gives up step 6: as long as anything of the run lives, the lock is owned. A shim does not survive its
//! own SIGKILL. The kernel then kills the worker (PDEATHSIG), and the rest ends with the first process of the run's pid
//! namespace if the run has one instead of a cgroup. Otherwise the daemon finds and ends the rest.
//!
//! Shim and `confine` are one program under different first arguments, and neither has a thread. The program is small
//! and built apart (`main.rs`); the `supervisor` binary contains it, and can take its place. The daemon and the lanes
//! use [`rundir`], and five modules with code that daemon, lanes and the processes of a run share: [`lenient`],
//! [`lock_file`], [`priority`], [`shortage`] and [`stuck`].
//!
//! The shim is a crate because a crate keeps a boundary: no runtime, parser or board is linked in, and the daemon
//! cannot write the records that only a shim may write.

mod activity;
mod attended;
mod confine;
mod console;
mod conversation;
mod cut_values;
mod deadline;
mod init;
pub mod lenient;
mod life;
pub mod lock_file;
mod log;
mod mailbox;
mod output;
pub mod priority;
mod record;
mod report;
pub mod rundir;
pub mod shortage;
mod signals;
mod silence;
pub mod stuck;
mod tail;
mod timer;
mod tree;
mod umask;
mod watch;
mod worker;

use std::ffi::OsString;
use std::process::ExitCode;

pub use attended::NOT_EXECUTED;
pub use init::probe as probe_init;
pub use log::after_cuts;
pub use tree::{Reaped, Tree};
pub use umask::narrow as narrow_umask;

/// First argument of a program that does nothing and exits with success, to show that it can be executed.
pub const CHECK: &str = "__check";

/// Runs the process of a run that the first argument names; none if the argument names no such process.
pub fn process(word: Option<&str>, arguments: impl Iterator<Item = OsString>) -> Option<ExitCode> {
    Some(match word? {
        "__shim" => life::main(arguments),
        "__init" => init::main(),
        "__attend" => attended::main(arguments),
        "__confine" => confine::main(arguments),
        CHECK => ExitCode::SUCCESS,
        _ => return None,
    })
}
