//! Position of a plugin in the events of a board.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::model::clock::Timestamp;
use crate::model::id::{EventId, PluginName};

/// Position of a plugin in the events of a board, with the result of its latest try.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PluginCursor {
    pub plugin: PluginName,
    /// Last event that the plugin is done with, all earlier events included.
    pub event: EventId,
    /// Number of tries of the next event that have failed in a row.
    pub attempts: u32,
    /// Time of the next try; zero means at once.
    pub due_at: Timestamp,
    /// Time of the first of these failures.
    pub failing_since: Option<Timestamp>,
    /// Time since which the plugin gets no events, because it failed too often.
    pub paused_at: Option<Timestamp>,
    /// Error of the latest try.
    pub last_error: Option<String>,
}
