//! What was tried, step by step, as `notify test` and `plugin check` show it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// One step of what is tried, such as a delivery.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Step {
    /// What was done.
    pub(crate) name: String,
    /// Whether it worked.
    pub(crate) ok: bool,
    /// What came of it. It has no secret and no address of a service beyond its host.
    pub(crate) detail: String,
}
