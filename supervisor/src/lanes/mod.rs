//! Lanes: the start of a class of workers, and the reading of their endings. No other module does either.
//!
//! 1. [`Lane`] is the parsed form of a file of `lanes.d/`;
//! 2. [`Lane::prompt_text`] makes the prompt, and [`Lane::start`] the command, its environment and its readable
//!    files;
//! 3. [`read_ending`] makes the report to the board from the exit record and the standard output.

mod answers;
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
mod lane;
mod lane_file;
mod login;
pub(crate) mod program;
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

pub(crate) use self::answers::{Answer, Contact, OwnRefusal};
pub(crate) use self::at_home::search_path;
pub(crate) use self::check::performer as check_performer;
pub(crate) use self::description::Description;
pub(crate) use self::ending::{
    EndingRules, LONGEST_LIMIT, SoFar, not_before, read_ending, read_so_far, told_to_end,
};
pub(crate) use self::facts::{Facts, Places};
pub(crate) use self::formats::{Format, shown, usage_line};
pub(crate) use self::lane::Lane;
pub(crate) use self::prompt::{Terms, reminder};
pub(crate) use self::registry::Lanes;
pub(crate) use self::servers::{ToolServer, ToolServers, defect as servers_defect};
pub(crate) use self::service::{BY_BROKER, Service};
pub(crate) use self::skill::Skill;
pub(crate) use self::start::{LoginCommand, Start};
pub(crate) use self::tools::{Form, Launch};
