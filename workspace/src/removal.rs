//! Outcome of a removal.

use serde::{Deserialize, Serialize};

/// Outcome of a removal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Removal {
    /// The thing is gone.
    Removed,
    /// The directory is empty; it is left for a user who may write the directory above it.
    Emptied,
    /// There was nothing.
    Absent,
}
