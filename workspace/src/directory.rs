//! The `dir` workspace: a directory that exists, or that its user may make. It is used as it is and never removed.
//!
//! The first run or claim makes a missing directory, because `create` has no effect on the host. Its user follows from
//! the directory above, by the rule for existing directories, so a caller gains no right by naming a directory that
//! does not exist.

use std::path::{Path, PathBuf};

use rustix::fs::{Mode, mkdirat};
use rustix::io::Errno;
use rustix::process::Uid;
use serde::{Deserialize, Serialize};

use crate::code::Code;
use crate::git::overrides;
use crate::open::{self, OpenError};
use crate::prepared::{Grants, Kind, Owner, Preparation, Prepared};
use lease::FileIdentity;

/// Reason why a directory cannot be a workspace.
#[derive(Debug, thiserror::Error)]
pub enum DirectoryError {
    /// The directory could not be opened.
    #[error("a directory workspace is not usable")]
    Open { path: PathBuf, source: OpenError },
    /// Another user made the directory in a directory in which every user may make entries.
    #[error("{path} belongs to uid {owner}, and lies where every user may make a directory")]
    Foreign {
        /// The directory, or one above it.
        path: PathBuf,
        owner: u32,
    },
    /// The directory could not be made.
    #[error("failed to make {path}")]
    Make { path: PathBuf, source: std::io::Error },
}

impl DirectoryError {
    /// Returns the remedy for the reader.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Open { source, .. } => source.hint(),
            Self::Foreign { .. } => Some(
                "use a directory of your own: what another user has put there would be worked with as yours"
                    .to_owned(),
            ),
            Self::Make { path, .. } => {
                Some(format!("create it for the user that works in it: `mkdir -p {}`", path.display()))
            }
        }
    }

    /// Returns the stable code of this refusal.
    pub fn code(&self) -> Code {
        match self {
            Self::Open { source, .. } => source.code(),
            Self::Foreign { .. } => Code::WorkspaceForeignOwner,
            Self::Make { .. } => Code::WorkspaceNotMade,
        }
    }
}

/// Takes an existing directory as a workspace.
///
/// No component of the path may be a symbolic link, or belong to another user within a shared directory such as `/tmp`.
/// The caller decides which owners are acceptable otherwise.
pub fn prepare(path: &Path) -> Result<Prepared, DirectoryError> {
    let opened =
        open::directory(path).map_err(|source| DirectoryError::Open { path: path.to_owned(), source })?;
    refuse_foreign(path, rustix::process::geteuid())?;
    Ok(Prepared {
        path: path.to_owned(),
        kind: Kind::Directory,
        made: Preparation::Reused,
        owner: Owner::from_stat(&opened.stat),
        place: FileIdentity::from_stat(&opened.stat),
        is_repository: path.join(".git").symlink_metadata().is_ok(),
        branch: None,
        grants: Grants::default(),
        notes: Vec::new(),
        environment: overrides(Kind::Directory, &[]),
    })
}

/// Existing directory with its owner.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExistingDirectory {
    /// The directory.
    pub path: PathBuf,
    /// User and group that own the directory.
    pub owner: Owner,
}

/// Returns the owner of a directory, so that the caller can choose the worker's user before anything is prepared.
pub fn owner_of(path: &Path) -> Result<Owner, DirectoryError> {
    Ok(prepare(path)?.owner)
}

/// Returns a directory, or the nearest existing directory above it. The owner there may make the missing ones.
pub fn existing_directory(path: &Path) -> Result<ExistingDirectory, DirectoryError> {
    let mut at = path;
    loop {
        match open::directory(at) {
            Ok(opened) => {
                refuse_foreign(at, rustix::process::geteuid())?;
                return Ok(ExistingDirectory { path: at.to_owned(), owner: Owner::from_stat(&opened.stat) });
            }
            Err(OpenError::Missing { .. }) if at.parent().is_some() => at = at.parent().unwrap_or(at),
            Err(source) => return Err(DirectoryError::Open { path: path.to_owned(), source }),
        }
    }
}

/// Mode bits of a directory such as `/tmp`: every user may make entries, and remove only their own (the sticky bit,
/// inode(7)).
const SHARED: u32 = 0o1002;

/// Refuses a path through a directory that another user has made in a shared directory, where it may take the place of
/// a directory of the caller. Root refuses nothing, because its workers run as the owner of the directory.
fn refuse_foreign(path: &Path, daemon_uid: Uid) -> Result<(), DirectoryError> {
    if daemon_uid.is_root() {
        return Ok(());
    }
    let mut above_is_shared = false;
    for at in path.ancestors().collect::<Vec<_>>().into_iter().rev() {
        let opened =
            open::directory(at).map_err(|source| DirectoryError::Open { path: at.to_owned(), source })?;
        let owner = opened.stat.st_uid;
        if above_is_shared && owner != daemon_uid.as_raw() && owner != 0 {
            return Err(DirectoryError::Foreign { path: at.to_owned(), owner });
        }
        above_is_shared = opened.stat.st_mode & SHARED == SHARED;
    }
    Ok(())
}

/// Makes a directory and its missing parents for this process's user alone, or takes an existing directory.
pub fn make(path: &Path) -> Result<Prepared, DirectoryError> {
    let mut at = existing_directory(path)?.path;
    let failed = |path: &Path, source| DirectoryError::Open { path: path.to_owned(), source };
    let mut above = open::directory(&at).map_err(|source| failed(&at, source))?;
    let missing: Vec<_> = path.strip_prefix(&at).unwrap_or(Path::new("")).components().collect();
    for name in missing {
        at.push(name);
        match mkdirat(&above.fd, name.as_os_str(), Mode::RWXU) {
            // Another process may have made it meanwhile.
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
            other @ (DirectoryError::Make { .. } | DirectoryError::Foreign { .. }) => panic!("{other}"),
        }
    }

    #[test]
    fn an_existing_directory_is_taken_as_it_is() {
        let (_dir, path) = real_tempdir();
        let prepared = prepare(&path).unwrap();
        assert_eq!((prepared.path.as_path(), prepared.made), (path.as_path(), Preparation::Reused));
        assert_eq!(owner_of(&path).unwrap(), Owner::current());
    }

    #[test]
    fn a_directory_of_another_user_in_a_shared_place_is_refused_and_in_a_place_of_theirs_is_not() {
        use std::os::unix::fs::PermissionsExt as _;
        let (_dir, top) = real_tempdir();
        let (shared, theirs) = (top.join("shared"), top.join("shared/theirs"));
        fs_err::create_dir_all(theirs.join("inner")).unwrap();
        let own = Uid::from_raw(Owner::current().uid);
        // As somebody else finds it. Where the test is root's, all that root owns is trusted by everybody.
        let other = Uid::from_raw(4_000_000_000);
        let open = |mode| fs_err::set_permissions(&shared, std::fs::Permissions::from_mode(mode)).unwrap();
        if own.is_root() {
            for dir in [&theirs, &theirs.join("inner")] {
                std::os::unix::fs::chown(dir, Some(7), None).unwrap();
            }
        } else {
            // The directories of tests lie in a shared place themselves.
            let found = refuse_foreign(&theirs, other).unwrap_err();
            assert!(matches!(found, DirectoryError::Foreign { .. }), "{found}");
            refuse_foreign(&theirs, own).unwrap();
            return;
        }
        open(0o755);
        refuse_foreign(&theirs, other).unwrap();
        open(0o1777);
        for path in [theirs.clone(), theirs.join("inner")] {
            let found = refuse_foreign(&path, other).unwrap_err();
            assert!(
                matches!(&found, DirectoryError::Foreign { owner: 7, path } if *path == theirs),
                "{found}"
            );
            assert_eq!(found.code(), Code::WorkspaceForeignOwner);
        }
        refuse_foreign(&shared, other).unwrap();
        refuse_foreign(&theirs, Uid::from_raw(7)).unwrap();
        refuse_foreign(&theirs, Uid::ROOT).unwrap();
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
        assert_eq!(
            existing_directory(&path).unwrap(),
            ExistingDirectory { path: top.clone(), owner: Owner::current() }
        );
        let made = make(&path).unwrap();
        assert_eq!((made.path.as_path(), made.owner), (path.as_path(), Owner::current()));
        for dir in [top.join("new"), path.clone()] {
            assert_eq!(fs_err::metadata(dir).unwrap().permissions().mode() & 0o777, 0o700);
        }
        assert_eq!(make(&path).unwrap().place, made.place, "a second time it is taken as it is");
        assert_eq!(existing_directory(&path).unwrap().path, path);
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
    fn a_symbolic_link_anywhere_on_the_way_is_refused_and_its_target_is_not_named() {
        let (_dir, path) = real_tempdir();
        fs_err::create_dir_all(path.join("real/inner")).unwrap();
        symlink(path.join("real"), path.join("link")).unwrap();
        for way in ["link", "link/inner", "link/missing"] {
            let error = refusal(&path.join(way));
            assert!(matches!(error, OpenError::Symlink { .. }), "{error}");
            let hint = error.hint().unwrap();
            assert!(hint.contains(&format!("realpath -m {}", path.join(way).display())), "{hint}");
        }
    }
}
