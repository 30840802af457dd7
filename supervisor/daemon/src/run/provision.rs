//! Provision of a task at its claim: a user of its own, and its workspace if the path is known beforehand.
//!
//! The transaction of the claim records both, so a claim is one commit. The directory is made after it: a refused
//! claim would leave a directory, and two claims of one task would work in it.

use std::path::PathBuf;
use std::sync::Arc;

use kernel::{Board, Placement, TaskId, Workspace};
use workspace::Name;

use base::failure::Failure;
use host::uids::{self, Range};
use service::{BoardHandle, Service};

/// Resources for the claims on a board.
#[derive(Clone, Debug)]
pub struct Provision {
    /// Range of uids; none if all workers run as the daemon's user.
    uids: Option<Range>,
    workspaces: PathBuf,
}

/// Resources that are chosen for a task in the transaction of its claim.
#[derive(Clone, Debug, Default)]
pub struct TaskResources {
    /// User that no other task has.
    pub own_uid: Option<u32>,
    /// Workspace. The path of a scratch directory follows from its task's name; any other workspace must be looked at
    /// first.
    pub place: Option<Placement>,
}

impl Provision {
    pub async fn for_board(service: &Arc<Service>, board: &BoardHandle) -> Result<Self, Failure> {
        let workspaces = service.root().workspaces(board.name());
        if !nix::unistd::geteuid().is_root() {
            return Ok(Provision { uids: None, workspaces });
        }
        if let Some(range) = service.worker_uids().known(board.id(), &service.config().worker) {
            return Ok(Provision { uids: Some(range), workspaces });
        }
        let (service, board) = (Arc::clone(service), board.id());
        let range = move || service.worker_uids().range(board, &service.config().worker);
        let asked = tokio::task::spawn_blocking(range).await;
        let range =
            asked.map_err(|panic| Failure::failed(format!("the uids were not asked for: {panic}")))?;
        Ok(Provision { uids: Some(range?), workspaces })
    }

    /// Returns a group that only one task has: the number that its user would have in a scratch workspace. Blocking:
    /// writes to the board.
    pub fn own_gid(service: &Service, board: &BoardHandle, task: &TaskId) -> Result<u32, Failure> {
        let range = service.worker_uids().range(board.id(), &service.config().worker)?;
        let task = task.clone();
        Ok(board.writer()?.call(move |board| board.allocate_uid(&task, range.first, range.last))?)
    }

    /// Gives a task its user, in the transaction that opens its run.
    pub fn give(
        &self,
        board: &mut Board<'_>,
        task: &TaskId,
        workspace: &Workspace,
    ) -> Result<TaskResources, kernel::Error> {
        let own_uid = uids::own_uid(self.uids, board, task, workspace)?;
        let (true, Ok(name)) = (workspace.is_scratch(), Name::new(task.as_str())) else {
            return Ok(TaskResources { own_uid, place: None });
        };
        let path = workspace::scratch::path(&self.workspaces, &name).display().to_string();
        Ok(TaskResources { own_uid, place: Some(Placement { path, branch: None, worker_uid: own_uid }) })
    }
}
