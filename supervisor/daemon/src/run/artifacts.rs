//! Takes the artifacts that a run declared out of its workspace, before the board records its end.
//!
//! The worker's processes have ended, and its files are as it left them. A job process under the worker's uid, which
//! sees only the workspace, reads each file. The bytes go through a file without a name into the board's store.
//!
//! An artifact is charged like an attachment, in the transaction that ends its run; without that, the quota of a
//! tenant would not limit its files. The bytes are stored before, so that the transaction does not wait for the job
//! process. Bytes of a refused artifact are removed when the end is recorded.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{Seek as _, SeekFrom};
use std::path::{Path, PathBuf};

use kernel::limits::ATTACHMENT;
use kernel::{Blobs, Digest, Handed, LostArtifact, NewAttachment, Published, Run, Verdict};
use policies::Identity;

use super::records::Records;
use host::job;

/// Result for the declared files of a run.
#[derive(Debug, Default)]
pub(crate) struct TakenFiles {
    /// Files that were taken, and files that were lost.
    pub handed: Handed,
    /// Keeps the bytes from being swept until the board refers to them.
    guards: Vec<Published>,
}

impl TakenFiles {
    /// Makes a result without a taken file, from the reasons.
    pub(crate) fn lost(lost: Vec<LostArtifact>) -> Self {
        TakenFiles { handed: Handed { lost, ..Handed::default() }, ..TakenFiles::default() }
    }

    /// Returns the digests of all taken files.
    pub(super) fn digests(&self) -> BTreeSet<Digest> {
        self.guards.iter().map(|published| published.digest.clone()).collect()
    }

    /// Adds another result.
    pub(crate) fn join(&mut self, more: TakenFiles) {
        self.handed.kept.extend(more.handed.kept);
        self.handed.lost.extend(more.handed.lost);
        self.guards.extend(more.guards);
    }
}

/// Takes the declared files of a run. Blocks.
///
/// # Errors
/// The host lacks a resource for now: the caller tries again.
pub(super) fn take(run: &Run, records: &Records, blobs: &Blobs) -> Result<TakenFiles, String> {
    let mut taken = TakenFiles::default();
    let identity = records.identity();
    let recorded_cwd = records.spec.as_ref().map(|spec| spec.cwd.clone());
    let workspace = recorded_cwd.or_else(|| run.workspace_path.as_ref().map(PathBuf::from));
    for path in run.verdict.iter().flat_map(Verdict::artifacts) {
        let lose = |reason: String| LostArtifact { path: path.clone(), reason };
        let Some(workspace) = workspace.as_deref().filter(|_| records.run_state.is_some()) else {
            taken.handed.lost.push(lose("nothing is known of the run's workspace any more".to_owned()));
            continue;
        };
        match one(workspace, path, identity, blobs) {
            Ok(published) => {
                let name = Path::new(path).file_name().and_then(|name| name.to_str()).unwrap_or("artifact");
                let file = NewAttachment {
                    filename: name.to_owned(),
                    content_type: None,
                    sha256: published.digest.clone(),
                    size: published.size,
                    author: None,
                };
                taken.handed.kept.push((path.clone(), file));
                taken.guards.push(published);
            }
            Err(NotTaken::Host(why)) => return Err(format!("{path}: {why}")),
            Err(NotTaken::File(reason)) => taken.handed.lost.push(lose(reason)),
        }
    }
    Ok(taken)
}

/// Cause of a file not being taken.
enum NotTaken {
    /// Defect of the file; the file is given up.
    File(String),
    /// Shortage of the host; the caller tries again.
    Host(String),
}

fn one(
    workspace: &Path,
    path: &str,
    identity: Option<Identity>,
    blobs: &Blobs,
) -> Result<Published, NotTaken> {
    let host = |e: &(dyn std::error::Error + 'static)| NotTaken::Host(base::failure::with_causes(e));
    // Root may read every user's files, so without a known user nothing is read.
    if identity.is_none() && nix::unistd::geteuid().is_root() {
        return Err(NotTaken::File("no user is known who could read it".to_owned()));
    }
    // The file has no name, so nothing is left of it if the daemon dies here (open(2), O_TMPFILE).
    let mut spool = tempfile::tempfile_in(blobs.private().map_err(|e| host(&e))?).map_err(|e| host(&e))?;
    let sink = spool.try_clone().map_err(|e| host(&e))?;
    let order = job::Taking { workspace: workspace.to_owned(), path: path.into(), limit: ATTACHMENT };
    job::take(identity, order, sink).map_err(|failure| {
        if failure.cause.is_lack() {
            NotTaken::Host(failure.message)
        } else {
            NotTaken::File(failure.message)
        }
    })?;
    rewind(&mut spool).map_err(|e| host(&e))?;
    blobs.store(&mut spool).map_err(|e| match e {
        kernel::BlobError::TooLarge => NotTaken::File(e.to_string()),
        e @ (kernel::BlobError::Source(_) | kernel::BlobError::Io { .. }) => host(&e),
    })
}

fn rewind(spool: &mut File) -> std::io::Result<()> {
    spool.seek(SeekFrom::Start(0)).map(drop)
}
