//! The `supervisor` binary. Hands the internal processes of runs to their rooms before the command line is parsed.

use std::ffi::OsStr;
use std::process::ExitCode;

mod a2a;
mod a2a_wire;
mod api;
mod automation;
mod browsers;
mod chat;
mod cli;
mod client;
mod command;
mod config;
mod daemon;
mod dashboard;
mod demo;
mod diagnosis;
mod doctor;
mod environment;
mod executable;
mod exit;
mod failpoint;
mod failure;
mod gc;
mod given;
mod host;
mod http_worker;
mod invocation;
mod journal;
mod lanes;
mod login;
mod mcp;
mod notify;
mod output;
mod owner;
mod paths;
mod plugins;
mod program;
mod projection;
mod proxy;
mod resources;
mod roster;
mod service;
mod short_ids;
mod steps;
mod table;
mod telemetry;
mod terminal;
mod time;
mod top;
mod transfer;
mod trial;
mod turn_end;
mod verbs;

fn main() -> ExitCode {
    host::umask::narrow();
    let mut arguments = std::env::args_os().skip(1);
    match arguments.next().as_deref().and_then(OsStr::to_str) {
        Some("__shim") => shim::shim_main(arguments),
        Some("__init") => shim::init_main(),
        Some("__attend") => shim::attend_main(arguments),
        Some("__confine") => shim::confine_main(arguments),
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
