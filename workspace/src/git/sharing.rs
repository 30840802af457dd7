//! Modes of new files in a repository that a group shares (git-config(1), `core.sharedRepository`).
//!
//! libgit2 follows the setting only when it makes a repository. New directories take the group of the directory around
//! them by its set-group-ID bit, so only the rights of the group are set here.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use fs_err as fs;
use git2::Config;
use rustix::fs::Mode;
use rustix::process::umask;

/// Rights that a setting gives to users other than the owner.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Shared {
    /// Permissions in addition to the process's mask.
    Added(u32),
    /// Permissions in place of the mask.
    Exactly(u32),
}

impl Shared {
    /// Reads a value as git does (`git_config_perm`); none if nothing is shared, or if git refuses the value.
    fn read(value: &str) -> Option<Self> {
        const GROUP: Shared = Shared::Added(0o660);
        const ALL: Shared = Shared::Added(0o664);
        match value.to_ascii_lowercase().as_str() {
            "group" | "true" | "yes" | "on" => return Some(GROUP),
            "all" | "world" | "everybody" => return Some(ALL),
            _ => {}
        }
        match u32::from_str_radix(value, 8).ok()? {
            1 => Some(GROUP),
            2 => Some(ALL),
            mode if mode & 0o600 == 0o600 => Some(Self::Exactly(mode & 0o666)),
            _ => None,
        }
    }

    fn mask(self, current: u32) -> u32 {
        match self {
            Self::Added(mode) => current & !entered(mode),
            Self::Exactly(mode) => !entered(mode) & 0o777,
        }
    }

    /// Returns the permissions of an existing entry, as git changes them (`calc_shared_perm` in git's path.c).
    fn permissions(self, current: u32) -> u32 {
        let (Self::Added(wanted) | Self::Exactly(wanted)) = self;
        let writable = if current & 0o200 == 0 { wanted & !0o222 } else { wanted };
        let wanted = if current & 0o100 == 0 { writable } else { entered(writable) };
        match self {
            Self::Added(_) => current | wanted,
            Self::Exactly(_) => current & !0o777 | wanted,
        }
    }
}

/// Returns a mode that also permits entering the directories that it permits reading.
fn entered(mode: u32) -> u32 {
    mode | (mode & 0o444) >> 2
}

/// Gives a directory and everything beneath it the rights that the settings ask for. A run made the files with the
/// rights of its own umask.
pub(super) fn share(settings: &Config, dir: &Path) -> std::io::Result<()> {
    let Some(shared) =
        settings.get_string("core.sharedRepository").ok().and_then(|value| Shared::read(&value))
    else {
        return Ok(());
    };
    let mut next = vec![dir.to_owned()];
    while let Some(path) = next.pop() {
        let found = path.symlink_metadata()?;
        if found.is_dir() {
            next.extend(fs::read_dir(&path)?.flatten().map(|entry| entry.path()));
        }
        if found.is_dir() || found.is_file() {
            let mode = found.permissions().mode() & 0o7777;
            fs::set_permissions(&path, Permissions::from_mode(shared.permissions(mode)))?;
        }
    }
    Ok(())
}

/// Mask of this process while it writes into a shared repository. Dropping it restores the former mask.
pub(super) struct Sharing(Mode);

impl Sharing {
    /// Sets the mask by the settings of a repository; none if they do not ask for sharing.
    pub(super) fn begin(settings: &Config) -> Option<Self> {
        let shared = Shared::read(&settings.get_string("core.sharedRepository").ok()?)?;
        let before = umask(Mode::empty());
        umask(Mode::from_raw_mode(shared.mask(before.as_raw_mode())));
        Some(Self(before))
    }
}

impl Drop for Sharing {
    fn drop(&mut self) {
        umask(self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_values_of_git_are_known() {
        let masks = |value| Shared::read(value).map(|shared| format!("{:03o}", shared.mask(0o027)));
        for (value, expected) in [
            ("umask", None),
            ("false", None),
            ("0", None),
            ("nonsense", None),
            ("group", Some("007")),
            ("True", Some("007")),
            ("1", Some("007")),
            ("world", Some("002")),
            ("2", Some("002")),
            ("0640", Some("027")),
            ("0660", Some("007")),
            ("0600", Some("077")),
            ("0060", None),
        ] {
            assert_eq!(masks(value).as_deref(), expected, "{value}");
        }
    }
}
