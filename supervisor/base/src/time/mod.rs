//! Durations and points in time as people and clients write and read them.

pub mod duration;
mod seconds_or_text;
pub mod since;
pub mod timestamp;
pub mod wait;
