//! Reads the records of a run directory when the run is over. A shortage of the host is never mistaken for a missing
//! file.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use kernel::{LostArtifact, MessageNews, Run};
use policies::Identity;
use shim::rundir::{RunDir, RunDirError, RunSpec};
use shim::shortage::unless_short;

use super::messages;
use super::release::{EndDelay, Next};
use super::run_state::RunState;
use base::failure::with_causes;

/// Records of a run that is over.
#[derive(Debug, Default)]
pub(super) struct Records {
    /// Spec; none if the run directory is gone or was copied from another root.
    pub(super) spec: Option<RunSpec>,
    /// Note of this daemon or an earlier one; none if the run did not get that far, or its directory is gone.
    pub(super) run_state: Option<RunState>,
    /// Receipts of messages to its agent.
    pub(super) news: Vec<MessageNews>,
    /// True if the state exists, or existed, and cannot be read.
    is_lost: bool,
}

impl Records {
    /// Reads the records, retrying during a shortage. If a person reclaims the task meanwhile, returns the readable
    /// part.
    pub(super) async fn read_retrying(trouble: &mut EndDelay<'_>, path: PathBuf) -> Self {
        loop {
            let place = path.clone();
            let why = match tokio::task::spawn_blocking(move || Self::read(&place)).await {
                Ok(Ok(records)) => return records,
                Ok(Err(why)) => why,
                Err(panic) => panic.to_string(),
            };
            let key = trouble.key().clone();
            tracing::warn!(task = %key, error = %why, "records_not_read");
            let text = format!("{why}; `supervisor reclaim {}` ends the run without what it says", key.task);
            if let Next::DoWithout(_) = trouble.wait(&text).await {
                tracing::error!(task = %key, error = %why, "records_lost");
                let readable = tokio::task::spawn_blocking(move || Self::readable(&path)).await;
                return readable.unwrap_or_else(|_| Records { is_lost: true, ..Records::default() });
            }
        }
    }

    /// Reads the readable part. Blocks.
    fn readable(path: &Path) -> Self {
        let run_state = RunState::read(path);
        let dir = RunDir::open(path).ok();
        Records {
            is_lost: run_state.is_err() || dir.is_none(),
            run_state: run_state.ok().flatten(),
            spec: dir.as_ref().and_then(|dir| dir.spec().ok()),
            news: dir.as_ref().and_then(|dir| messages::last_news(dir).ok()).unwrap_or_default(),
        }
    }

    /// Returns the branch of a run whose worktree cannot be sealed because its state is lost.
    pub(super) fn unsealed(&self, run: &Run) -> Option<LostArtifact> {
        let path = run.branch_name.clone().filter(|_| self.is_lost)?;
        let reason = "the record of its worktree cannot be read, so the worktree is as its worker left it: git may run what is in it";
        Some(LostArtifact { path, reason: reason.to_owned() })
    }

    /// Reads the records once. Blocks.
    ///
    /// # Errors
    /// The host lacks a resource for now.
    pub(super) fn read(path: &Path) -> Result<Self, String> {
        let short = |error: &dyn std::error::Error| with_causes(error);
        let dir = match RunDir::open(path) {
            Ok(dir) => dir,
            // Everything in a copy belongs to another root.
            Err(RunDirError::Copied { .. }) => return Ok(Records::default()),
            Err(RunDirError::Open { source, .. }) if source.kind() == ErrorKind::NotFound => {
                return Ok(Records::default());
            }
            Err(error) => return Err(short(&error)),
        };
        Ok(Records {
            spec: unless_short(dir.spec()).map_err(|e| short(&e))?,
            run_state: RunState::read(path).map_err(|e| short(&e))?,
            news: messages::last_news(&dir).map_err(|e| short(&e))?,
            is_lost: false,
        })
    }

    /// Returns the worker's user, if not the daemon's.
    pub(super) fn identity(&self) -> Option<Identity> {
        self.run_state.as_ref().and_then(RunState::identity)
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn what_cannot_be_read_for_now_is_not_taken_for_what_is_not_there() {
        let place = tempfile::tempdir().unwrap();
        let read = || Records::read(place.path()).map(|records| records.run_state.is_some());
        assert_eq!(read(), Ok(false));
        // Reading it fails with EIO, like a bad disk.
        for name in ["daemon.json", "spec.json", "messages"] {
            symlink("/proc/self/mem", place.path().join(name)).unwrap();
            assert!(read().is_err(), "{name}");
            assert_eq!(Records::readable(place.path()).is_lost, name == "daemon.json");
            fs::remove_file(place.path().join(name)).unwrap();
        }
        assert_eq!(
            Records::read(&place.path().join("gone")).map(|records| records.spec.is_some()),
            Ok(false)
        );
    }
}
