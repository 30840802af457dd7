//! Where the event log starts, and what folding took from it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::model::clock::Timestamp;
use crate::model::id::EventId;

/// Where a log starts whose older events were folded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Horizon {
    /// The last event that is not in the log any more.
    pub through: EventId,
    /// When it was folded.
    pub at: Timestamp,
}

/// What a step of folding did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Folded {
    /// How many events are gone.
    pub events: u64,
    /// How many bytes of text they had.
    pub bytes: u64,
}
