//! Reads settings files safely: only regular files of a limited length, and never a file that could block the reader.

use std::fs::{File, Metadata};
use std::io::{Error, ErrorKind, Read as _, Result};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::Path;

/// Longest accepted settings file, in bytes.
const LONGEST: u64 = 1 << 20;

/// Write permissions of the group and of others. The group's permissions include the mask of an access control list
/// (acl(5)).
const OTHERS_WRITE: u32 = 0o022;

/// Settings file with its author.
#[derive(Debug)]
pub struct Authored {
    pub text: String,
    /// Unix user who alone can have written the text; none if that is not certain.
    pub author: Option<u32>,
}

/// Reads a settings file.
pub fn read(path: &Path) -> Result<String> {
    let (file, meta) = open(path, 0)?;
    text_of(file, &meta)
}

/// Reads a settings file with its author: the owner of the file.
///
/// The owner is the author only of a file that no other user can write or put in its place. So a symbolic link has no
/// known author, nor has a file or a directory that a group or others may write to. The owner and the text come from
/// the same open file.
pub(crate) fn read_authored(path: &Path) -> Result<Authored> {
    let (file, meta) = match open(path, nix::libc::O_NOFOLLOW) {
        Err(e) if e.raw_os_error() == Some(nix::libc::ELOOP) => {
            return Ok(Authored { text: read(path)?, author: None });
        }
        opened => opened?,
    };
    let owner = meta.uid();
    let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let directory = directory.metadata()?;
    let trusted = [0, owner, nix::unistd::geteuid().as_raw()];
    let is_sure = meta.mode() & OTHERS_WRITE == 0
        && directory.mode() & OTHERS_WRITE == 0
        && trusted.contains(&directory.uid());
    Ok(Authored { text: text_of(file, &meta)?, author: Some(owner).filter(|_| is_sure) })
}

fn open(path: &Path, flags: i32) -> Result<(File, Metadata)> {
    // `O_NONBLOCK`: opening a FIFO without a writer would block.
    let flags = flags | nix::libc::O_NONBLOCK | nix::libc::O_CLOEXEC;
    let file = File::options().read(true).custom_flags(flags).open(path)?;
    let meta = file.metadata()?;
    Ok((file, meta))
}

fn text_of(file: File, meta: &Metadata) -> Result<String> {
    if meta.is_dir() {
        return Err(ErrorKind::IsADirectory.into());
    }
    if !meta.is_file() {
        return Err(Error::other("it is not a regular file"));
    }
    let mut text = String::new();
    let length = file.take(LONGEST + 1).read_to_string(&mut text)?;
    if length as u64 > LONGEST {
        return Err(Error::other("it has more than 1 MiB"));
    }
    Ok(text)
}

/// Reads a settings file; none if it does not exist.
pub(crate) fn read_if_any(path: &Path) -> Result<Option<String>> {
    match read(path) {
        Err(e) if e.kind() == ErrorKind::NotFound => Ok(None),
        read => read.map(Some),
    }
}

#[cfg(test)]
mod tests {
    use std::fs::{Permissions, create_dir, hard_link, set_permissions, write};
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    use super::*;

    #[test]
    fn the_owner_is_the_author_only_of_a_file_that_no_other_user_can_write() {
        let place = tempfile::tempdir().unwrap();
        let trusted = Some(nix::unistd::geteuid().as_raw());
        let mode = |path: &Path, mode| set_permissions(path, Permissions::from_mode(mode)).unwrap();
        let file = |dir: &str, name: &str| {
            let dir = place.path().join(dir);
            if !dir.exists() {
                create_dir(&dir).unwrap();
                mode(&dir, 0o755);
            }
            let path = dir.join(name);
            write(&path, "x").unwrap();
            mode(&path, 0o644);
            path
        };
        let author = |path: &Path| {
            let read = read_authored(path).unwrap();
            assert_eq!(read.text, "x");
            read.author
        };
        let good = file("d", "good");
        assert_eq!(author(&good), trusted);
        for (name, open) in [("group", 0o664), ("others", 0o646)] {
            let path = file("d", name);
            mode(&path, open);
            assert_eq!(author(&path), None, "{name}");
        }
        let link = place.path().join("d/link");
        symlink(&good, &link).unwrap();
        assert_eq!(author(&link), None);
        let second = place.path().join("d/second");
        hard_link(&good, &second).unwrap();
        assert_eq!(author(&second), trusted, "the owner wrote it under each of its names");
        let exposed = file("open", "file");
        mode(exposed.parent().unwrap(), 0o777);
        assert_eq!(author(&exposed), None, "others can put another file there");
    }
}
