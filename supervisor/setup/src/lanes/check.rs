//! Command and lane of a task's check, which proves that work is done. They do not depend on the lane of the worker.

use kernel::{Profile, Task};

/// Merges both outputs of a check, in the order of writing, into standard error: the next attempt reads the end of
/// it.
const ONE_OUTPUT: &str = "exec /bin/sh -c \"$1\" 1>&2";

/// Lane of checks, which every host has.
const LANE: &str = "shell";

/// Returns the profile that checks run as and are counted for.
///
/// # Panics
/// Never: the name is a constant.
#[expect(clippy::expect_used, reason = "the name is a constant")]
pub fn performer() -> Profile {
    LANE.parse().expect("it is the name of a profile")
}

/// Returns the command line of a task's check.
pub(super) fn command(task: &Task) -> Vec<String> {
    let check = task.check.command.clone().unwrap_or_default();
    ["/bin/sh", "-c", ONE_OUTPUT, "check", check.as_str()].map(str::to_owned).into()
}
