//! The small files that tie a worktree to its repository. A worker can write all of them, so none is believed unread.

use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};

use fs_err as fs;
use fs_err::os::unix::fs::OpenOptionsExt as _;
use rustix::fs::OFlags;

/// Ending of the name of a file that is being written.
pub(crate) const TEMPORARY: &str = ".supervisor";
/// Bytes that such a file may have: one path or one reference name.
const LONGEST: u64 = 8192;
/// Bytes that a file of all references may have.
const LARGEST: u64 = 256 * 1024 * 1024;

/// Reason why a worktree could not be tied to its repository.
#[derive(Debug, thiserror::Error)]
pub enum LinkError {
    /// The directory of the worktree's metadata could not be made.
    #[error("create {path}")]
    CreateMetadata { path: PathBuf, source: std::io::Error },
    /// A file of the tie could not be written.
    #[error("write {path}")]
    Write { path: PathBuf, source: std::io::Error },
}

/// The two ends of one worktree.
#[derive(Debug)]
pub(crate) struct Links {
    pub(crate) tree: PathBuf,
    /// Directory `.git/worktrees/<id>`, in which git keeps the state of the tree.
    pub(crate) metadata: PathBuf,
    /// The repository's `.git`.
    pub(crate) common: PathBuf,
}

impl Links {
    /// Returns true if every file exists with the expected meaning.
    pub(crate) fn are_good(&self, branch: &str) -> bool {
        self.wanted(branch).iter().all(LinkFile::is_good)
    }

    /// Returns true if the worktree has an index, which a checkout writes last.
    pub(crate) fn has_index(&self) -> bool {
        self.metadata.join("index").symlink_metadata().is_ok_and(|found| found.is_file())
    }

    /// Returns the other working tree of this metadata, if its `.git` leads back to the metadata.
    pub(crate) fn other_tree(&self) -> Option<PathBuf> {
        let file = resolved(&self.metadata, read(&self.metadata.join("gitdir"))?.as_str())?;
        let tree = file.parent()?.to_owned();
        let back = read(&file)?.strip_prefix("gitdir:").and_then(|target| resolved(&tree, target.trim()))?;
        (tree != self.tree && back == self.metadata).then_some(tree)
    }

    /// Writes each file of the tie that is missing or wrong. All other files of the working tree stay.
    pub(crate) fn write(&self, branch: &str) -> Result<(), LinkError> {
        fs::create_dir_all(&self.metadata)
            .map_err(|source| LinkError::CreateMetadata { path: self.metadata.clone(), source })?;
        for file in self.wanted(branch) {
            if !file.is_good() {
                file.write().map_err(|source| LinkError::Write { path: file.path.clone(), source })?;
            }
        }
        Ok(())
    }

    /// Removes the lock files of a git that was killed. Only for the owner of the worktree's lease.
    pub(crate) fn remove_stale_locks(&self, branch_lock: PathBuf) -> Result<bool, LinkError> {
        let mut removed = false;
        for path in [self.metadata.join("index.lock"), self.metadata.join("HEAD.lock"), branch_lock] {
            match fs::remove_file(&path) {
                Ok(()) => removed = true,
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
                Err(source) => return Err(LinkError::Write { path, source }),
            }
        }
        Ok(removed)
    }

    /// Has HEAD name a commit instead of a branch.
    pub(crate) fn detach_head(&self, commit: git2::Oid) -> Result<(), LinkError> {
        Self::replace(self.metadata.join("HEAD"), &format!("{commit}\n"))
    }

    /// Has HEAD name a branch.
    pub(crate) fn attach_head(&self, branch: &str) -> Result<(), LinkError> {
        Self::replace(self.metadata.join("HEAD"), &format!("ref: refs/heads/{branch}\n"))
    }

    /// Restores a file of the metadata if its content differs. Without content, the file is removed.
    pub(crate) fn restore(&self, name: &str, content: Option<&[u8]>) -> Result<(), LinkError> {
        let path = self.metadata.join(name);
        let Some(content) = content else {
            return match fs::remove_file(&path) {
                Err(source) if source.kind() != std::io::ErrorKind::NotFound => {
                    Err(LinkError::Write { path, source })
                }
                _ => Ok(()),
            };
        };
        if read_bytes(&path).as_deref() == Some(content) {
            return Ok(());
        }
        fs::create_dir_all(&self.metadata)
            .map_err(|source| LinkError::CreateMetadata { path: self.metadata.clone(), source })?;
        put(&path, content).map_err(|source| LinkError::Write { path, source })
    }

    /// Writes the files of the metadata that name its place in the repository, and HEAD if that is not valid.
    pub(crate) fn write_ties(&self, branch: &str) -> Result<(), LinkError> {
        let [commondir, gitdir, _, head] = self.wanted(branch);
        for file in
            [Some(commondir), Some(gitdir), Some(head).filter(|head| !head.is_good())].into_iter().flatten()
        {
            file.write().map_err(|source| LinkError::Write { path: file.path.clone(), source })?;
        }
        Ok(())
    }

    fn replace(path: PathBuf, text: &str) -> Result<(), LinkError> {
        put(&path, text.as_bytes()).map_err(|source| LinkError::Write { path, source })
    }

    fn wanted(&self, branch: &str) -> [LinkFile; 4] {
        let link = |path: PathBuf, prefix, target: &Path, text: String| LinkFile {
            path,
            meaning: Meaning::Path { prefix, target: target.to_owned() },
            text,
        };
        let dot_git = self.tree.join(".git");
        [
            // The order matters: git takes a directory without HEAD for no worktree, so HEAD comes last.
            link(self.metadata.join("commondir"), "", &self.common, "../..\n".to_owned()),
            link(self.metadata.join("gitdir"), "", &dot_git, format!("{}\n", dot_git.display())),
            link(
                dot_git.clone(),
                "gitdir: ",
                &self.metadata,
                format!("gitdir: {}\n", self.metadata.display()),
            ),
            LinkFile {
                path: self.metadata.join("HEAD"),
                meaning: Meaning::Head,
                text: format!("ref: refs/heads/{branch}\n"),
            },
        ]
    }
}

/// File of the tie, with its expected content.
struct LinkFile {
    path: PathBuf,
    meaning: Meaning,
    text: String,
}

enum Meaning {
    /// A path, however written.
    Path { prefix: &'static str, target: PathBuf },
    /// A reference or a commit: a worker may leave HEAD detached, and its work must be found as it was left.
    Head,
}

impl LinkFile {
    fn is_good(&self) -> bool {
        let Some(text) = read_up_to(&self.path, LONGEST) else { return false };
        // As git reads them (`read_gitfile_gently`, `get_common_dir_noenv`): any other white space is a part of the name.
        let text = text.trim_end_matches(['\n', '\r']);
        match &self.meaning {
            Meaning::Path { prefix, target } => text
                .strip_prefix(prefix)
                .and_then(|written| resolved(self.path.parent()?, written))
                .is_some_and(|found| found == *target),
            Meaning::Head => {
                text.starts_with("ref: refs/")
                    || (matches!(text.len(), 40 | 64) && text.bytes().all(|b| b.is_ascii_hexdigit()))
            }
        }
    }

    fn write(&self) -> std::io::Result<()> {
        put(&self.path, self.text.as_bytes())
    }
}

/// Replaces a file by a rename, so that a link planted in its place is replaced and not followed.
fn put(path: &Path, content: &[u8]) -> std::io::Result<()> {
    let mut temporary = path.to_owned().into_os_string();
    temporary.push(TEMPORARY);
    let temporary = PathBuf::from(temporary);
    match fs::remove_file(&temporary) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut file = fs::OpenOptions::new().write(true).create_new(true).mode(0o644).open(&temporary)?;
    file.write_all(content)?;
    fs::rename(&temporary, path)
}

/// Returns the trimmed text of a small regular file; anything else (a link, a FIFO, a huge file) counts as missing.
pub(crate) fn read(path: &Path) -> Option<String> {
    read_up_to(path, LONGEST).map(|text| text.trim().to_owned())
}

/// Returns the whole text of a regular file that may hold settings, or all references of a repository.
pub(crate) fn read_whole(path: &Path) -> Option<String> {
    read_up_to(path, LARGEST)
}

/// Returns the whole content of such a file, which need not be text.
pub(crate) fn read_bytes(path: &Path) -> Option<Vec<u8>> {
    bytes_up_to(path, LARGEST)
}

fn read_up_to(path: &Path, limit: u64) -> Option<String> {
    String::from_utf8(bytes_up_to(path, limit)?).ok()
}

fn bytes_up_to(path: &Path, limit: u64) -> Option<Vec<u8>> {
    // A worker may have planted a link or a FIFO in the place of the file.
    let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits().cast_signed();
    let file = fs::OpenOptions::new().read(true).custom_flags(flags).open(path).ok()?;
    if !file.metadata().ok()?.is_file() {
        return None;
    }
    let mut content = Vec::new();
    file.take(limit + 1).read_to_end(&mut content).ok()?;
    // The beginning of a file says nothing about the rest of it.
    (u64::try_from(content.len()).ok()? <= limit).then_some(content)
}

/// Returns the real path of a path that a file in `directory` contains.
fn resolved(directory: &Path, written: &str) -> Option<PathBuf> {
    let path = directory.join(written);
    // The last component stays as it is named, even if it is a link. Only the way to it is resolved.
    match path.file_name() {
        Some(name) => Some(path.parent()?.canonicalize().ok()?.join(name)),
        None => path.canonicalize().ok(),
    }
}
