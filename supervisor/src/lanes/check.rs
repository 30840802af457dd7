//! The check of a task: the command that proves work done, and what it runs as. Both are the same for every lane of a worker.

use kernel::{Profile, Task};

/// Both outputs of a check are one, in the order in which they were written: the end of it is what the next attempt reads.
const ONE_OUTPUT: &str = "exec /bin/sh -c \"$1\" 1>&2";

/// The lane that checks run in, which every host has.
const LANE: &str = "shell";

/// Who checks are run as, and therefore count as.
#[expect(clippy::expect_used, reason = "the name is a constant")]
pub(crate) fn performer() -> Profile {
    LANE.parse().expect("it is the name of a profile")
}

/// The words of the check of a task.
pub(super) fn command(task: &Task) -> Vec<String> {
    let check = task.check.command.clone().unwrap_or_default();
    ["/bin/sh", "-c", ONE_OUTPUT, "check", check.as_str()].map(str::to_owned).into()
}
