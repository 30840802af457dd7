//! The daemon's share of the processors, beside the sessions of its workers.

use nix::unistd::{getpid, getsid};

/// What a session's share is set by (sched(7), "The autogroup feature").
const SHARE: &str = "/proc/self/autogroup";
/// The nice value of the daemon's session. A nice value of -10 weighs about nine times as much as 0, so the daemon is served first
/// when it wakes up; it uses little time, so the workers lose little.
const NICE: &str = "-10";

/// Gives the daemon a larger share of the processors than its workers, where the kernel divides them between sessions and not
/// between groups of a `cpu` controller.
///
/// A session that the daemon has from a shell is not changed, nor is anything where the daemon may not raise a priority. A shim and a job
/// process are each in a session of their own, so they and all that they start have the share of any other program.
pub(in crate::daemon) fn go_first() {
    if getsid(None) != Ok(getpid()) {
        return;
    }
    if let Err(error) = std::fs::write(SHARE, NICE) {
        tracing::debug!(%error, "session_share_not_raised");
    }
}
