//! Lanes: how a class of worker is started, and how its ending is read. Nothing else knows either.
//!
//! 1. [`Lane`] is what a file of `lanes.d/` says;
//! 2. [`Lane::start`] makes the command, its environment, its prompt and what it may read;
//! 3. [`read_ending`] makes the report to the board from the exit record and the standard output.

mod ending;
mod environment;
mod formats;
mod lane;
mod registry;
mod start;

pub(crate) use self::ending::{EndingRules, read_ending};
pub(crate) use self::lane::Lane;
pub(crate) use self::registry::Lanes;
pub(crate) use self::start::{Facts, Places, Start};
