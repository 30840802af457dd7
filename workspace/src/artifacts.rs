//! Takes a file out of a workspace that a worker has filled, without leaving the workspace.

use std::fs::File;
use std::io::{self, Read as _, Write};
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags, ResolveFlags, openat2};
use rustix::io::Errno;

use crate::open::{self, OpenError};

/// Reasons why a file could not be taken.
#[derive(Debug, thiserror::Error)]
pub enum ArtifactError {
    /// The workspace itself could not be opened.
    #[error("the workspace cannot be opened: {0}")]
    Workspace(#[source] OpenError),
    /// There is no such file.
    #[error("there is no such file")]
    Missing,
    /// The path leads out of the workspace.
    #[error("it leads out of the workspace")]
    Outside,
    /// The path does not lead to a regular file.
    #[error("it is not a file")]
    NotAFile,
    /// The file is larger than the limit of an artifact.
    #[error("it has more than {limit} bytes")]
    TooLarge {
        /// Limit of the file, in bytes.
        limit: u64,
    },
    /// The file could not be read.
    #[error("it cannot be read: {0}")]
    Read(#[source] io::Error),
    /// The file could not be written to its destination.
    #[error("write the copy")]
    Write(#[source] io::Error),
}

/// Copies the file at `path`, relative to `workspace`, into `to`. Returns its length in bytes.
///
/// Symbolic links are followed as long as they stay in the workspace. Only regular files are read, so that a FIFO or a
/// device that a worker planted does not make the caller wait.
pub fn take(workspace: &Path, path: &Path, limit: u64, to: &mut dyn Write) -> Result<u64, ArtifactError> {
    let mut file = open_file(workspace, path, limit)?;
    let mut buffer = vec![0_u8; 64 * 1024];
    let mut taken = 0_u64;
    loop {
        let read = match file.read(&mut buffer) {
            Ok(0) => return Ok(taken),
            Ok(read) => read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(ArtifactError::Read(error)),
        };
        taken += u64::try_from(read).unwrap_or(u64::MAX);
        if taken > limit {
            return Err(ArtifactError::TooLarge { limit });
        }
        to.write_all(buffer.get(..read).unwrap_or_default()).map_err(ArtifactError::Write)?;
    }
}

/// Refuses a file that [`take`] could not copy in its present state.
pub(crate) fn check(workspace: &Path, path: &Path, limit: u64) -> Result<(), ArtifactError> {
    open_file(workspace, path, limit).map(drop)
}

fn open_file(workspace: &Path, path: &Path, limit: u64) -> Result<File, ArtifactError> {
    let top = open::directory(workspace).map_err(ArtifactError::Workspace)?;
    let inside = inside(workspace, path);
    // NONBLOCK: the open of a planted FIFO must not wait for a writer (open(2)). NOCTTY: a planted terminal must not
    // become the terminal of this process. BENEATH: no link may lead out (openat2(2)).
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
    let file = openat2(&top.fd, inside, flags, Mode::empty(), resolve).map(File::from).map_err(refused)?;
    let meta = file.metadata().map_err(ArtifactError::Read)?;
    if !meta.is_file() {
        return Err(ArtifactError::NotAFile);
    }
    if meta.len() > limit {
        return Err(ArtifactError::TooLarge { limit });
    }
    Ok(file)
}

/// Returns the path relative to the workspace. An absolute path may lead into the workspace.
fn inside(workspace: &Path, path: &Path) -> PathBuf {
    path.strip_prefix(workspace).unwrap_or(path).to_owned()
}

fn refused(errno: Errno) -> ArtifactError {
    match errno {
        Errno::NOENT | Errno::NOTDIR => ArtifactError::Missing,
        Errno::XDEV | Errno::LOOP => ArtifactError::Outside,
        // The open of a socket fails with this error.
        Errno::NXIO => ArtifactError::NotAFile,
        errno => ArtifactError::Read(errno.into()),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    fn taken(workspace: &Path, path: &str) -> Result<Vec<u8>, ArtifactError> {
        let mut bytes = Vec::new();
        let length = take(workspace, Path::new(path), 100, &mut bytes)?;
        assert_eq!(length, bytes.len() as u64);
        Ok(bytes)
    }

    #[test]
    fn a_file_is_taken_by_its_path_in_the_workspace_also_through_links_in_it() {
        let dir = tempfile::tempdir().unwrap();
        let top = dir.path().canonicalize().unwrap();
        fs_err::create_dir(top.join("out")).unwrap();
        fs_err::write(top.join("out/a"), "abc").unwrap();
        symlink("out", top.join("latest")).unwrap();
        let whole = top.join("out/a");
        for path in ["out/a", "latest/a", "out/../out/a", whole.to_str().unwrap()] {
            assert_eq!(taken(&top, path).unwrap(), b"abc", "{path}");
        }
    }

    #[test]
    fn nothing_outside_of_the_workspace_is_taken_whatever_was_planted() {
        let dir = tempfile::tempdir().unwrap();
        let top = dir.path().canonicalize().unwrap();
        let workspace = top.join("w");
        fs_err::create_dir(&workspace).unwrap();
        fs_err::write(top.join("secret"), "secret").unwrap();
        symlink("../secret", workspace.join("up")).unwrap();
        symlink(top.join("secret"), workspace.join("absolute")).unwrap();
        symlink("..", workspace.join("dir")).unwrap();
        symlink("/proc/self/root/etc/hostname", workspace.join("magic")).unwrap();
        symlink("self", workspace.join("self")).unwrap();
        let secret = top.join("secret");
        for path in [
            "up",
            "absolute",
            "dir/secret",
            "magic",
            "self",
            "../secret",
            secret.to_str().unwrap(),
            "/etc/hostname",
        ] {
            assert!(matches!(taken(&workspace, path), Err(ArtifactError::Outside)), "{path}");
        }
        // The workspace itself, moved away and replaced by a link.
        symlink(&top, top.join("link")).unwrap();
        assert!(matches!(taken(&top.join("link"), "secret"), Err(ArtifactError::Workspace(_))));
    }

    #[test]
    fn what_is_no_file_is_missing_or_too_large_is_said() {
        let dir = tempfile::tempdir().unwrap();
        let top = dir.path().canonicalize().unwrap();
        fs_err::create_dir(top.join("dir")).unwrap();
        fs_err::write(top.join("big"), [0; 101]).unwrap();
        rustix::fs::mknodat(
            rustix::fs::CWD,
            top.join("fifo"),
            rustix::fs::FileType::Fifo,
            Mode::RUSR | Mode::WUSR,
            0,
        )
        .unwrap();
        for path in ["dir", "fifo"] {
            assert!(matches!(taken(&top, path), Err(ArtifactError::NotAFile)), "{path}");
        }
        assert!(matches!(taken(&top, "none"), Err(ArtifactError::Missing)));
        assert!(matches!(taken(&top, "big/x"), Err(ArtifactError::Missing)));
        assert!(matches!(taken(&top, "big"), Err(ArtifactError::TooLarge { limit: 100 })));
    }
}
