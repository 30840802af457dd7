//! `supervisor __script PARENT PYTHON SCRIPT`: executes the interpreter of a script for `supervisor mcp`, in a session
//! and a Landlock domain of its own.
//!
//! The server passes the socket of the tools as standard input. The socket moves to another descriptor, so that child
//! processes of the script do not read it as their input, and standard input becomes empty.

use std::ffi::OsString;
use std::fs::File;
use std::io::Write as _;
use std::os::unix::process::CommandExt as _;
use std::process::{Command, ExitCode};

use rustix::io::{FdFlags, dup, fcntl_setfd};
use rustix::process::{Signal, getppid, set_parent_process_death_signal, setsid};

/// Exit code of a script that was not started.
const NOT_BEGUN: u8 = 127;

pub(crate) fn main(arguments: impl Iterator<Item = OsString>) -> ExitCode {
    let why = become_script(&arguments.collect::<Vec<_>>());
    // No other output remains if standard error cannot be written.
    drop(writeln!(std::io::stderr(), "the script was not begun: {why}"));
    ExitCode::from(NOT_BEGUN)
}

/// Executes the interpreter. Returns only on failure, with the reason.
fn become_script(arguments: &[OsString]) -> String {
    let [parent, python, script] = arguments else { return "this is for `supervisor mcp`".to_owned() };
    let step = |what: &str, error: &dyn std::error::Error| format!("failed to {what}: {error}");
    // The signal comes only if the parent ends after this call (prctl(2), `PR_SET_PDEATHSIG`). So the parent is compared
    // afterwards: if it ended earlier, another process is the parent by now.
    if let Err(e) = set_parent_process_death_signal(Some(Signal::KILL)) {
        return step("end with its server", &e);
    }
    let is_parent =
        |pid: rustix::process::Pid| Some(pid.as_raw_nonzero().to_string().as_str()) == parent.to_str();
    if !getppid().is_some_and(is_parent) {
        return "its server has gone".to_owned();
    }
    if let Err(e) = setsid() {
        return step("make a session", &e);
    }
    if let Err(e) = policies::enter_own_domain() {
        return step("keep the token of the run from it", &e);
    }
    // The copy stays open in the interpreter, because it has no `FD_CLOEXEC` (fcntl(2)).
    let tools = match dup(std::io::stdin()).and_then(|fd| fcntl_setfd(&fd, FdFlags::empty()).map(|()| fd)) {
        Ok(tools) => tools,
        Err(e) => return step("keep the socket of the tools", &e),
    };
    let nothing = match File::open("/dev/null") {
        Ok(nothing) => nothing,
        Err(e) => return step("open /dev/null", &e),
    };
    let descriptor = std::os::fd::AsRawFd::as_raw_fd(&tools).to_string();
    let mut interpreter = Command::new(python);
    // `-u` writes output at once, so that none is lost by a kill. `-s` ignores the user's packages, `-B` writes no byte
    // code files.
    interpreter
        .args(["-u", "-s", "-B", "-X", "utf8"])
        .arg(script)
        .stdin(nothing)
        .env("SUPERVISOR_TOOLS_FD", descriptor);
    step("execute the interpreter", &interpreter.exec())
}
