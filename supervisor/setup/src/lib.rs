//! Definitions of a root: configuration, lanes, roster, and the files of schedules, chats and plugins.

pub mod automation;
pub mod browsers;
pub mod config;
pub mod lanes;
pub mod roster;
