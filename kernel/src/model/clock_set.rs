//! Record of a correction: the counts of recomputed times after the real-time clock was set back.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::model::clock::Timestamp;
use crate::model::counted::Counted;

/// Stored times that were later than their rules could make them, and were recomputed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ClockSet {
    /// Time of the correction.
    pub at: Timestamp,
    /// Number of schedules whose next tick was recomputed.
    pub schedules: u64,
    /// Number of holds whose end was recomputed.
    pub holds: u64,
    /// Number of tasks whose next try was recomputed.
    pub tasks: u64,
    /// Number of requests for approvals whose end was recomputed.
    pub requests: u64,
    /// Number of messages and plugins whose next try was recomputed.
    pub messages: u64,
    /// Number of tasks and holds with a time that a caller named while the clock was ahead. Such a time stays.
    pub named: u64,
}

impl ClockSet {
    /// Returns true if nothing lay in the future.
    pub fn is_empty(&self) -> bool {
        *self == Self { at: self.at, ..Self::default() }
    }
}

impl fmt::Display for ClockSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let counts = [
            (self.schedules, "schedule"),
            (self.holds, "hold"),
            (self.tasks, "task"),
            (self.requests, "request"),
            (self.messages, "message"),
        ];
        let parts: Vec<String> = counts
            .iter()
            .filter(|(count, _)| *count > 0)
            .map(|(count, what)| Counted(*count, what).to_string())
            .collect();
        f.write_str("stored times lay in the future")?;
        if !parts.is_empty() {
            write!(f, "; recomputed: {}", parts.join(", "))?;
        }
        if self.named > 0 {
            let named = Counted(self.named, "time");
            write!(
                f,
                "; kept: {named} that callers named (supervisor list --status scheduled, supervisor holds)"
            )?;
        }
        Ok(())
    }
}
