//! Use of resources by the tasks of a tenant.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::model::status::Status;

/// Use of resources by several runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RunsUse {
    pub runs: u64,
    /// Processor time, in microseconds.
    pub cpu_us: u64,
    /// Largest memory of any single run, in bytes.
    pub peak_memory_bytes: u64,
    /// Bytes read from storage, where the kernel counts them.
    pub read_bytes: u64,
    /// Bytes written toward storage.
    pub written_bytes: u64,
    /// Tokens to and from models, as agents report them.
    pub tokens: u64,
    /// Cost in millionths of a US dollar.
    pub cost_micros: u64,
}

impl RunsUse {
    /// Adds the use of other runs.
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

/// Data and use of a tenant.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TenantUse {
    /// Number of tasks in each status.
    pub tasks: BTreeMap<Status, i64>,
    /// Use by all runs.
    pub total: RunsUse,
    /// Use by the runs that began on each of the latest days of the host's calendar.
    pub days: BTreeMap<String, RunsUse>,
    /// Number of attached files.
    pub attachments: u64,
    /// Bytes of the attached files.
    pub attachment_bytes: u64,
    /// Number of tasks, comments and files.
    pub entries: u64,
    /// Bytes of these texts and files.
    pub bytes: u64,
    /// Number of events of its tasks in the log.
    pub events: u64,
}
