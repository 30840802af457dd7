//! Attached files of `hermes kanban`, copied for an import and never changed.
//!
//! Their paths come from its database, which its workers can write to. So only regular files beneath the database's
//! directory are read, and no symbolic link on the way is followed.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use kernel::{AttachmentId, Blobs, NewAttachment, PeerBoard, PeerFile, Published};
use rustix::fs::{CWD, Mode, OFlags, ResolveFlags, openat, openat2};
use rustix::io::Errno;

pub(super) type StoredFiles = BTreeMap<AttachmentId, NewAttachment>;

/// Stores the files of a board. Returns them, and a description of each file that was not taken. The caller prevents
/// sweeps meanwhile.
///
/// # Errors
/// The table of the files cannot be read.
pub(super) fn take(
    peer: &PeerBoard,
    database: &Path,
    blobs: &Blobs,
) -> Result<(StoredFiles, Vec<String>), kernel::Error> {
    let (mut stored, mut left) = (StoredFiles::new(), Vec::new());
    for file in peer.files()? {
        match store(&file, database, blobs) {
            Ok(published) => {
                let new = NewAttachment {
                    filename: file.filename,
                    content_type: file.content_type,
                    sha256: published.digest.clone(),
                    size: published.size,
                    author: file.author,
                };
                stored.insert(file.id, new);
            }
            Err(why) => left.push(format!(
                "attachment {} ({}) at {}: {why}",
                file.id,
                file.filename,
                file.stored_path.display()
            )),
        }
    }
    Ok((stored, left))
}

fn store(file: &PeerFile, database: &Path, blobs: &Blobs) -> Result<Published, String> {
    let mut source = open(&file.stored_path, database).map_err(|e| match Errno::from_io_error(&e) {
        Some(Errno::NOENT) => "the file is not there".to_owned(),
        Some(Errno::XDEV | Errno::LOOP) => {
            "it is not a file beneath the directory of the database".to_owned()
        }
        _ => e.to_string(),
    })?;
    blobs.store(&mut source).map_err(|e| e.to_string())
}

fn open(path: &Path, database: &Path) -> io::Result<File> {
    let dir = database.parent().filter(|dir| !dir.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let home = openat(CWD, dir, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
    let inside = beneath(path, dir).ok_or(Errno::XDEV)?;
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    let file = File::from(openat2(home, &inside, flags, Mode::empty(), resolve)?);
    if file.metadata()?.is_file() { Ok(file) } else { Err(Errno::XDEV.into()) }
}

/// Returns the path relative to the directory, for any name of the directory.
fn beneath(path: &Path, dir: &Path) -> Option<PathBuf> {
    if path.is_relative() {
        return Some(path.to_owned()).filter(|path| !path.as_os_str().is_empty());
    }
    let names = [Some(dir.to_owned()), std::path::absolute(dir).ok(), dir.canonicalize().ok()];
    names.into_iter().flatten().find_map(|dir| path.strip_prefix(dir).ok().map(Path::to_owned))
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn a_file_beneath_the_database_is_read_and_nothing_else() {
        let dir = tempfile::tempdir().unwrap();
        let home = dir.path().join("home");
        std::fs::create_dir_all(home.join("kanban/attachments")).unwrap();
        std::fs::write(home.join("kanban/attachments/a"), "theirs").unwrap();
        std::fs::write(dir.path().join("secret"), "secret").unwrap();
        symlink(dir.path().join("secret"), home.join("link")).unwrap();
        symlink(dir.path(), home.join("up")).unwrap();
        let database = home.join("kanban.db");
        for path in [home.join("kanban/attachments/a"), "kanban/attachments/a".into()] {
            let mut text = String::new();
            open(&path, &database).unwrap().read_to_string(&mut text).unwrap();
            assert_eq!(text, "theirs");
        }
        for path in [
            dir.path().join("secret"),
            home.join("../secret"),
            home.join("link"),
            home.join("up/secret"),
            home.join("kanban"),
            "/dev/zero".into(),
            "".into(),
        ] {
            assert!(open(&path, &database).is_err(), "{}", path.display());
        }
    }
}
