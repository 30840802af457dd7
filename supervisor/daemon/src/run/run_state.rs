//! State of a run that the daemon itself keeps in the run directory.

use std::io;
use std::path::Path;

use kernel::{CommitMode, Profile};
use policies::{Identity, LaneHosts};
use serde::{Deserialize, Serialize};
use shim::rundir::write_json;
use shim::shortage::unless_short;
use workspace::Worktree;

use super::evidence::GitStart;
use super::retained_files::Retention;
use setup::lanes::EndingRules;
use setup::roster::PoolClaim;

/// State of a run that the daemon keeps in the run directory until the run's end.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct RunState {
    /// Rules by which its lane reads its ending.
    #[serde(flatten)]
    pub rules: EndingRules,
    /// User and group of the worker, if not the daemon's.
    pub identity: Option<(u32, u32)>,
    /// True if no other run ever has that user.
    pub exclusive_uid: bool,
    /// Worktree that the run worked in.
    pub worktree: Option<Worktree>,
    /// Handling of the changes that it leaves uncommitted there.
    pub commit: CommitMode,
    /// Git state at its start, if it works in git.
    #[serde(rename = "begun")]
    pub git_start: Option<GitStart>,
    /// Profile that reviews the work if the worker asks for a review by its exit.
    pub reviewer: Option<Profile>,
    /// Files of its home to keep.
    #[serde(rename = "keeping")]
    pub retained: Option<Retention>,
    /// Limited resources that it takes.
    #[serde(rename = "share")]
    pub pool_claim: PoolClaim,
    /// Lane of the work and its hosts; none for a check.
    pub lane: Option<LaneHosts>,
    /// Number of counted failures in a row after which the task is blocked.
    pub failure_limit: u32,
}

const FILE: &str = "daemon.json";

impl RunState {
    /// Reads the state of a run; none if it is missing or invalid.
    ///
    /// # Errors
    /// The host lacks a resource for now, so that the state is not known.
    pub(crate) fn read(dir: &Path) -> io::Result<Option<Self>> {
        let bytes = unless_short(std::fs::read(dir.join(FILE)))?;
        Ok(bytes.and_then(|bytes| serde_json::from_slice(&bytes).ok()))
    }

    pub(super) fn write(&self, dir: &Path) -> std::io::Result<()> {
        write_json(dir, FILE, self)
    }

    /// Returns the worker's user, if not the daemon's.
    pub(crate) fn identity(&self) -> Option<Identity> {
        self.identity.map(|(uid, gid)| Identity { uid, gid })
    }
}
