//! Context of a command: its root, its board, and the run that it belongs to.

use std::path::PathBuf;

use kernel::BoardName;

use crate::failure::Failure;
use crate::paths::Root;

/// Context of one command.
#[derive(Debug)]
pub struct Invocation {
    root: Root,
    board: BoardName,
    worker: Option<WorkerSelf>,
}

impl Invocation {
    /// Makes the context of a command; `worker` is the run that this process belongs to.
    pub fn new(root: Root, board: BoardName, worker: Option<WorkerSelf>) -> Self {
        Invocation { root, board, worker }
    }

    pub fn root(&self) -> &Root {
        &self.root
    }

    pub fn board(&self) -> &BoardName {
        &self.board
    }

    /// Returns the run that this process belongs to.
    pub fn worker(&self) -> Option<&WorkerSelf> {
        self.worker.as_ref()
    }
}

/// Environment variables by which a process inside a run identifies its run.
pub const OF_A_RUN: [&str; 5] =
    ["SUPERVISOR_BOARD", "SUPERVISOR_SOCKET", "SUPERVISOR_TASK", "SUPERVISOR_TOKEN", "SUPERVISOR_WORKSPACE"];

/// Identity of a run, as a process inside it reads it from the environment.
#[derive(Clone)]
pub struct WorkerSelf {
    pub task: kernel::TaskId,
    token: String,
    socket: Address,
}

impl std::fmt::Debug for WorkerSelf {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("WorkerSelf").field("task", &self.task).field("token", &"…").finish_non_exhaustive()
    }
}

/// Address at which a daemon listens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Address {
    /// Unix socket at this path.
    Unix(PathBuf),
    /// Port of the loopback address.
    Loopback(u16),
}

impl WorkerSelf {
    /// Reads the identity of the run from the environment. None outside a run; an error if it is incomplete or
    /// malformed.
    pub fn from_env(env: impl Fn(&str) -> Option<String>) -> Result<Option<Self>, Failure> {
        let Some(token) = env("SUPERVISOR_TOKEN") else { return Ok(None) };
        let need = |name: &str| {
            env(name).ok_or_else(|| {
                Failure::usage(format!(
                    "SUPERVISOR_TOKEN is set and {name} is not, so this run cannot find its board"
                ))
                .hint("outside a run, unset SUPERVISOR_TOKEN")
            })
        };
        let task = need("SUPERVISOR_TASK")?;
        let task = task.parse().map_err(|e| Failure::usage(format!("SUPERVISOR_TASK: {e}")))?;
        let socket = need("SUPERVISOR_SOCKET")?;
        let socket = match socket.strip_prefix("tcp://127.0.0.1:") {
            Some(port) => Address::Loopback(
                port.parse()
                    .map_err(|_| Failure::usage(format!("SUPERVISOR_SOCKET: `{socket}` has no port")))?,
            ),
            None => Address::Unix(socket.into()),
        };
        Ok(Some(WorkerSelf { task, token, socket }))
    }

    /// Returns the token that identifies the run to the daemon.
    pub fn token(&self) -> &str {
        &self.token
    }

    /// Returns the daemon's address.
    pub fn socket(&self) -> &Address {
        &self.socket
    }
}
