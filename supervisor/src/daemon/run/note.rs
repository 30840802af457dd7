//! What the daemon itself keeps in the directory of a run.

use std::io;
use std::path::Path;

use kernel::Profile;
use policies::{Identity, LaneHosts};
use serde::{Deserialize, Serialize};
use shim::rundir::write_json;
use shim::shortage::unless_short;
use workspace::Worktree;

use super::evidence::Begun;
use super::kept_files::Keeping;
use crate::lanes::EndingRules;
use crate::roster::Share;

/// What the daemon itself keeps in a run directory, for the end of the run.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(in crate::daemon) struct Note {
    /// How its lane reads its ending.
    #[serde(flatten)]
    pub(in crate::daemon) rules: EndingRules,
    /// The worker's user, if not the daemon's.
    pub(in crate::daemon) identity: Option<(u32, u32)>,
    /// Whether no other run ever has that user.
    pub(in crate::daemon) exclusive_uid: bool,
    /// The worktree that the run worked in.
    #[serde(default)]
    pub(in crate::daemon) worktree: Option<Worktree>,
    /// Where it began, where it works in a tree of git.
    #[serde(default)]
    pub(in crate::daemon) begun: Option<Begun>,
    /// The profile that reviews the work where its worker asks for a review by ending.
    #[serde(default)]
    pub(in crate::daemon) reviewer: Option<Profile>,
    /// What of its home is kept.
    #[serde(default)]
    pub(in crate::daemon) keeping: Option<Keeping>,
    /// What it takes of what is limited; none in the note of an earlier release.
    #[serde(default)]
    pub(in crate::daemon) share: Option<Share>,
    /// The lane of the work, and the hosts that it names; none for a check.
    #[serde(default)]
    pub(in crate::daemon) lane: Option<LaneHosts>,
    /// Counted failures in a row until the task is blocked.
    pub(in crate::daemon) failure_limit: u32,
}

const FILE: &str = "daemon.json";

impl Note {
    /// Reads the note of a run; none where the run never got that far, or where it is no note.
    ///
    /// # Errors
    /// The host lacks something for now: that says nothing of the note.
    pub(in crate::daemon) fn read(dir: &Path) -> io::Result<Option<Self>> {
        let bytes = unless_short(std::fs::read(dir.join(FILE)))?;
        Ok(bytes.and_then(|bytes| serde_json::from_slice(&bytes).ok()))
    }

    pub(super) fn write(&self, dir: &Path) -> std::io::Result<()> {
        write_json(dir, FILE, self)
    }

    /// The worker's user.
    pub(in crate::daemon) fn identity(&self) -> Option<Identity> {
        self.identity.map(|(uid, gid)| Identity { uid, gid })
    }
}
