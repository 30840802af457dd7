//! The front matter of a profile: what its file says beside the text that its workers read.

use std::collections::BTreeSet;

use kernel::{Pool, Profile, WorkerRole};
use policies::HostRule;
use serde::Deserialize;

use super::home::Home;
use crate::lanes::ToolServers;
use crate::time::duration::WrittenDuration;

/// What the front matter says. What reads, checks, writes and uses profiles has this one list of keys.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Settings {
    /// The name that the file gives itself.
    pub(crate) name: Option<String>,
    /// What it is for, in one line.
    pub(crate) description: Option<String>,
    /// What its workers are there for.
    pub(crate) role: WorkerRole,
    /// Its lane; the configured one where it names none.
    pub(crate) lane: Option<Profile>,
    /// The model, instead of its lane's.
    pub(crate) model: Option<String>,
    /// The policy of tasks that name none, instead of its lane's.
    pub(crate) policy: Option<String>,
    /// The account whose limits its workers share, instead of its lane's.
    pub(crate) account: Option<String>,
    /// The skills of its workers.
    pub(crate) skills: Vec<String>,
    /// Hosts that its workers reach beside those of their lane, where their policy has a proxy.
    pub(crate) hosts: BTreeSet<HostRule>,
    /// Servers of tools that its workers have beside the board's.
    pub(crate) mcp_servers: ToolServers,
    /// What is kept of their homes.
    pub(crate) home: Home,
    /// The pools of which each of its workers needs a place, beside those of its lane.
    pub(crate) pools: BTreeSet<Pool>,
    pub(crate) limits: Limits,
}

/// The limits of a profile.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Limits {
    pub(crate) max_runtime: Option<WrittenDuration>,
    pub(crate) idle_limit: Option<WrittenDuration>,
    pub(crate) max_running: Option<usize>,
}
