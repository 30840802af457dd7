//! Author of commits.

use serde::{Deserialize, Serialize};

/// Name and address in the worker's commits.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Author {
    /// Name, such as the name of a profile.
    pub name: String,
    /// The address.
    pub email: String,
}
