//! Writes to standard output and standard error. No other module writes to them.

use std::io::Write as _;
use std::sync::atomic::{AtomicBool, Ordering};

use super::safe::guarded;

/// Writes to standard output, with text from others made safe for a terminal. A reader that has gone away is no
/// error, as with other tools.
pub fn print(text: &str) -> std::io::Result<()> {
    let mut out = std::io::stdout().lock();
    match out.write_all(guarded(text).as_bytes()).and_then(|()| out.flush()) {
        Err(e) if e.kind() == std::io::ErrorKind::BrokenPipe => {
            READER_IS_GONE.store(true, Ordering::Relaxed);
            Ok(())
        }
        other => other,
    }
}

static READER_IS_GONE: AtomicBool = AtomicBool::new(false);

/// Returns true once the reader of standard output is gone. A command that only shows something can end then.
pub fn reader_is_gone() -> bool {
    READER_IS_GONE.load(Ordering::Relaxed)
}

/// Writes a line to standard error in one write, so that the log of a run cannot interleave with it. Errors are
/// dropped: there is no place left to report them.
pub fn complain(text: &str) {
    let line = format!("{}\n", guarded(text));
    drop(std::io::stderr().lock().write_all(line.as_bytes()));
}
