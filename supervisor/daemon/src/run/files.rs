//! Files that a run may read: its own copies, in a directory that no worker can change.
//!
//! The board's copies belong to the daemon and stay out of reach. A run gets `<its private
//! directory>/files/<attachment>/<name>`: the directories belong to the daemon, the files to the worker, and the policy
//! grants read access.
//!
//! See decision 0012.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, lchown};
use std::path::{Path, PathBuf};

use kernel::{Attachment, Blobs, BoardName, Counted, RunId};
use policies::Identity;
use shim::shortage::is_shortage;

use super::fault::LaunchError;
use super::run_state::RunState;
use super::stage::Stage;
use base::failure::Failure;
use base::paths::Root;

const STAGE: Stage = Stage::PlaceFiles;

/// Returns the path of an attachment, for a run whose files are in `dir`.
pub fn path_of(dir: &Path, file: &Attachment) -> PathBuf {
    dir.join(file.id.to_string()).join(&file.filename)
}

/// Makes the directory, and copies the files that are missing in it. Blocks.
pub(crate) fn place_files(
    dir: &Path,
    identity: Option<Identity>,
    files: &[Attachment],
    blobs: &Blobs,
) -> Result<(), LaunchError> {
    directory(dir, identity).map_err(|e| failed(dir, &e))?;
    for file in files {
        let path = path_of(dir, file);
        if path.symlink_metadata().is_ok() {
            continue;
        }
        let parent = path.parent().unwrap_or(dir);
        directory(parent, identity).map_err(|e| failed(parent, &e))?;
        let source = blobs.open(&file.sha256).map_err(|e| {
            if is_shortage(&e) { LaunchError::system(STAGE, &e) } else { lost(file, &e.to_string()) }
        })?;
        let copied = copy(source, &path, identity).map_err(|e| failed(&path, &e))?;
        if copied != file.size {
            return Err(lost(file, &format!("it has {} instead of {}", Counted(copied, "byte"), file.size)));
        }
    }
    Ok(())
}

/// Gives a live run the files that were attached after its start. Blocks.
pub fn provide(
    root: &Root,
    board: &BoardName,
    run: RunId,
    files: &[Attachment],
    blobs: &Blobs,
) -> Result<(), Failure> {
    let dir = root.run_files(board, run);
    // Without a state or a directory, the run has no worker yet.
    let run_state = RunState::read(&root.run_dir(board, run))
        .map_err(|e| Failure::failed(format!("the state of run {run} cannot be read: {e}")))?;
    let Some(run_state) = run_state.filter(|_| dir.is_dir()) else { return Ok(()) };
    place_files(&dir, run_state.identity(), files, blobs).map_err(|e| Failure::failed(e.error))
}

/// Copies a file under another name and renames it, so that a worker never sees a partial file.
fn copy(mut source: File, path: &Path, identity: Option<Identity>) -> io::Result<u64> {
    let draft = path.with_file_name(format!(".new-{}", uuid::Uuid::new_v4().simple()));
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o400).open(&draft)?;
    // If the file system can share the blocks, this takes no space and no time (copy_file_range(2)).
    let copied = io::copy(&mut source, &mut file)?;
    if let Some(identity) = identity {
        lchown(&draft, Some(identity.uid), Some(identity.gid))?;
    }
    std::fs::rename(&draft, path)?;
    Ok(copied)
}

/// Makes a directory that the worker's group may list and enter, and only the daemon may change.
fn directory(dir: &Path, identity: Option<Identity>) -> io::Result<()> {
    let mode = if identity.is_some() { 0o750 } else { 0o700 };
    match DirBuilder::new().mode(mode).create(dir) {
        Ok(()) => {}
        Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {}
        Err(e) => return Err(e),
    }
    match identity {
        Some(identity) => lchown(dir, None, Some(identity.gid)),
        None => Ok(()),
    }
}

fn failed(path: &Path, error: &io::Error) -> LaunchError {
    let failed = LaunchError::system(STAGE, error);
    LaunchError { error: format!("{}: {}", path.display(), failed.error), ..failed }
}

fn lost(file: &Attachment, why: &str) -> LaunchError {
    LaunchError::task(
        STAGE,
        format!(
            "the bytes of attachment {} ({}) of {} cannot be had: {why} (attach it again, or remove it with \
             `supervisor attach-rm {}`)",
            file.id, file.filename, file.task_id, file.id
        ),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn attachment(blobs: &Blobs, name: &str, bytes: &[u8]) -> Attachment {
        let stored = blobs.store(&mut &*bytes).unwrap();
        Attachment {
            id: kernel::AttachmentId(7),
            task_id: "t_00000001".parse().unwrap(),
            filename: name.to_owned(),
            content_type: None,
            size: stored.size,
            uploaded_by: None,
            sha256: stored.digest.clone(),
            created_at: kernel::Timestamp::from_micros(0),
            run_id: None,
            artifact: None,
        }
    }

    #[test]
    fn a_run_has_copies_of_its_own_and_the_board_keeps_its() {
        use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
        let dir = tempfile::tempdir().unwrap();
        let blobs = Blobs::of_board(&dir.path().join("board.db"));
        let file = attachment(&blobs, "a b.txt", b"abc");
        let files = dir.path().join("files");
        let identity = nix::unistd::geteuid().is_root().then_some(Identity { uid: 60_001, gid: 60_001 });
        place_files(&files, identity, std::slice::from_ref(&file), &blobs).unwrap();
        let path = path_of(&files, &file);
        assert_eq!(path, files.join("7/a b.txt"));
        let (copy, kept) =
            (std::fs::metadata(&path).unwrap(), std::fs::metadata(blobs.path(&file.sha256)).unwrap());
        assert_ne!(copy.ino(), kept.ino(), "no worker has an inode of the board");
        assert_eq!(copy.permissions().mode() & 0o777, 0o400);
        if let Some(identity) = identity {
            assert_eq!((copy.uid(), std::fs::metadata(&files).unwrap().uid()), (identity.uid, 0));
        }
        // A second call, as for a later file, leaves existing copies as they are.
        place_files(&files, identity, &[file], &blobs).unwrap();
        assert_eq!(std::fs::metadata(&path).unwrap().ino(), copy.ino());
    }

    #[test]
    fn a_run_does_not_start_without_the_bytes_of_a_file() {
        let dir = tempfile::tempdir().unwrap();
        let blobs = Blobs::of_board(&dir.path().join("board.db"));
        let file = attachment(&blobs, "a.txt", b"abc");
        std::fs::remove_file(blobs.path(&file.sha256)).unwrap();
        let error = place_files(&dir.path().join("files"), None, &[file], &blobs).unwrap_err();
        assert!(error.error.contains("attachment 7 (a.txt) of t_00000001"), "{}", error.error);
        assert!(error.error.contains("attach-rm 7"), "{}", error.error);
    }
}
