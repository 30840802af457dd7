//! Foundations of the supervisor: failures and exit codes, paths of a root, times, terminals, and the table of verbs.

pub mod a2a_wire;
pub mod cli_context;
pub mod environment;
pub mod executable;
pub mod exit;
pub mod failpoint;
pub mod failure;
pub mod findings;
pub mod invocation;
pub mod journal;
pub mod json;
pub mod owner;
pub mod paths;
pub mod response;
pub mod short_ids;
pub mod steps;
mod table;
pub mod terminal;
pub mod time;
