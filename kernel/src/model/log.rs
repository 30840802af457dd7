//! Start of the event log, and the figures of folding.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::model::clock::Timestamp;
use crate::model::id::EventId;

/// Start of a log whose older events were folded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Horizon {
    /// Id of the last event that folding removed.
    pub through: EventId,
    /// Time of that folding.
    pub at: Timestamp,
}

/// Figures of one folding step.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Folded {
    /// Number of events removed.
    pub events: u64,
    /// Bytes of text that the removed events had.
    pub bytes: u64,
}
