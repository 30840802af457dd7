//! The `supervisor` binary. Hands the internal processes of runs to their rooms before the command line is parsed.

use std::ffi::OsStr;
use std::process::ExitCode;

mod cli;
mod client;
mod demo;
mod http_worker;
mod login;
mod mcp;
mod output;
mod projection;
mod resources;
mod top;
mod trial;
mod turn_end;

fn main() -> ExitCode {
    shim::narrow_umask();
    let mut arguments = std::env::args_os().skip(1);
    let word = arguments.next();
    let word = word.as_deref().and_then(OsStr::to_str);
    if let Some(code) = shim::process(word, arguments.by_ref()) {
        return code;
    }
    match word {
        Some("__job") => host::job::main(arguments),
        Some("__handback") => host::handback::main(),
        Some("__request") => http_worker::main(arguments),
        Some("__kanban") => projection::main(arguments),
        Some("__a2a") => http_worker::a2a_main(arguments),
        Some("__turn_end") => turn_end::main(arguments),
        Some("__script") => mcp::script_main(arguments),
        Some("__probe") => demo::probe_main(arguments),
        _ => cli::main(),
    }
}
