//! Counts what a host keeps tests from showing. A runner hides the output of a test that passes, so a printed line alone is never
//! seen: [`skip`] also appends it to the file that `SUPERVISOR_TEST_SKIPS` names, and `tests/run` lists that file at its end.

use std::fs::File;
use std::io::Write as _;

/// Records that a test, or a part of it, was not run, and for want of which facility of the host.
///
/// # Panics
/// Panics if the file of skips cannot be written: an uncounted skip looks like a pass.
#[expect(clippy::print_stdout, reason = "the output of a test is for its reader")]
pub fn skip(reason: &str) {
    println!("skipped: {reason}");
    let Some(path) = std::env::var_os("SUPERVISOR_TEST_SKIPS") else { return };
    let file = File::options().create(true).append(true).open(&path);
    let written = file.and_then(|mut file| writeln!(file, "{reason}"));
    assert!(written.is_ok(), "{} cannot be written: {written:?}", path.display());
}
