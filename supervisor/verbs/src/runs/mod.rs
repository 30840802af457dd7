//! Runs: their list, output, changes and input.

pub(crate) mod diff;
pub(crate) mod dispatch;
pub(crate) mod list;
pub(crate) mod log;
pub(crate) mod steer;
pub(crate) mod type_keys;
