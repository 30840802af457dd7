//! Boards: create, edit and remove them, copy them, and read their events.

pub(crate) mod backup;
pub(crate) mod details;
pub(crate) mod events;
pub(crate) mod export;
pub(crate) mod import;
pub(crate) mod init;
pub(crate) mod remove;
