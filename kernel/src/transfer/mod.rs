//! Boards that leave and boards that come: exports, backups, and the board of the established program.

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
