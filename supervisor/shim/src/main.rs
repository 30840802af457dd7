//! Program of a run's own processes, built without the rest of the supervisor. The `supervisor` binary contains a copy,
//! from which a daemon starts its shims: a small program without relocations starts in a fraction of the time.

use std::ffi::OsStr;
use std::io::Write as _;
use std::process::ExitCode;

/// Exit code of a wrong use, `EX_USAGE` of `sysexits.h`.
const USAGE: u8 = 64;

fn main() -> ExitCode {
    shim::narrow_umask();
    let mut arguments = std::env::args_os().skip(1);
    let word = arguments.next();
    shim::process(word.as_deref().and_then(OsStr::to_str), arguments).unwrap_or_else(|| {
        writeln!(std::io::stderr(), "error: this program is started by a supervisor").ok();
        ExitCode::from(USAGE)
    })
}
