//! Upkeep of a root: diagnosis, the checks of `doctor`, export and import.

pub mod diagnosis;
pub mod doctor;
pub mod transfer;
