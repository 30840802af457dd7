//! `text`: text for people. It has no word for an end, so the exit code alone decides, and its end is the final message.

use super::{Finish, Said};
use shim::rundir::Stdout;

pub(super) fn read(stdout: &Stdout) -> Said {
    // As much of it is kept as an exit record has.
    let message = Some(stdout.tail().trim().to_owned()).filter(|tail| !tail.is_empty());
    Said { finish: Finish::Well, message, ..Said::default() }
}
