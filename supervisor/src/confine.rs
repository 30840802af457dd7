//! `__confine <run dir> <report fd> <shim pid>`: applies the run's policy, then becomes the worker.

use std::ffi::OsString;
use std::process::ExitCode;

/// Confines this process and execs the run's command; returns only when that failed.
pub(crate) fn main(_arguments: impl Iterator<Item = OsString>) -> ExitCode {
    ExitCode::from(127)
}
