//! Small files that connect a worktree with its repository. A worker can write all of them, so each is checked before git
//! follows it.

use std::io::{ErrorKind, Read as _, Write as _};
use std::path::{Path, PathBuf};

use fs_err as fs;
use fs_err::os::unix::fs::OpenOptionsExt as _;
use rustix::fs::OFlags;

/// Suffix of the name of a file until it is complete.
pub(crate) const TEMPORARY: &str = ".supervisor";
/// Limit on such a file, in bytes. It has one path or the name of one reference.
const LONGEST: u64 = 8192;
/// Limit on a file with all references, in bytes.
const LARGEST: u64 = 256 * 1024 * 1024;

/// Reason why a worktree could not be connected with its repository.
#[derive(Debug, thiserror::Error)]
pub enum LinkError {
    /// The directory of the worktree's metadata could not be made.
    #[error("create {path}")]
    CreateMetadata { path: PathBuf, source: std::io::Error },
    /// A connecting file could not be written.
    #[error("write {path}")]
    Write { path: PathBuf, source: std::io::Error },
}

/// Directories that the connecting files of one worktree name.
#[derive(Debug)]
pub(crate) struct Links {
    /// Top of the working tree.
    pub(crate) tree: PathBuf,
    /// Directory `.git/worktrees/<id>`, in which git keeps the state of the working tree.
    pub(crate) metadata: PathBuf,
    /// `.git` of the repository.
    pub(crate) common: PathBuf,
}

impl Links {
    /// Returns true if every connecting file exists and names the expected path.
    pub(crate) fn are_good(&self, branch: &str) -> bool {
        self.wanted(branch).iter().all(LinkFile::is_good)
    }

    /// Returns true if the worktree has an index. A checkout writes it last, so the checkout is then complete.
    pub(crate) fn has_index(&self) -> bool {
        self.metadata.join("index").symlink_metadata().is_ok_and(|found| found.is_file())
    }

    /// Returns the other working tree of this metadata, if its `.git` leads back to the metadata. A `.git` that exists and may
    /// not be read counts as well, so that no work is lost.
    pub(crate) fn other_tree(&self) -> Option<PathBuf> {
        let is_closed = |tree: &PathBuf| {
            let opened = fs::File::open(tree.join(".git"));
            opened.is_err_and(|error| error.kind() == ErrorKind::PermissionDenied)
        };
        self.named_tree().filter(|tree| self.leads_back_from(tree) || is_closed(tree))
    }

    /// Returns the working tree to which the owner of the repository has moved this one, if its `.git` proves it.
    pub(crate) fn moved_tree(&self) -> Option<PathBuf> {
        self.named_tree().filter(|tree| self.leads_back_from(tree))
    }

    /// Returns the other working tree that the metadata names.
    fn named_tree(&self) -> Option<PathBuf> {
        let file = resolved(&self.metadata, read(&self.metadata.join("gitdir"))?.as_str())?;
        let tree = file.parent().filter(|_| file.ends_with(".git"))?;
        (tree != self.tree).then(|| tree.to_owned())
    }

    fn leads_back_from(&self, tree: &Path) -> bool {
        let written = read(&tree.join(".git")).unwrap_or_default();
        let target = written.strip_prefix("gitdir:").and_then(|target| resolved(tree, target.trim()));
        target.is_some_and(|target| target == self.metadata)
    }

    /// Writes each connecting file that is missing or wrong. All other files of the working tree stay.
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

    /// Writes a commit to HEAD, in place of a branch.
    pub(crate) fn detach_head(&self, commit: git2::Oid) -> Result<(), LinkError> {
        Self::replace(self.metadata.join("HEAD"), &format!("{commit}\n"))
    }

    /// Writes a branch to HEAD.
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

    /// Writes the two files of the metadata that name its repository and its working tree, and HEAD if it is not valid.
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
            // The order matters: git ignores a directory without HEAD, so HEAD comes last, when the other files exist.
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

/// Connecting file, with its expected content.
struct LinkFile {
    path: PathBuf,
    meaning: Meaning,
    text: String,
}

enum Meaning {
    /// A path that resolves to the target, absolute or relative.
    Path { prefix: &'static str, target: PathBuf },
    /// A reference or a commit. A worker may leave HEAD detached, and its work must be found as it was left.
    Head,
}

impl LinkFile {
    fn is_good(&self) -> bool {
        let Some(text) = read_up_to(&self.path, LONGEST) else { return false };
        // Git removes line ends alone (`read_gitfile_gently`, `get_common_dir_noenv`); other white space is part of the path.
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

/// Replaces a file by a rename, so that a symbolic link that a worker has put there is replaced and not followed.
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

/// Returns the trimmed text of a small regular file. A file of another type or above the limit counts as missing.
pub(crate) fn read(path: &Path) -> Option<String> {
    read_up_to(path, LONGEST).map(|text| text.trim().to_owned())
}

/// Returns the `.git` directory of a repository, also if a link or a file `.git` leads to it; none if there is none.
pub(crate) fn common_directory(repository: &Path) -> Option<PathBuf> {
    let dot_git = repository.join(".git").canonicalize().ok()?;
    if dot_git.is_dir() {
        return Some(dot_git);
    }
    read(&dot_git)?.strip_prefix("gitdir:").and_then(|target| resolved(repository, target.trim()))
}

/// Returns the text of a regular file that may be large, such as settings or all references of a repository.
pub(crate) fn read_whole(path: &Path) -> Option<String> {
    read_up_to(path, LARGEST)
}

/// Returns the bytes of a regular file that may be large and need not be text.
pub(crate) fn read_bytes(path: &Path) -> Option<Vec<u8>> {
    bytes_up_to(path, LARGEST)
}

fn read_up_to(path: &Path, limit: u64) -> Option<String> {
    String::from_utf8(bytes_up_to(path, limit)?).ok()
}

fn bytes_up_to(path: &Path, limit: u64) -> Option<Vec<u8>> {
    // A worker may have replaced the file by a symbolic link, or by a FIFO, whose open would wait.
    let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits().cast_signed();
    let file = fs::OpenOptions::new().read(true).custom_flags(flags).open(path).ok()?;
    if !file.metadata().ok()?.is_file() {
        return None;
    }
    let mut content = Vec::new();
    file.take(limit + 1).read_to_end(&mut content).ok()?;
    // A file above the limit is refused and not cut, because its rest could change its meaning.
    (u64::try_from(content.len()).ok()? <= limit).then_some(content)
}

/// Returns the real path of a path that a file in `directory` contains.
fn resolved(directory: &Path, written: &str) -> Option<PathBuf> {
    let path = directory.join(written);
    // Only the directory is resolved. The last component stays as it is named, even if it is a symbolic link.
    match path.file_name() {
        Some(name) => Some(path.parent()?.canonicalize().ok()?.join(name)),
        None => path.canonicalize().ok(),
    }
}
