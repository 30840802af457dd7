//! How far a plugin has taken the events of a board.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::model::clock::Timestamp;
use crate::model::id::{EventId, PluginName};

/// How far a plugin has taken the events of a board, and what became of its latest try.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PluginCursor {
    /// The plugin.
    pub plugin: PluginName,
    /// Everything up to this event is done with.
    pub event: EventId,
    /// How many tries of the next event have failed in a row.
    pub attempts: u32,
    /// When the next event is tried; zero for at once.
    pub due_at: Timestamp,
    /// Since when it fails.
    pub failing_since: Option<Timestamp>,
    /// Since when it gets no events, because it failed too often.
    pub paused_at: Option<Timestamp>,
    /// Why the latest try failed.
    pub last_error: Option<String>,
}
