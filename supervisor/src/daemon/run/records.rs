//! What the directory of a run tells when the run is over. What the host lacks for a while is never taken for a file that is not there.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use kernel::MessageNews;
use policies::Identity;
use shim::rundir::{RunDir, RunDirError, RunSpec};
use shim::shortage::unless_short;

use super::context::{Context, RETRY};
use super::key::TaskKey;
use super::live::Phase;
use super::messages;
use super::note::Note;
use super::report::Report;
use crate::failure::with_causes;

/// What is known of a run that is over.
#[derive(Debug, Default)]
pub(super) struct Records {
    /// How it was to be started; none where its directory is gone, or is a copy of another root's.
    pub(super) spec: Option<RunSpec>,
    /// What this daemon or one before it has noted; none where the run never got that far, or its directory is gone.
    pub(super) note: Option<Note>,
    /// What became of the messages to its agent.
    pub(super) news: Vec<MessageNews>,
}

impl Records {
    /// Reads them, as often as the host needs.
    pub(super) async fn of(context: &Context, key: &TaskKey, path: PathBuf) -> Self {
        loop {
            let path = path.clone();
            let why = match tokio::task::spawn_blocking(move || Self::read(&path)).await {
                Ok(Ok(records)) => return records,
                Ok(Err(why)) => why,
                Err(panic) => panic.to_string(),
            };
            tracing::warn!(task = %key, error = %why, "records_not_read");
            context.tell(key, Report::Delayed(Phase::Settling, why)).await;
            tokio::time::sleep(RETRY).await;
        }
    }

    /// Reads them once. Blocking.
    ///
    /// # Errors
    /// The host lacks something for now.
    pub(super) fn read(path: &Path) -> Result<Self, String> {
        let short = |error: &dyn std::error::Error| with_causes(error);
        let dir = match RunDir::open(path) {
            Ok(dir) => dir,
            // All of a copy is another root's.
            Err(RunDirError::Copied { .. }) => return Ok(Records::default()),
            Err(RunDirError::Open { source, .. }) if source.kind() == ErrorKind::NotFound => {
                return Ok(Records::default());
            }
            Err(error) => return Err(short(&error)),
        };
        Ok(Records {
            spec: unless_short(dir.spec()).map_err(|e| short(&e))?,
            note: Note::read(path).map_err(|e| short(&e))?,
            news: messages::last_news(&dir).map_err(|e| short(&e))?,
        })
    }

    /// The worker's user, if not the daemon's.
    pub(super) fn identity(&self) -> Option<Identity> {
        self.note.as_ref().and_then(Note::identity)
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
        let read = || Records::read(place.path()).map(|records| records.note.is_some());
        assert_eq!(read(), Ok(false));
        // A read of it fails with EIO, as that of a bad disk.
        for name in ["daemon.json", "spec.json", "messages"] {
            symlink("/proc/self/mem", place.path().join(name)).unwrap();
            assert!(read().is_err(), "{name}");
            fs::remove_file(place.path().join(name)).unwrap();
        }
        assert_eq!(
            Records::read(&place.path().join("gone")).map(|records| records.spec.is_some()),
            Ok(false)
        );
    }
}
