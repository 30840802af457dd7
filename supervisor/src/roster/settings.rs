//! Front matter of a profile: its settings beside the text for workers.

use std::collections::BTreeSet;

use kernel::{Pool, Profile, WorkerRole};
use policies::HostRule;
use serde::Deserialize;

use super::home::Home;
use crate::lanes::ToolServers;
use crate::time::duration::WrittenDuration;

/// Settings in the front matter. This one list of keys serves the code that reads, checks, writes and uses profiles.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Settings {
    pub(crate) name: Option<String>,
    /// Purpose, on one line.
    pub(crate) description: Option<String>,
    pub(crate) role: WorkerRole,
    /// Lane; none for the configured default.
    pub(crate) lane: Option<Profile>,
    /// Model, in place of the lane's.
    pub(crate) model: Option<String>,
    /// Policy of tasks that name none, in place of the lane's.
    pub(crate) policy: Option<String>,
    /// Account with shared rate limits, in place of the lane's.
    pub(crate) account: Option<String>,
    pub(crate) skills: Vec<String>,
    /// Hosts that its workers may reach through the proxy of their policy, in addition to the lane's hosts.
    pub(crate) hosts: BTreeSet<HostRule>,
    /// Tool servers in addition to the board's.
    pub(crate) mcp_servers: ToolServers,
    /// Part of a worker's home that later runs find again.
    pub(crate) home: Home,
    /// Pools in which each of its workers takes a place, in addition to the lane's pools.
    pub(crate) pools: BTreeSet<Pool>,
    pub(crate) limits: Limits,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Limits {
    pub(crate) max_runtime: Option<WrittenDuration>,
    pub(crate) idle_limit: Option<WrittenDuration>,
    pub(crate) max_running: Option<usize>,
}
