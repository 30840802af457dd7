//! The `supervisor` binary: a run's own processes are handed over before anything else happens.

use std::ffi::OsStr;
use std::process::ExitCode;

mod confine;
mod rundir;
mod shim;

fn main() -> ExitCode {
    let mut arguments = std::env::args_os().skip(1);
    match arguments.next().as_deref().and_then(OsStr::to_str) {
        Some("__shim") => shim::main(arguments),
        Some("__confine") => confine::main(arguments),
        _ => ExitCode::from(64),
    }
}
