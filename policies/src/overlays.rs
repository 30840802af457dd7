//! Overlays of a view over single paths: an empty file or directory, or a file with another content.

use std::os::fd::{AsFd, AsRawFd};
use std::path::{Path, PathBuf};

use nix::mount::MsFlags;

use crate::covers::{Cover, Covered};
use crate::mounting::{MountError, OLD, ProbeError, at, mount_at, seal};
use crate::paths::{Kind, Opened};
use crate::user_names::Replaced;

/// Path of the empty file with which the view covers other files.
const EMPTY: &str = "/.empty";

/// Makes the empty file that covers other files.
pub(crate) fn prepare() -> Result<(), MountError> {
    at("make", Path::new(EMPTY), std::fs::File::create(EMPTY).map(drop))
}

impl Cover {
    /// Covers the path with an empty file or directory. Returns the directory, which the caller seals after it has
    /// mounted the run's own paths in it.
    pub(crate) fn mount(&self) -> Result<Option<&Path>, ProbeError> {
        let target = match Opened::real(&self.at) {
            Ok(target) => target,
            Err(error) if self.what == Covered::Foreign || error.is_missing() => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        // The mount point is the open file and not its path, so that the owner of the file cannot replace it in
        // between.
        let name = PathBuf::from(format!("{OLD}/proc/self/fd/{}", target.as_fd().as_raw_fd()));
        let safe = MsFlags::MS_NOSUID | MsFlags::MS_NODEV | MsFlags::MS_NOEXEC;
        if target.kind == Kind::Directory {
            let options = Some("mode=755,size=64k");
            mount_at("cover", Some("tmpfs"), &name, Some("tmpfs"), safe, options)?;
            return Ok(Some(&self.at));
        }
        mount_at("cover", Some(EMPTY), &name, None, MsFlags::MS_BIND, None)?;
        Ok(None)
    }
}

impl Replaced {
    /// Covers a file of the host with a read-only file of this content. Does nothing if the host has no such file.
    pub(crate) fn mount(&self) -> Result<(), ProbeError> {
        let Ok(target) = Opened::real(self.at) else { return Ok(()) };
        let name = PathBuf::from(format!("{OLD}/proc/self/fd/{}", target.as_fd().as_raw_fd()));
        let made = Path::new("/")
            .join(self.at.file_name().map_or_else(String::new, |name| format!(".{}", name.display())));
        at("write", &made, std::fs::write(&made, &self.text))?;
        mount_at("replace", made.to_str(), &name, None, MsFlags::MS_BIND, None)?;
        Ok(seal(self.at)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_where_it_was_stops_a_run_only_where_a_link_has_come_over_a_place_of_the_supervisor() {
        let dir = tempfile::tempdir().unwrap();
        std::os::unix::fs::symlink("/etc", dir.path().join("link")).unwrap();
        let cover =
            |name: &str, what| Cover { at: dir.path().join(name), what }.mount().map(|at| at.is_none());
        for what in [Covered::Supervisor, Covered::Foreign] {
            assert!(cover("gone", what).unwrap(), "{what:?}");
        }
        assert!(cover("link", Covered::Foreign).unwrap(), "its owner can move it at any time");
        let error = cover("link", Covered::Supervisor).unwrap_err();
        assert!(error.to_string().contains("link"), "{error}");
    }
}
