//! The `dir` workspace: a directory that is there, or is made where its user may, used as it is and never removed.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, mkdirat};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};

use crate::code::Code;
use crate::open::{self, OpenError};
use crate::prepared::{Grants, Kind, Made, Owner, Place, Prepared};

/// Why a directory cannot be a workspace.
#[derive(Debug, thiserror::Error)]
pub enum DirectoryError {
    /// It could not be opened.
    #[error("a directory workspace is not usable")]
    Open {
        /// The path given.
        path: PathBuf,
        /// What was found there.
        source: OpenError,
    },
    /// It could not be made.
    #[error("failed to make {path}")]
    Make {
        /// The directory.
        path: PathBuf,
        /// The kernel's answer.
        source: std::io::Error,
    },
}

impl DirectoryError {
    /// Returns what the reader can do about it.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Open { source, .. } => source.hint(),
            Self::Make { path, .. } => {
                Some(format!("create it for the user that works in it: `mkdir -p {}`", path.display()))
            }
        }
    }

    /// Returns the stable code of this refusal.
    pub fn code(&self) -> Code {
        match self {
            Self::Open { source, .. } => source.code(),
            Self::Make { .. } => Code::WorkspaceNotMade,
        }
    }
}

/// Takes an existing directory as a workspace.
///
/// No component of the path may be a symbolic link. Whether the owner is acceptable is the caller's rule.
pub fn prepare(path: &Path) -> Result<Prepared, DirectoryError> {
    let opened =
        open::directory(path).map_err(|source| DirectoryError::Open { path: path.to_owned(), source })?;
    Ok(Prepared {
        path: path.to_owned(),
        kind: Kind::Directory,
        made: Made::Reused,
        owner: Owner::of(&opened.stat),
        place: Place::of(&opened.stat),
        branch: None,
        grants: Grants::default(),
        environment: BTreeMap::new(),
    })
}

/// A directory that is there, and who owns it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ground {
    /// The directory.
    pub path: PathBuf,
    /// Its owner.
    pub owner: Owner,
}

/// Returns who owns a directory, so that the caller can choose the worker's user before anything is prepared.
pub fn owner_of(path: &Path) -> Result<Owner, DirectoryError> {
    Ok(prepare(path)?.owner)
}

/// Returns a directory, or where it is missing the nearest one above it that is there: what is made there is its owner's.
pub fn ground_of(path: &Path) -> Result<Ground, DirectoryError> {
    let mut at = path;
    loop {
        match open::directory(at) {
            Ok(opened) => return Ok(Ground { path: at.to_owned(), owner: Owner::of(&opened.stat) }),
            Err(OpenError::Missing { .. }) if at.parent().is_some() => at = at.parent().unwrap_or(at),
            Err(source) => return Err(DirectoryError::Open { path: path.to_owned(), source }),
        }
    }
}

/// Makes a directory, and those above it that are missing, for this process's user alone, or takes the one that is there.
pub fn make(path: &Path) -> Result<Prepared, DirectoryError> {
    let mut at = ground_of(path)?.path;
    let failed = |path: &Path, source| DirectoryError::Open { path: path.to_owned(), source };
    let mut above = open::directory(&at).map_err(|source| failed(&at, source))?;
    let missing: Vec<_> = path.strip_prefix(&at).unwrap_or(Path::new("")).components().collect();
    for name in missing {
        at.push(name);
        match mkdirat(&above.fd, name.as_os_str(), Mode::RWXU) {
            // Somebody else may have made it meanwhile.
            Ok(()) | Err(Errno::EXIST) => {}
            Err(errno) => return Err(DirectoryError::Make { path: at, source: errno.into() }),
        }
        above =
            open::child(&above.fd, Path::new(name.as_os_str()), &at).map_err(|source| failed(&at, source))?;
    }
    prepare(path)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    fn real_tempdir() -> (tempfile::TempDir, PathBuf) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().canonicalize().unwrap();
        (dir, path)
    }

    fn refusal(path: &Path) -> OpenError {
        match prepare(path).unwrap_err() {
            DirectoryError::Open { source, .. } => source,
            other @ DirectoryError::Make { .. } => panic!("{other}"),
        }
    }

    #[test]
    fn an_existing_directory_is_taken_as_it_is() {
        let (_dir, path) = real_tempdir();
        let prepared = prepare(&path).unwrap();
        assert_eq!((prepared.path.as_path(), prepared.made), (path.as_path(), Made::Reused));
        assert_eq!(owner_of(&path).unwrap(), Owner::current());
    }

    #[test]
    fn a_missing_path_a_file_and_a_relative_path_are_refused() {
        let (_dir, path) = real_tempdir();
        fs_err::write(path.join("file"), "").unwrap();
        assert!(matches!(refusal(&path.join("gone")), OpenError::Missing { .. }));
        assert!(matches!(refusal(&path.join("file")), OpenError::NotADirectory { .. }));
        assert!(matches!(refusal(Path::new("notes")), OpenError::Relative { .. }));
    }

    #[test]
    fn a_missing_directory_is_made_with_those_above_it_for_its_user_alone() {
        use std::os::unix::fs::PermissionsExt as _;
        let (_dir, top) = real_tempdir();
        let path = top.join("new/inner");
        assert_eq!(ground_of(&path).unwrap(), Ground { path: top.clone(), owner: Owner::current() });
        let made = make(&path).unwrap();
        assert_eq!((made.path.as_path(), made.owner), (path.as_path(), Owner::current()));
        for dir in [top.join("new"), path.clone()] {
            assert_eq!(fs_err::metadata(dir).unwrap().permissions().mode() & 0o777, 0o700);
        }
        assert_eq!(make(&path).unwrap().place, made.place, "a second time it is taken as it is");
        assert_eq!(ground_of(&path).unwrap().path, path);
    }

    #[test]
    fn nothing_is_made_behind_a_link_or_beneath_a_file() {
        let (_dir, top) = real_tempdir();
        fs_err::create_dir(top.join("real")).unwrap();
        fs_err::write(top.join("file"), "").unwrap();
        symlink(top.join("real"), top.join("link")).unwrap();
        for name in ["link/new", "file/new"] {
            let error = make(&top.join(name)).unwrap_err();
            assert!(error.hint().is_some() && matches!(error, DirectoryError::Open { .. }), "{error}");
        }
        assert_eq!(fs_err::read_dir(top.join("real")).unwrap().count(), 0);
    }

    #[test]
    fn a_symbolic_link_anywhere_on_the_way_is_refused_and_its_target_named() {
        let (_dir, path) = real_tempdir();
        fs_err::create_dir_all(path.join("real/inner")).unwrap();
        symlink(path.join("real"), path.join("link")).unwrap();
        for (way, target) in [("link", "real"), ("link/inner", "real/inner")] {
            let error = refusal(&path.join(way));
            assert!(matches!(error, OpenError::Symlink { .. }), "{error}");
            assert!(error.hint().unwrap().ends_with(path.join(target).to_str().unwrap()));
        }
    }
}
