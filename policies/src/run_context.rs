//! Run context: directories, user, cgroup and sockets of one run.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::arrange::Arrangement;
use crate::boundary::ClosedPaths;
use crate::namespaces::PidNamespace;
use crate::secret_stores::SecretStores;

/// Directories, user, cgroup and sockets of one run, to which a policy is applied.
///
/// `workspace`, `home`, `tmp` and `write` must be real paths: they are opened without following any symbolic link,
/// because a worker of an earlier run may have written in them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunContext {
    /// Directory that a policy calls `{workspace}`.
    pub workspace: PathBuf,
    /// Directory that a policy calls `{home}`.
    pub home: PathBuf,
    /// Directory that a policy calls `{tmp}`.
    pub tmp: PathBuf,
    /// Further paths that may be read.
    #[serde(default)]
    pub read: Vec<PathBuf>,
    /// Further paths that may be read and executed.
    #[serde(default)]
    pub execute: Vec<PathBuf>,
    /// Further paths that may be read and written.
    #[serde(default)]
    pub write: Vec<PathBuf>,
    /// Substitutes that the file system view shows.
    #[serde(default)]
    pub arrangement: Arrangement,
    /// User to become. `None` keeps the caller's user, which must not be root.
    pub identity: Option<Identity>,
    /// Directory of cgroup v2 to join.
    pub work_cgroup: Option<PathBuf>,
    /// Pid namespace in which the caller was born; none if it is the host's.
    pub pid_namespace: Option<PidNamespace>,
    /// Address by which the worker reaches the board.
    pub board: BoardAccess,
    /// Places that the run must not reach although a grant may lead there.
    #[serde(default)]
    pub closed: ClosedPaths,
    /// Home directory of the person whose toolchains the policy may grant.
    pub toolchain_home: Option<PathBuf>,
    /// Socket of the keeper, which has the listening socket of the run's proxy.
    pub proxy: Option<PathBuf>,
    /// Directory of the daemon's credentials.
    pub credentials: Option<PathBuf>,
    /// Directory of the secrets that are named by a name alone.
    pub secrets: Option<PathBuf>,
    /// Process that must still be the parent once the death signal is set.
    pub parent: i32,
}

impl RunContext {
    /// Returns the context of a run that has these directories and nothing else. It keeps the caller's user, who must
    /// not be root, and has no cgroup, no board, no proxy and no store of secrets. `parent` is the pid of the parent
    /// process, whose end ends the run.
    pub fn new(workspace: PathBuf, home: PathBuf, tmp: PathBuf, parent: i32) -> Self {
        Self {
            workspace,
            home,
            tmp,
            read: vec![],
            execute: vec![],
            write: vec![],
            arrangement: Arrangement::default(),
            identity: None,
            work_cgroup: None,
            pid_namespace: None,
            board: BoardAccess::None,
            closed: ClosedPaths::default(),
            toolchain_home: None,
            proxy: None,
            credentials: None,
            secrets: None,
            parent,
        }
    }

    /// Returns the places in which the secrets of the run are searched.
    pub(crate) fn secret_stores(&self) -> SecretStores {
        SecretStores { credentials: self.credentials.clone(), directory: self.secrets.clone() }
    }

    /// Returns true if a path lies in one of the run's own directories.
    pub(crate) fn has(&self, path: &Path) -> bool {
        let lists = [&self.read, &self.write];
        let listed = lists.into_iter().flatten().map(PathBuf::as_path);
        let directories = [&self.workspace, &self.home, &self.tmp].map(PathBuf::as_path).into_iter();
        directories.chain(listed).chain(self.arrangement.paths()).any(|own| path.starts_with(own))
    }
}

/// A Unix user and group.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Identity {
    /// The user id.
    pub uid: u32,
    /// The group id; supplementary groups are dropped.
    pub gid: u32,
}

impl RunContext {
    /// Returns the run's own directories.
    pub(crate) fn own(&self) -> Vec<PathBuf> {
        [&self.workspace, &self.home, &self.tmp].into_iter().chain(&self.write).cloned().collect()
    }
}

impl Identity {
    /// Returns the user and group of the calling process.
    pub(crate) fn current() -> Self {
        Self { uid: rustix::process::geteuid().as_raw(), gid: rustix::process::getegid().as_raw() }
    }
}

/// Address by which a worker reaches the board.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BoardAccess {
    /// A Unix socket. The grant is for its directory, so that a worker also reaches a socket that a restarted daemon
    /// makes anew. The socket needs a directory of its own.
    Socket(PathBuf),
    /// A TCP port on the loopback address.
    Port(u16),
    /// No board.
    None,
}

/// A run with nothing but a workspace, a home and a place for temporary files beneath a directory.
#[cfg(test)]
pub(crate) fn bare(dir: &std::path::Path) -> RunContext {
    RunContext::new(dir.join("ws"), dir.join("home"), dir.join("tmp"), 1)
}
