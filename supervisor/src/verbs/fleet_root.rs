//! The directory of a fleet, and which of those in it may have tasks.

use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use crate::exit::Code;
use crate::failure::Failure;

/// The directory above the directories of a fleet: its owner, and the right of other users to put a directory into it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Above {
    owner: u32,
    is_closed: bool,
}

impl Above {
    /// Looks at it. Its path has no symbolic link at its end.
    pub(super) fn look(root: &Path) -> Result<Self, Failure> {
        let wanted = "a directory with one subdirectory for each task";
        let meta = root.symlink_metadata().map_err(|e| Failure::named_file("look at", root, &e, wanted))?;
        if meta.is_symlink() {
            return Err(Failure::usage(format!("{} is a symbolic link", root.display()))
                .hint("name the directory that it leads to"));
        }
        if !meta.is_dir() {
            return Err(Failure::usage(format!("{} is not a directory", root.display())).hint(wanted));
        }
        Ok(Above { owner: meta.uid(), is_closed: meta.mode() & 0o022 == 0 })
    }

    /// Refuses a file, and a directory that another user than the owner has put there.
    pub(super) fn require(self, path: &Path) -> Result<(), Failure> {
        let wanted = "a directory of the fleet";
        let meta = path.symlink_metadata().map_err(|e| Failure::named_file("look at", path, &e, wanted))?;
        if !meta.is_dir() {
            let what = if meta.is_symlink() { "a symbolic link" } else { "no directory" };
            return Err(Failure::usage(format!("{} is {what}", path.display())).hint("it is left out"));
        }
        let own = nix::unistd::geteuid().as_raw();
        let is_trusted = meta.uid() == self.owner || (self.is_closed && [0, own].contains(&self.owner));
        if is_trusted {
            return Ok(());
        }
        Err(Failure::new(
            Code::NotPermitted,
            format!(
                "{} belongs to uid {}, and the directory above it to uid {}: its worker would act as another user",
                path.display(),
                meta.uid(),
                self.owner
            ),
        )
        .hint(format!("give it to the owner of the fleet: chown {} {}", self.owner, path.display())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_that_another_user_has_put_there_is_refused() {
        let own = nix::unistd::geteuid().as_raw();
        let dir = tempfile::tempdir().unwrap();
        let sub = dir.path().join("a");
        std::fs::create_dir(&sub).unwrap();
        std::os::unix::fs::symlink(&sub, dir.path().join("link")).unwrap();
        Above { owner: own, is_closed: false }.require(&sub).unwrap();
        Above { owner: own, is_closed: true }.require(&sub).unwrap();
        let refused = Above { owner: own + 1, is_closed: false }.require(&sub).unwrap_err();
        assert_eq!(refused.code, Code::NotPermitted);
        assert!(Above { owner: own + 1, is_closed: true }.require(&sub).is_err());
        assert!(Above { owner: own, is_closed: true }.require(&dir.path().join("link")).is_err());
        assert!(Above::look(&dir.path().join("link")).unwrap_err().message.contains("symbolic link"));
    }
}
