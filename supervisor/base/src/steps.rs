//! Steps of a trial, as `notify test` and `plugin check` report it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Step of a trial, such as a delivery.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Step {
    pub name: String,
    /// True if the step succeeded.
    pub ok: bool,
    /// Outcome in words. Free of secrets; names at most the host of a service's address.
    pub detail: String,
}
