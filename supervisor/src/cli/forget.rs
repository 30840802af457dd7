//! `login --forget`: removes the stored login of an assignee, and its copies in the sessions of tasks.

use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use kernel::{BoardName, Profile, Status, Task, Tenant};

use crate::client::Client;
use base::failure::Failure;
use base::terminal::printable;
use host::job::{self, Placing};
use host::retained::RetainedHome;
use host::worker_user::job_user;
use setup::config::Config;
use setup::roster::Roster;
use verbs::List;

#[derive(Debug)]
pub(super) struct Forgotten {
    /// True if a login was stored.
    pub(super) was_kept: bool,
    /// Messages about the directories that may still contain a copy, with the reasons.
    pub(super) left: Vec<String>,
}

/// Configuration and roster, which determine the assignee's files in a session.
struct ForgottenSettings {
    config: Config,
    roster: Roster,
}

/// Removes the stored login of an assignee in a tenant, or outside of tenants. An active run keeps its copy until it
/// ends.
pub(super) async fn forget(
    client: &Client,
    name: &Profile,
    tenant: Option<&Tenant>,
) -> Result<Forgotten, Failure> {
    let was_kept = RetainedHome::for_assignee(client.root(), name, tenant).forget()?;
    let root = client.root();
    let settings = ForgottenSettings { config: Config::load(root)?, roster: Roster::load(root) };
    let mut left = Vec::new();
    for board in root.board_names()? {
        let client_of_board = Client::new(root.clone(), board.clone(), None);
        let mut list = List { tenant: tenant.cloned(), archived: true, page: true, ..List::default() };
        loop {
            let (tasks, next) = client_of_board.call(&list).await?.split();
            let waits = |task: &Task| task.tenant.as_ref() == tenant && task.status != Status::Running;
            for task in tasks.iter().filter(|task| waits(task)) {
                for (dir, gone) in copies(client, &board, task, name, &settings) {
                    if let Err(why) = remove(&dir, gone) {
                        left.push(format!(
                            "a copy may be left in {}: {why}",
                            printable(&dir.display().to_string())
                        ));
                    }
                }
            }
            if next.is_none() {
                break;
            }
            list.cursor = next;
        }
    }
    Ok(Forgotten { was_kept, left })
}

/// Returns the directories of a task's sessions that may contain copies of an assignee's login, each with the relative
/// paths of the copies.
fn copies(
    client: &Client,
    board: &BoardName,
    task: &Task,
    name: &Profile,
    ForgottenSettings { roster, config }: &ForgottenSettings,
) -> BTreeMap<PathBuf, Vec<PathBuf>> {
    let base = client.root().sessions(board).join(task.id.as_str());
    let entries = std::fs::read_dir(base).into_iter().flatten().flatten();
    let of_entry = |entry: std::fs::DirEntry| {
        let profile: Profile = entry.file_name().to_str()?.parse().ok()?;
        let resolved = roster.resolve(&profile, None, config).ok()?;
        if profile != *name && resolved.lane_name != *name {
            return None;
        }
        let state = resolved.lane.state()?;
        let inside = |path: &PathBuf| Some(path.strip_prefix(state).ok()?.to_owned());
        Some((entry.path(), resolved.lane.kept_files().iter().filter_map(inside).collect()))
    };
    entries.filter_map(of_entry).collect()
}

/// Removes files of a directory with the rights of its owner, because the owner may have put symbolic links into it.
fn remove(dir: &Path, gone: Vec<PathBuf>) -> Result<(), String> {
    let meta = std::fs::symlink_metadata(dir).map_err(|e| e.to_string())?;
    let identity = (meta.uid() != nix::unistd::geteuid().as_raw()).then(|| job_user(meta.uid()));
    let placing = Placing { dir: dir.to_owned(), gone, ..Placing::default() };
    job::place_file(identity, placing).map_err(|failure| failure.message)
}
