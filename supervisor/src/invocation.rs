//! Where a command is run: on which root and board, and inside which run.

use std::path::PathBuf;

use kernel::BoardName;

use crate::failure::Failure;
use crate::paths::Root;

/// The place of one command.
#[derive(Debug)]
pub(crate) struct Invocation {
    root: Root,
    board: BoardName,
    worker: Option<WorkerSelf>,
}

impl Invocation {
    /// A command for a root and board, or for the run that this process belongs to.
    pub(crate) fn new(root: Root, board: BoardName, worker: Option<WorkerSelf>) -> Self {
        Invocation { root, board, worker }
    }

    pub(crate) fn root(&self) -> &Root {
        &self.root
    }

    pub(crate) fn board(&self) -> &BoardName {
        &self.board
    }

    /// The run that this process belongs to.
    pub(crate) fn worker(&self) -> Option<&WorkerSelf> {
        self.worker.as_ref()
    }
}

/// The variables from which a process inside a run knows itself.
pub(crate) const OF_A_RUN: [&str; 5] =
    ["SUPERVISOR_BOARD", "SUPERVISOR_SOCKET", "SUPERVISOR_TASK", "SUPERVISOR_TOKEN", "SUPERVISOR_WORKSPACE"];

/// What a process inside a run knows of itself, from its environment.
#[derive(Clone)]
pub(crate) struct WorkerSelf {
    /// The task of the run.
    pub(crate) task: kernel::TaskId,
    token: String,
    socket: Address,
}

impl std::fmt::Debug for WorkerSelf {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("WorkerSelf").field("task", &self.task).field("token", &"…").finish_non_exhaustive()
    }
}

/// Where a daemon listens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Address {
    /// On a socket at this path.
    Unix(PathBuf),
    /// On this port of the loopback address.
    Loopback(u16),
}

impl WorkerSelf {
    /// Reads a run's own environment. None outside a run; an error where it is there but broken.
    pub(crate) fn from_env(env: impl Fn(&str) -> Option<String>) -> Result<Option<Self>, Failure> {
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

    /// The token that says which run this is.
    pub(crate) fn token(&self) -> &str {
        &self.token
    }

    /// Where the daemon of the run listens.
    pub(crate) fn socket(&self) -> &Address {
        &self.socket
    }
}
