//! Front matter of a profile: its settings beside the text for workers.

use std::collections::BTreeSet;

use kernel::{Pool, Profile, WorkerRole};
use policies::HostRule;
use serde::Deserialize;

use super::home::Home;
use crate::lanes::ToolServers;
use base::time::duration::WrittenDuration;

/// Settings in the front matter. This one list of keys serves the code that reads, checks, writes and uses profiles.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Settings {
    pub name: Option<String>,
    /// Purpose, on one line.
    pub description: Option<String>,
    pub role: WorkerRole,
    /// Lane; none for the configured default.
    pub lane: Option<Profile>,
    /// Model, in place of the lane's.
    pub model: Option<String>,
    /// Policy of tasks that name none, in place of the lane's.
    pub policy: Option<String>,
    /// Account with shared rate limits, in place of the lane's.
    pub account: Option<String>,
    pub skills: Vec<String>,
    /// Hosts that its workers may reach through the proxy of their policy, in addition to the lane's hosts.
    pub hosts: BTreeSet<HostRule>,
    /// Tool servers in addition to the board's.
    pub mcp_servers: ToolServers,
    /// Part of a worker's home that later runs find again.
    pub home: Home,
    /// Pools in which each of its workers takes a place, in addition to the lane's pools.
    pub pools: BTreeSet<Pool>,
    pub limits: Limits,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Limits {
    pub max_runtime: Option<WrittenDuration>,
    pub idle_limit: Option<WrittenDuration>,
    pub max_running: Option<usize>,
}
