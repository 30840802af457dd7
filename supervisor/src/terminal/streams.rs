//! Standard output and standard error. Nothing else writes to them.

use std::io::Write as _;
use std::sync::atomic::{AtomicBool, Ordering};

use super::safe::guarded;

/// Writes to standard output, where no text of others can drive a terminal. A reader that has gone away ends the output quietly, as other tools do.
pub(crate) fn print(text: &str) -> std::io::Result<()> {
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

/// Whether nobody reads standard output any more: what only shows something is over then.
pub(crate) fn reader_is_gone() -> bool {
    READER_IS_GONE.load(Ordering::Relaxed)
}

/// Writes a line to standard error, in one piece so that the log of a run cannot put other output into it. There is
/// nowhere left to report a failure of that.
pub(crate) fn complain(text: &str) {
    let line = format!("{}\n", guarded(text));
    drop(std::io::stderr().lock().write_all(line.as_bytes()));
}
