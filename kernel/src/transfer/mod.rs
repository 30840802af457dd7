//! Exports, imports and backups of boards, and the import of a board of Hermes Kanban.

pub(crate) mod adopt;
pub(crate) mod backup;
mod bundle;
mod cells;
mod chunks;
pub(crate) mod export;
pub(crate) mod peer;
pub(crate) mod projection;

#[cfg(test)]
mod fuzz_tests;
