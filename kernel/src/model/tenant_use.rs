//! What the tasks of a tenant have used.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::model::status::Status;

/// What runs have used together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RunsUse {
    /// How many runs.
    pub runs: u64,
    /// Processor time, in microseconds.
    pub cpu_us: u64,
    /// The most memory that one of them had, in bytes.
    pub peak_memory_bytes: u64,
    /// Bytes that were read from storage, where the kernel counts them.
    pub read_bytes: u64,
    /// Bytes that were written toward storage.
    pub written_bytes: u64,
    /// Tokens that went to models and came from them, as agents report them.
    pub tokens: u64,
    /// What they cost, in millionths of a US dollar.
    pub cost_micros: u64,
}

impl RunsUse {
    /// Adds what one run has used.
    pub(crate) fn add(&mut self, more: &Self) {
        let sum = |a: u64, b: u64| a.saturating_add(b);
        *self = Self {
            runs: sum(self.runs, more.runs),
            cpu_us: sum(self.cpu_us, more.cpu_us),
            peak_memory_bytes: self.peak_memory_bytes.max(more.peak_memory_bytes),
            read_bytes: sum(self.read_bytes, more.read_bytes),
            written_bytes: sum(self.written_bytes, more.written_bytes),
            tokens: sum(self.tokens, more.tokens),
            cost_micros: sum(self.cost_micros, more.cost_micros),
        };
    }
}

/// What a tenant has and has used.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TenantUse {
    /// How many tasks are in which status.
    pub tasks: BTreeMap<Status, i64>,
    /// What all runs have used.
    pub total: RunsUse,
    /// The same of the runs that began on each day of the host's calendar, the latest days.
    pub days: BTreeMap<String, RunsUse>,
    /// How many files are attached.
    pub attachments: u64,
    /// Their bytes.
    pub attachment_bytes: u64,
    /// The tasks, comments and files that it keeps.
    pub entries: u64,
    /// The bytes of those texts and files.
    pub bytes: u64,
    /// The events of its tasks that the log has.
    pub events: u64,
}
