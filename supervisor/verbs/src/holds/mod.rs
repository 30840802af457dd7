//! Holds: keep tasks from starting for a while.

pub(crate) mod hold;
pub(crate) mod list;
pub(crate) mod release;
