//! Named points at which a test kills the process, as `kill -9` does, or makes a thread hang.
//!
//! `SUPERVISOR_FAIL_POINT=after-claim:3` kills this process the third time that it passes `after-claim`.
//! `SUPERVISOR_HANG_POINT=begin@/some/file` blocks each thread that passes `begin` for as long as the file exists.
//! Without these variables a point costs one load. The points, in the order in which a run passes them:
//!
//! | point | state at the point |
//! |---|---|
//! | `begin` `job` `commit` `committed` | a group of writes: before it, before each of its jobs, before and after the commit |
//! | `after-claim` | the claim is committed |
//! | `after-prepare` | workspace, home and cgroup exist |
//! | `after-run-dir` | the run directory and its spec exist |
//! | `after-spawn` | the shim is started, not yet recorded |
//! | `after-started` | the board records that the command runs |
//! | `after-post` | a message to the agent is in the run directory; the shim is not yet notified |
//! | `after-exit` | the end of the shim was seen |
//! | `after-artifacts` | the artifacts of the run are in the store, and no row names them |
//! | `before-finish` | the end is proven, and the directories of the run are removed |
//! | `after-finish` | the board records the end |
//! | `after-cleanup` | the run directory is removed |
//! | `owner-loop` `reap` `answer` | the owner loop has an event; an end was noticed; a listener has a request |
//! | `after-notify` | a channel accepted or refused a message, not yet recorded |
//! | `after-plugin` | a plugin was called for an event; the result is not yet recorded |
//! | `after-fold` | `gc` has folded some events |
//! | `restore-copied` `restore-files` `restore-kept` `restore-placed` | `restore` has a copy; has its files in the store; has renamed the former board; has put the copy in its place |
//!
//! The points are in every build, so that the tested binary is the shipped one. A user who may set the environment of
//! the daemon may end it in any case. Shims and workers never get the variables.

use std::path::PathBuf;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

const VARIABLE: &str = "SUPERVISOR_FAIL_POINT";
const HANG: &str = "SUPERVISOR_HANG_POINT";
/// Interval between checks of the file that blocks a thread.
const CHECK_INTERVAL: Duration = Duration::from_millis(50);

/// Fail point and the number of passages left before it kills the process.
#[derive(Debug)]
struct Armed {
    point: String,
    left: AtomicI64,
}

impl Armed {
    /// Reads `<point>` or `<point>:<count>`.
    fn parse(text: &str) -> Self {
        let (point, count) = text.split_once(':').unwrap_or((text, "1"));
        Armed { point: point.to_owned(), left: AtomicI64::new(count.parse().unwrap_or(1)) }
    }

    /// Counts a passage; true at the last.
    fn is_last(&self, point: &str) -> bool {
        self.point == point && self.left.fetch_sub(1, Ordering::Relaxed) == 1
    }
}

/// Hang point and the file whose existence blocks the threads there.
#[derive(Debug)]
struct Hanging {
    point: String,
    file: PathBuf,
}

impl Hanging {
    /// Reads `<point>@<file>`.
    fn parse(text: &str) -> Option<Self> {
        let (point, file) = text.split_once('@')?;
        Some(Hanging { point: point.to_owned(), file: file.into() })
    }

    fn pass(&self, point: &str) {
        while self.point == point && self.file.exists() {
            std::thread::sleep(CHECK_INTERVAL);
        }
    }
}

/// Passes a point. Returns at once unless the environment names this point.
pub fn pass(point: &str) {
    static HANGING: OnceLock<Option<Hanging>> = OnceLock::new();
    static ARMED: OnceLock<Option<Armed>> = OnceLock::new();
    let hanging = HANGING.get_or_init(|| std::env::var(HANG).ok().and_then(|text| Hanging::parse(&text)));
    if let Some(hanging) = hanging {
        hanging.pass(point);
    }
    let armed = ARMED.get_or_init(|| std::env::var(VARIABLE).ok().map(|text| Armed::parse(&text)));
    if armed.as_ref().is_some_and(|armed| armed.is_last(point)) {
        // The call cannot fail for the own process. No code after it runs: SIGKILL is delivered on the return from
        // the system call.
        kill(Pid::this(), Signal::SIGKILL).ok();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_point_is_passed_as_often_as_was_said_and_no_other_counts() {
        let armed = Armed::parse("after-claim:2");
        assert!(!armed.is_last("after-spawn"));
        assert!(!armed.is_last("after-claim"));
        assert!(armed.is_last("after-claim"));
        assert!(!armed.is_last("after-claim"));
        assert!(Armed::parse("commit").is_last("commit"));
    }

    #[test]
    fn a_thread_hangs_at_its_point_as_long_as_the_file_is_there() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("hangs");
        std::fs::write(&file, "").unwrap();
        let hanging = Hanging::parse(&format!("begin@{}", file.display())).unwrap();
        hanging.pass("commit");
        let (sender, receiver) = std::sync::mpsc::channel();
        let thread = std::thread::spawn(move || {
            hanging.pass("begin");
            sender.send(()).unwrap();
        });
        assert!(receiver.recv_timeout(CHECK_INTERVAL * 3).is_err());
        std::fs::remove_file(&file).unwrap();
        receiver.recv().unwrap();
        thread.join().unwrap();
        assert!(Hanging::parse("begin").is_none());
    }
}
