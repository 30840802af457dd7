//! User of a test's processes: root or an ordinary user. Tests are skipped if their user is missing.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// The user behind daemon and commands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum User {
    /// Root: each worker gets a uid of its own.
    Root,
    /// An ordinary user, whose workers share its uid; by its id where the test itself is root's.
    Ordinary(Option<u32>),
}

/// The kernel's overflow uid: nobody's, so it owns nothing on a host.
const NOBODY: u32 = 65_534;

impl User {
    /// The user of the test itself.
    pub(crate) fn current() -> Self {
        if nix::unistd::geteuid().is_root() { User::Root } else { User::Ordinary(None) }
    }

    /// An ordinary user.
    pub(crate) fn ordinary() -> Self {
        match User::current() {
            User::Root => User::Ordinary(Some(NOBODY)),
            own @ User::Ordinary(_) => own,
        }
    }

    /// Every user that this host lets a test be.
    pub(crate) fn all() -> Vec<Self> {
        match User::current() {
            User::Root => vec![User::Root, User::ordinary()],
            own @ User::Ordinary(_) => {
                skips::skip("workers with uids of their own: needs root");
                vec![own]
            }
        }
    }

    /// The uid that a process must be given, where it is not the test's own.
    pub(crate) fn id(self) -> Option<u32> {
        match self {
            User::Root => None,
            User::Ordinary(id) => id,
        }
    }

    /// The binary that is tested, where this user can run it: a build directory may be closed to others.
    pub(super) fn binary(self, dir: &Path) -> PathBuf {
        let built = PathBuf::from(super::binary());
        let open = |path: &Path| fs::metadata(path).is_ok_and(|meta| meta.permissions().mode() & 0o001 != 0);
        if self.id().is_none() || built.ancestors().all(open) {
            return built;
        }
        let copy = dir.join("supervisor");
        fs::copy(&built, &copy).unwrap();
        copy
    }
}
