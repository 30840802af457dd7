//! Lanes: a lane defines how a class of workers is started, and how their ends are read. No other module does either.
//!
//! 1. [`Lane`] is the parsed form of a file of `lanes.d/`;
//! 2. [`Lane::prompt_text`] makes the prompt, and [`Lane::start`] the command, its environment and its readable
//!    files;
//! 3. [`read_ending`] makes the report to the board from the exit record and the standard output.

mod at_home;
mod builtin;
mod check;
mod console;
mod description;
mod ending;
mod environment;
mod exit_codes;
mod extends;
mod facts;
#[cfg(test)]
mod fork_tests;
mod formats;
#[cfg(test)]
mod fuzz_tests;
mod host_replies;
mod lane;
mod lane_file;
mod login;
pub mod program;
mod prompt;
mod registry;
mod servers;
mod service;
mod sessions;
mod skill;
mod start;
mod template;
mod tools;
mod variable;
mod words;

pub use self::at_home::search_path;
pub use self::check::performer as check_performer;
pub use self::description::Description;
pub use self::ending::{
    EndingRules, LONGEST_LIMIT, SoFar, cause_of_requested_end, not_before, read_ending, read_so_far,
};
pub use self::facts::{Facts, RunPaths};
pub use self::formats::{Format, shown, usage_line};
pub use self::host_replies::{Contact, HostReply, OwnRefusal};
pub use self::lane::Lane;
pub use self::prompt::{Branch, Terms, reminder};
pub use self::registry::Lanes;
pub use self::servers::{ToolServer, ToolServers, defect as servers_defect};
pub use self::service::{BY_BROKER, Service};
pub use self::skill::Skill;
pub use self::start::{LoginCommand, Start};
pub use self::tools::{Form, Launch};
