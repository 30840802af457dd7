//! Who makes commits.

use serde::{Deserialize, Serialize};

/// Whose name the worker's commits carry.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Author {
    /// The name, such as a profile's.
    pub name: String,
    /// The address.
    pub email: String,
}
