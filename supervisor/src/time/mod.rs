//! Durations and points in time as people and clients write and read them.

pub(crate) mod duration;
pub(crate) mod since;
pub(crate) mod timestamp;
pub(crate) mod wait;
mod written;
