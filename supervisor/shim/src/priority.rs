//! Share of the processors that the daemon and the shims get, compared with the sessions of workers.
//!
//! See decision 0080.

use std::{fs, io};

use nix::unistd::{getpid, getsid};

/// File that sets a session's share (sched(7), "The autogroup feature").
const SHARE: &str = "/proc/self/autogroup";
/// Nice value of the session. A value of -10 weighs about nine times as much as 0, so the supervisor is served first
/// when it wakes up. It uses little time, so the workers lose little.
const NICE: &str = "-10";

/// Gives the calling process a larger share of the processors than workers have, if the kernel divides processors
/// between sessions and not between groups of a `cpu` controller.
///
/// Nothing changes for a session that the process does not lead (a daemon may have its session from a shell), and for a
/// process that may not raise a priority. A worker and a job process are each in a session of their own, so they and
/// their children have the share of any other program.
///
/// # Errors
/// Fails if the process may not raise a priority, or the kernel does not divide processors between sessions.
pub fn go_first() -> io::Result<()> {
    if getsid(None) != Ok(getpid()) {
        return Ok(());
    }
    fs::write(SHARE, NICE)
}
