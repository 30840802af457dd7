//! Author of commits.

use serde::{Deserialize, Serialize};

/// Name and address that the worker's commits carry.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Author {
    /// The name, such as a profile's.
    pub name: String,
    /// The address.
    pub email: String,
}
