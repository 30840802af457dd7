//! Takes over objects of Git LFS that a run made, in addition to the objects of git.
//!
//! git-lfs keeps them in `.git/lfs/objects`, named by the SHA-256 of their content. A run has an empty store of its
//! own. It finds the repository's store beside the object directory that its own objects borrow from.

use std::io::Read as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use fs_err as fs;
use fs_err::os::unix::fs::OpenOptionsExt as _;
use rustix::fs::OFlags;
use sha2::{Digest as _, Sha256};

use super::WorktreeError;
use super::private::{Private, STORE};

impl Private<'_> {
    /// Takes over each object whose content has the digest in its name. All other files are dropped.
    pub(super) fn keep_large(&self) -> Result<(), WorktreeError> {
        let store_dir = self.dir().join(STORE).join("objects");
        let shared = self.links.common.join(STORE).join("objects");
        for path in stored(&store_dir) {
            let Some(name) = path.file_name().and_then(|name| name.to_str()) else { continue };
            let Some(place) = place_of(name).map(|dir| shared.join(dir)) else { continue };
            let target = place.join(name);
            if target.symlink_metadata().is_ok() {
                continue;
            }
            // If the disk is full, a later call may succeed.
            let failed = |error: std::io::Error| WorktreeError::Store {
                path: shared.clone(),
                source: git2::Error::from_str(&error.to_string()),
            };
            if !is_whole(&path, name).map_err(failed)? {
                continue;
            }
            fs::create_dir_all(&place).map_err(failed)?;
            // The store of the run may lie on another file system.
            if fs::rename(&path, &target).is_err() {
                let draft = place.join(format!("{name}.supervisor"));
                fs::copy(&path, &draft).and_then(|_| fs::rename(&draft, &target)).map_err(failed)?;
            }
        }
        Ok(())
    }
}

/// Lists the files two directories deep.
fn stored(objects: &Path) -> Vec<PathBuf> {
    let within = |dir: PathBuf| {
        let entries = fs::read_dir(dir).into_iter().flatten().flatten();
        entries.map(|entry| entry.path()).collect::<Vec<_>>()
    };
    let first = within(objects.to_owned());
    first.into_iter().flat_map(within).flat_map(within).collect()
}

/// Returns the directory of an object; none if the name is not an object's.
fn place_of(name: &str) -> Option<PathBuf> {
    let is_digest = name.len() == 64 && name.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
    is_digest.then(|| Path::new(&name[..2]).join(&name[2..4]))
}

/// Compares the content of a file with its name. A file with a second hard link is refused, because its content could
/// still be changed through the other link.
fn is_whole(path: &Path, name: &str) -> std::io::Result<bool> {
    let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits().cast_signed();
    let Ok(mut file) = fs::OpenOptions::new().read(true).custom_flags(flags).open(path) else {
        return Ok(false);
    };
    let meta = file.metadata()?;
    if !meta.is_file() || meta.nlink() != 1 {
        return Ok(false);
    }
    let mut digest = Sha256::new();
    let mut part = vec![0; 1 << 16];
    loop {
        match file.read(&mut part)? {
            0 => break,
            read => digest.update(&part[..read]),
        }
    }
    Ok(hex::encode(digest.finalize()) == name)
}
