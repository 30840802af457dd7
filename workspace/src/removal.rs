//! What a removal comes to.

use serde::{Deserialize, Serialize};

/// What became of something that was to be removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Removal {
    /// It is gone.
    Removed,
    /// It is empty; the directory itself is left for someone who may write the one above it.
    Emptied,
    /// There was nothing.
    Absent,
}
