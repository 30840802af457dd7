//! The `scratch` workspace: a private directory for one task.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, Mode, chownat, fstat, mkdirat};
use rustix::io::Errno;
use rustix::process::{Gid, Uid};

use crate::code::Code;
use crate::name::Name;
use crate::open::{self, OpenError};
use crate::prepared::{Grants, Kind, Owner, Preparation, Prepared};
use crate::tree;
use lease::FileIdentity;

/// Reason why a scratch directory could not be prepared.
#[derive(Debug, thiserror::Error)]
pub enum ScratchError {
    /// The directory that holds all scratch directories could not be opened.
    #[error("open the directory of scratch workspaces")]
    OpenBase(#[source] OpenError),
    /// The directory could not be made.
    #[error("create {path}")]
    Create { path: PathBuf, source: std::io::Error },
    /// The directory could not be opened.
    #[error("open the scratch workspace")]
    Open(#[source] OpenError),
    /// The directory belongs to another user.
    #[error("{path} belongs to uid {found}, not to uid {expected}")]
    ForeignOwner {
        path: PathBuf,
        found: u32,
        /// The owner it should have.
        expected: u32,
    },
    /// The files of the directory could not be listed.
    #[error("list {path}")]
    List { path: PathBuf, source: std::io::Error },
    /// The directory could not be given to its owner.
    #[error("give {path} to uid {uid}")]
    Give {
        path: PathBuf,
        /// The owner it should have.
        uid: u32,
        source: std::io::Error,
    },
    /// The directory could not be closed to others.
    #[error("set mode 0700 on {path}")]
    Protect { path: PathBuf, source: std::io::Error },
}

impl ScratchError {
    /// Returns the remedy for the reader.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Open(OpenError::Symlink { path } | OpenError::NotADirectory { path }) => Some(format!(
                "something was put in the place of the workspace: look at {} and remove it",
                path.display()
            )),
            Self::OpenBase(source) | Self::Open(source) => source.hint(),
            Self::ForeignOwner { path, .. } => {
                Some(format!("move {} away: it is not a directory that this run may use", path.display()))
            }
            Self::Give { .. } => Some("only root can give a directory to another user".to_owned()),
            Self::Create { .. } | Self::List { .. } | Self::Protect { .. } => None,
        }
    }

    /// Returns the stable code of this failure.
    pub fn code(&self) -> Code {
        match self {
            Self::Open(source) => source.code(),
            Self::ForeignOwner { .. } => Code::WorkspaceForeignOwner,
            Self::OpenBase(_)
            | Self::Create { .. }
            | Self::List { .. }
            | Self::Give { .. }
            | Self::Protect { .. } => Code::WorkspaceNotPrepared,
        }
    }
}

/// Returns the path of the directory of this name.
pub fn path(base: &Path, name: &Name) -> PathBuf {
    base.join(name.as_str())
}

/// Closes the directory `base/name` to other users again, in case its owner has opened it. A missing directory is no
/// error. Safe to run as root, as [`prepare`] is.
pub fn close(base: &Path, name: &Name) -> Result<(), ScratchError> {
    let parent = match open::trusted(base) {
        Err(OpenError::Missing { .. }) => return Ok(()),
        opened => opened.map_err(ScratchError::OpenBase)?,
    };
    let path = path(base, name);
    let opened = match open::child(&parent.fd, Path::new(name.as_str()), &path) {
        Err(OpenError::Missing { .. }) => return Ok(()),
        opened => opened.map_err(ScratchError::Open)?,
    };
    if opened.stat.st_mode & 0o7777 == Mode::RWXU.as_raw_mode() {
        return Ok(());
    }
    open::make_private(&opened.fd).map_err(|source| ScratchError::Protect { path, source })
}

/// Makes the directory `base/name` with mode 0700, or takes an existing directory.
///
/// Without `owner` the directory belongs to this process's user. An existing directory is taken only if it is a real
/// directory with the expected owner. An empty directory that this process made and has not given to its owner yet is
/// given to it now. `base` must be a directory that no worker can write. With an `owner` other than the caller, the
/// call needs root, and is safe to run as root: it changes the open directory itself, never an entry in it.
pub fn prepare(base: &Path, name: &Name, owner: Option<Owner>) -> Result<Prepared, ScratchError> {
    let parent = open::trusted(base).map_err(ScratchError::OpenBase)?;
    let path = path(base, name);
    let me = Owner::current();
    let owner = owner.unwrap_or(me);
    let made = match mkdirat(&parent.fd, name.as_str(), Mode::RWXU) {
        Ok(()) => Preparation::Created,
        Err(Errno::EXIST) => Preparation::Reused,
        Err(errno) => return Err(ScratchError::Create { path, source: errno.into() }),
    };
    let opened = open::child(&parent.fd, Path::new(name.as_str()), &path).map_err(ScratchError::Open)?;
    let owner_uid = opened.stat.st_uid;
    // A directory that this call has made is empty.
    let interrupted = owner_uid == me.uid
        && owner_uid != owner.uid
        && (made == Preparation::Created
            || tree::is_empty(&opened.fd)
                .map_err(|source| ScratchError::List { path: path.clone(), source })?);
    if owner_uid != owner.uid && !interrupted {
        return Err(ScratchError::ForeignOwner { path, found: owner_uid, expected: owner.uid });
    }
    if opened.stat.st_mode & 0o7777 != Mode::RWXU.as_raw_mode() {
        open::make_private(&opened.fd)
            .map_err(|source| ScratchError::Protect { path: path.clone(), source })?;
    }
    if interrupted {
        let (uid, gid) = (Some(Uid::from_raw(owner.uid)), Some(Gid::from_raw(owner.gid)));
        // fchown refuses an O_PATH descriptor; the empty path stands for the same directory.
        chownat(&opened.fd, "", uid, gid, AtFlags::EMPTY_PATH).map_err(|errno| ScratchError::Give {
            path: path.clone(),
            uid: owner.uid,
            source: errno.into(),
        })?;
    }
    let stat = fstat(&opened.fd).map_err(|errno| {
        ScratchError::Open(OpenError::Examine { path: path.clone(), source: errno.into() })
    })?;
    Ok(Prepared {
        path,
        kind: Kind::Scratch,
        made: if interrupted && made == Preparation::Reused { Preparation::Repaired } else { made },
        owner: Owner::from_stat(&stat),
        place: FileIdentity::from_stat(&stat),
        is_repository: false,
        branch: None,
        grants: Grants::default(),
        notes: Vec::new(),
        environment: BTreeMap::new(),
    })
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, symlink};

    use super::*;

    fn name() -> Name {
        Name::new("t_0badcafe").unwrap()
    }

    #[test]
    fn a_scratch_directory_is_new_and_private() {
        let base = tempfile::tempdir().unwrap();
        let prepared = prepare(base.path(), &name(), None).unwrap();
        assert_eq!(prepared.made, Preparation::Created);
        let metadata = fs_err::metadata(&prepared.path).unwrap();
        assert_eq!(metadata.permissions().mode() & 0o7777, 0o700);
        assert_eq!(metadata.ino(), prepared.place.inode);
    }

    #[test]
    fn one_that_is_there_is_reused_with_its_content_and_closed_again() {
        let base = tempfile::tempdir().unwrap();
        let first = prepare(base.path(), &name(), None).unwrap();
        fs_err::write(first.path.join("draft"), "kept").unwrap();
        fs_err::set_permissions(&first.path, PermissionsExt::from_mode(0o777)).unwrap();
        let second = prepare(base.path(), &name(), None).unwrap();
        assert_eq!((second.made, second.place), (Preparation::Reused, first.place));
        assert_eq!(fs_err::read_to_string(second.path.join("draft")).unwrap(), "kept");
        assert_eq!(fs_err::metadata(&second.path).unwrap().permissions().mode() & 0o777, 0o700);
    }

    #[test]
    fn one_that_its_worker_has_opened_is_closed_and_one_that_is_gone_is_no_error() {
        let base = tempfile::tempdir().unwrap();
        close(base.path(), &name()).unwrap();
        close(&base.path().join("none"), &name()).unwrap();
        let path = prepare(base.path(), &name(), None).unwrap().path;
        fs_err::set_permissions(&path, PermissionsExt::from_mode(0o777)).unwrap();
        close(base.path(), &name()).unwrap();
        assert_eq!(fs_err::metadata(&path).unwrap().permissions().mode() & 0o7777, 0o700);
        fs_err::remove_dir(&path).unwrap();
        symlink(base.path(), &path).unwrap();
        assert_eq!(close(base.path(), &name()).unwrap_err().code(), Code::WorkspaceSymlink);
    }

    #[test]
    fn a_symbolic_link_planted_in_its_place_is_refused_and_not_followed() {
        let base = tempfile::tempdir().unwrap();
        let target = tempfile::tempdir().unwrap();
        fs_err::set_permissions(target.path(), PermissionsExt::from_mode(0o755)).unwrap();
        symlink(target.path(), base.path().join("t_0badcafe")).unwrap();
        let error = prepare(base.path(), &name(), None).unwrap_err();
        assert_eq!(error.code(), Code::WorkspaceSymlink);
        assert!(error.hint().unwrap().contains("remove it"));
        assert_eq!(fs_err::metadata(target.path()).unwrap().permissions().mode() & 0o777, 0o755);
    }

    #[test]
    fn a_file_in_its_place_is_refused() {
        let base = tempfile::tempdir().unwrap();
        fs_err::write(base.path().join("t_0badcafe"), "").unwrap();
        assert_eq!(prepare(base.path(), &name(), None).unwrap_err().code(), Code::WorkspaceNotADirectory);
    }

    #[test]
    fn a_directory_made_but_not_yet_given_away_is_given_away() {
        if Owner::current().uid != 0 {
            skips::skip("needs root");
            return;
        }
        let base = tempfile::tempdir().unwrap();
        let owner = Owner { uid: 60_001, gid: 60_001 };
        let path = prepare(base.path(), &name(), None).unwrap().path;
        let prepared = prepare(base.path(), &name(), Some(owner)).unwrap();
        assert_eq!((prepared.made, prepared.owner), (Preparation::Repaired, owner));
        assert_eq!(prepare(base.path(), &name(), Some(owner)).unwrap().made, Preparation::Reused);
        chown(&path, Some(60_002), None).unwrap();
        let error = prepare(base.path(), &name(), Some(owner)).unwrap_err();
        assert!(matches!(error, ScratchError::ForeignOwner { found: 60_002, expected: 60_001, .. }));
    }

    #[test]
    fn a_directory_of_ours_that_holds_something_is_not_given_away() {
        if Owner::current().uid != 0 {
            skips::skip("needs root");
            return;
        }
        let base = tempfile::tempdir().unwrap();
        let path = prepare(base.path(), &name(), None).unwrap().path;
        fs_err::write(path.join("ours"), "").unwrap();
        let owner = Owner { uid: 60_001, gid: 60_001 };
        let error = prepare(base.path(), &name(), Some(owner)).unwrap_err();
        assert!(matches!(error, ScratchError::ForeignOwner { found: 0, .. }));
    }
}
