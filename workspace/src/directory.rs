//! The `dir` workspace: an existing directory, used as it is and never removed.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

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
}

impl DirectoryError {
    /// Returns what the reader can do about it.
    pub fn hint(&self) -> Option<String> {
        let Self::Open { source, .. } = self;
        source.hint()
    }

    /// Returns the stable code of this refusal.
    pub fn code(&self) -> &'static str {
        let Self::Open { source, .. } = self;
        source.code()
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

/// Returns who owns a directory, so that the caller can choose the worker's user before anything is prepared.
pub fn owner_of(path: &Path) -> Result<Owner, DirectoryError> {
    Ok(prepare(path)?.owner)
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
        let DirectoryError::Open { source, .. } = prepare(path).unwrap_err();
        source
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
