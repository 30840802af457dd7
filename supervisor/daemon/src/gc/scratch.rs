//! Collects the scratch workspace of a task that is over.

use std::collections::BTreeSet;
use std::fs::Metadata;
use std::io::ErrorKind;
use std::ops::RangeInclusive;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use kernel::{BoardName, Holder, Status, Task, TaskId, Verdict};
use workspace::{Job, Name};

use super::{CollectResult, Sweep, removal_checks, sessions};
use base::failure::Failure;
use base::paths::Root;
use host::job;
use service::BoardHandle;

/// Expected owner of a scratch workspace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Owner {
    Uid(u32),
    /// Any uid in the board's range of worker uids.
    Former(RangeInclusive<u32>),
    /// None: the task never had a worker.
    Nobody,
}

impl Owner {
    /// Returns the expected owner of a task's workspace. As root, each task has a uid of its own.
    pub fn of_workspace(worker_uid: Option<u32>) -> Self {
        let daemon_uid = nix::unistd::geteuid();
        if daemon_uid.is_root() {
            worker_uid.map_or(Owner::Nobody, Owner::Uid)
        } else {
            Owner::Uid(daemon_uid.as_raw())
        }
    }

    fn refuse(&self, found: u32) -> Option<String> {
        match self {
            Owner::Uid(uid) if *uid == found => None,
            Owner::Uid(uid) => Some(format!("it belongs to uid {found}, and its task's worker is uid {uid}")),
            Owner::Former(range) if range.contains(&found) => None,
            Owner::Former(_) => Some(format!("it belongs to uid {found}, which is not a former worker's")),
            Owner::Nobody => Some(format!("it belongs to uid {found}, and its task never had a worker")),
        }
    }
}

#[derive(Debug)]
pub struct Scratch<'a> {
    pub root: &'a Root,
    pub board: &'a BoardName,
    pub task: &'a TaskId,
    pub owner: Owner,
    /// Directories in which other tasks work or will work.
    pub needed: &'a BTreeSet<PathBuf>,
}

impl Scratch<'_> {
    /// Examines the workspace, or removes it. Blocking.
    pub fn collect(&self, sweep: Sweep) -> CollectResult {
        let path = self.root.workspaces(self.board).join(self.task.as_str());
        let meta = match removal_checks::directory(&path) {
            Ok(meta) => meta,
            Err(result) => return result,
        };
        // An interrupted preparation leaves an empty directory whose owner was not changed yet.
        let unfinished = meta.uid() == removal_checks::own_uid() && is_empty(&path);
        if !unfinished && let Some(why) = self.owner.refuse(meta.uid()) {
            return CollectResult::Foreign(why);
        }
        if self.needed.iter().any(|needed| needed.starts_with(&path)) {
            return CollectResult::Stuck("another task works in it".to_owned());
        }
        self.take(&path, &meta, sweep).unwrap_or_else(|result| result)
    }

    fn take(&self, path: &Path, meta: &Metadata, sweep: Sweep) -> Result<CollectResult, CollectResult> {
        let _lease = removal_checks::lease(&self.root.leases(), path, meta, self.board.as_str())?;
        let name = Name::new(self.task.as_str()).map_err(|e| CollectResult::Stuck(e.to_string()))?;
        let base = self.root.workspaces(self.board);
        let identity = removal_checks::identity(meta.uid());
        let size = removal_checks::measure(identity, &base, &name)?;
        if sweep == Sweep::Remove {
            let job = Job::RemoveScratch { base, name };
            job::work(identity, Vec::new(), vec![path.to_owned()], job).map_err(removal_checks::stuck)?;
            match std::fs::remove_dir(path) {
                Err(e) if e.kind() != ErrorKind::NotFound => return Err(CollectResult::Stuck(e.to_string())),
                _ => {}
            }
        }
        Ok(CollectResult::Gone(size))
    }
}

/// Removes the sessions and the scratch workspace of an archived task. Returns the result. Blocking.
///
/// Artifacts handed over by a run of this supervisor are stored with the task. An artifact that an external worker
/// handed over and that exists only in the workspace keeps the workspace, until the artifact is attached or `gc` is
/// called.
pub fn remove_archived(root: &Root, board: &BoardHandle, id: &TaskId) -> Result<CollectResult, Failure> {
    let (task, runs, files, needed) = board.readers().with(|view| {
        Ok((view.task(id)?, view.runs(id)?, view.attachments(id)?, view.directories_in_use()?))
    })?;
    let Some(task) = task.filter(|task| task.status == Status::Archived) else {
        return Ok(CollectResult::Absent);
    };
    let kept = sessions::of_task(root, board.name(), id, Sweep::Remove);
    if matches!(kept, CollectResult::Foreign(_) | CollectResult::Stuck(_)) || !has_scratch(&task) {
        return Ok(kept);
    }
    let path = root.workspaces(board.name()).join(id.as_str());
    let is_kept = |artifact: &String| files.iter().any(|file| file.artifact.as_ref() == Some(artifact));
    let handed = runs.iter().filter(|run| run.holder == Holder::External);
    let handed = handed.filter_map(|run| run.verdict.as_ref()).flat_map(Verdict::artifacts);
    if let Some(artifact) =
        handed.filter(|artifact| !is_kept(artifact)).find(|name| path.join(name).symlink_metadata().is_ok())
    {
        return Ok(CollectResult::Stuck(format!(
            "its artifact {artifact} exists only there: keep it with `supervisor attach {id} {}`, then `supervisor gc`",
            path.join(artifact).display()
        )));
    }
    let needed: BTreeSet<PathBuf> = needed.into_iter().map(PathBuf::from).collect();
    let owner = Owner::of_workspace(task.worker_uid);
    let scratch = Scratch { root, board: board.name(), task: id, owner, needed: &needed };
    Ok(scratch.collect(Sweep::Remove))
}

/// Returns true if a task works in a scratch workspace.
pub fn has_scratch(task: &Task) -> bool {
    task.workspace.is_scratch()
}

fn is_empty(path: &Path) -> bool {
    std::fs::read_dir(path).is_ok_and(|mut entries| entries.next().is_none())
}
