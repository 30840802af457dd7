//! Single steps of making a file system view, with their errors.

use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use nix::mount::{MsFlags, mount};

use crate::namespaces::NamespaceError;
use crate::paths::PathError;

/// Mount point of the old root until it is detached.
pub(crate) const OLD: &str = "/.old";

/// Reason why a file system view cannot be made on this host.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ProbeError {
    /// The host's settings do not permit it.
    #[error("make the file system view: {why}")]
    Unavailable { why: String },
    /// The attempt failed.
    #[error(transparent)]
    Mount(#[from] MountError),
    /// No namespace could be made for the attempt.
    #[error(transparent)]
    Namespace(#[from] NamespaceError),
    /// A path of the attempt could not be opened.
    #[error(transparent)]
    Path(#[from] PathError),
}

impl ProbeError {
    /// Returns the path that another process has removed or replaced since it was opened, if the failure has this cause.
    pub(crate) fn changed(&self) -> Option<&Path> {
        match self {
            Self::Mount(error) => {
                let kinds =
                    [ErrorKind::NotFound, ErrorKind::NotADirectory, ErrorKind::StaleNetworkFileHandle];
                kinds.contains(&error.source.kind()).then_some(&*error.path)
            }
            Self::Path(error) => error.is_changed().then(|| error.path()),
            Self::Unavailable { .. } | Self::Namespace(_) => None,
        }
    }
}

/// Failed step of making the view.
#[derive(Debug, thiserror::Error)]
#[error("make the file system view: {step} {}: {source}", .path.display())]
pub struct MountError {
    step: &'static str,
    path: PathBuf,
    #[source]
    source: io::Error,
}

/// Makes an existing mount read-only, without set-user-ID programs and device files. `MS_REMOUNT` with `MS_BIND`
/// changes only this mount point and not the file system beneath (mount(2)).
pub(crate) fn seal(path: &Path) -> Result<(), MountError> {
    let flags = MsFlags::MS_REMOUNT | MsFlags::MS_BIND | MsFlags::MS_RDONLY;
    let safe = MsFlags::MS_NOSUID | MsFlags::MS_NODEV;
    mount_at("seal", None, path, None, flags | safe, None)
}

pub(crate) fn at<T>(step: &'static str, path: &Path, result: io::Result<T>) -> Result<T, MountError> {
    result.map_err(|source| MountError { step, path: path.to_owned(), source })
}

pub(crate) fn mount_at(
    step: &'static str,
    source: Option<&str>,
    target: &Path,
    kind: Option<&str>,
    flags: MsFlags,
    data: Option<&str>,
) -> Result<(), MountError> {
    at(step, target, mount(source, target, kind, flags, data).map_err(io::Error::from))
}
