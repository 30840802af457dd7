//! Checks the directory of a fleet, and which of its subdirectories may have tasks.

use std::path::Path;

use rustix::fs::{FileType, Stat};

use base::exit::Code;
use base::failure::Failure;
use host::unlinked;

/// The directory above the fleet's directories: its owner, and whether other users cannot create directories in it.
#[derive(Clone, Copy, Debug)]
pub(super) struct ParentDirectory {
    owner: u32,
    is_closed: bool,
}

impl ParentDirectory {
    /// Examines the directory. Refuses a path with a symbolic link.
    pub(super) fn examine(root: &Path) -> Result<Self, Failure> {
        let wanted = "a directory with one subdirectory for each task";
        let (stat, kind) = status(root, wanted)?;
        if kind == FileType::Symlink {
            return Err(Failure::usage(format!("{} is a symbolic link", root.display()))
                .hint("name the directory that it leads to"));
        }
        if kind != FileType::Directory {
            return Err(Failure::usage(format!("{} is not a directory", root.display())).hint(wanted));
        }
        Ok(ParentDirectory { owner: stat.st_uid, is_closed: stat.st_mode & 0o022 == 0 })
    }

    /// Refuses a path that is no directory, and a directory that another user than the owner created.
    pub(super) fn require(self, path: &Path) -> Result<(), Failure> {
        let wanted = "a directory of the fleet";
        let (stat, kind) = status(path, wanted)?;
        if kind != FileType::Directory {
            let what = if kind == FileType::Symlink { "a symbolic link" } else { "no directory" };
            return Err(Failure::usage(format!("{} is {what}", path.display())).hint("it is left out"));
        }
        let euid = nix::unistd::geteuid().as_raw();
        let is_trusted = stat.st_uid == self.owner || (self.is_closed && [0, euid].contains(&self.owner));
        if is_trusted {
            return Ok(());
        }
        Err(Failure::new(
            Code::NotPermitted,
            format!(
                "{} belongs to uid {}, and the directory above it to uid {}: its worker would act as another user",
                path.display(),
                stat.st_uid,
                self.owner
            ),
        )
        .hint(format!("give it to the owner of the fleet: chown {} {}", self.owner, path.display())))
    }
}

fn status(path: &Path, wanted: &str) -> Result<(Stat, FileType), Failure> {
    match unlinked::status(path) {
        Ok(stat) => Ok((stat, FileType::from_raw_mode(stat.st_mode))),
        Err(e) if unlinked::is_linked(&e) => {
            Err(Failure::usage(format!("{} leads through a symbolic link", path.display()))
                .hint("name the directory without links: realpath prints it"))
        }
        Err(e) => Err(Failure::named_file("look at", path, &e, wanted)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_that_another_user_has_put_there_is_refused() {
        let euid = nix::unistd::geteuid().as_raw();
        let temporary = tempfile::tempdir().unwrap();
        let dir = temporary.path().canonicalize().unwrap();
        let sub = dir.join("a");
        std::fs::create_dir(&sub).unwrap();
        std::os::unix::fs::symlink(&sub, dir.join("link")).unwrap();
        ParentDirectory { owner: euid, is_closed: false }.require(&sub).unwrap();
        ParentDirectory { owner: euid, is_closed: true }.require(&sub).unwrap();
        let refused = ParentDirectory { owner: euid + 1, is_closed: false }.require(&sub).unwrap_err();
        assert_eq!(refused.code, Code::NotPermitted);
        assert!(ParentDirectory { owner: euid + 1, is_closed: true }.require(&sub).is_err());
        assert!(ParentDirectory { owner: euid, is_closed: true }.require(&dir.join("link")).is_err());
        assert!(
            ParentDirectory::examine(&dir.join("link")).unwrap_err().message.contains("is a symbolic link")
        );
        std::fs::create_dir(sub.join("b")).unwrap();
        for name in ["link/b", "link/absent"] {
            let refused = ParentDirectory::examine(&dir.join(name)).unwrap_err();
            assert!(refused.message.contains("leads through a symbolic link"), "{refused}");
        }
    }
}
