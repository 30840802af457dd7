//! `text`: text for people. The format has no word for an end, so the exit code alone decides; the end of the text is
//! the final message.

use super::{Finish, WorkerReport};
use shim::rundir::Stdout;

pub(super) fn read(stdout: &Stdout) -> WorkerReport {
    // The exit record bounds the length of the tail.
    let message = Some(stdout.tail().trim().to_owned()).filter(|tail| !tail.is_empty());
    WorkerReport { finish: Finish::Well, message, ..WorkerReport::default() }
}
