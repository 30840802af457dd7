//! The shim: one small process per run, which is the worker's parent and sees it to its end.
//!
//! It depends on nothing but its run directory, so the daemon may die, be upgraded or come back at any time.
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
//! A shim never gives up step 6: as long as anything of the run lives, the lock is held. It does not survive its
//! own SIGKILL; then the worker is killed with it (PDEATHSIG), and the rest with the first process of the run's pid
//! namespace, where it has one instead of a cgroup; else it is for the daemon to find.

mod deadline;
mod init;
mod log;
mod main;
mod output;
mod record;
pub(crate) mod report;
mod signals;
mod tail;
mod timer;
mod tree;
mod watch;
mod worker;

pub(crate) use init::{main as init_main, probe as probe_init};
pub(crate) use main::main;
