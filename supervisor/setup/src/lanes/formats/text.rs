//! `text`: text for people. The format has no word for an end, so the exit code alone decides; the end of the text is
//! the final message.

use super::{Finish, Said};
use shim::rundir::Stdout;

pub(super) fn read(stdout: &Stdout) -> Said {
    // The exit record bounds the length of the tail.
    let message = Some(stdout.tail().trim().to_owned()).filter(|tail| !tail.is_empty());
    Said { finish: Finish::Well, message, ..Said::default() }
}
