//! Sessions of agents that continue from run to run: a directory for each task and profile, which belongs to the worker
//! and is linked into the home of each of its runs.
//!
//! See decision 0094.

use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use kernel::{BoardName, ForkedFrom, Profile, TaskId};
use policies::Identity;
use shim::shortage::is_shortage;
use workspace::Name;

use super::environment::Environment;
use super::fault::LaunchError;
use super::private::give;
use super::session_copy::{Bounds, CopyError, Moved, copy};
use super::stage::Stage;
use crate::gc::{self, CollectResult, Sweep};
use base::paths::{Root, make_dir};

/// Session that a run may continue.
#[derive(Debug)]
pub(crate) struct Resume {
    /// Name of the session, as reported by the agent.
    pub(super) session: String,
    /// Use of the session.
    pub(super) next: Next,
}

/// Use of a session by a run.
#[derive(Debug)]
pub(crate) enum Next {
    /// Continue it, with this text about the changes since.
    Resume(String),
    /// Start a new session as a copy of it.
    Fork(Box<ForkedFrom>),
}

/// Session directory of a run.
#[derive(Debug)]
pub(crate) struct SessionDir {
    pub(super) dir: PathBuf,
    /// State of the directory before the run.
    pub(super) state: SessionDirState,
}

/// State of a session directory before a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SessionDirState {
    Existing,
    Made,
}

/// Task and profile that sessions belong to.
#[derive(Clone, Copy)]
pub(super) struct SessionOwner<'a> {
    pub(super) root: &'a Root,
    pub(super) board: &'a BoardName,
    pub(super) task: &'a TaskId,
    pub(super) profile: &'a Profile,
}

/// Finds or makes the session directory for a task's runs as a profile.
pub(super) fn keep(
    SessionOwner { root, board, task, profile }: SessionOwner<'_>,
    identity: Option<Identity>,
) -> Result<SessionDir, LaunchError> {
    const STAGE: Stage = Stage::MakeHome;
    let name = name_of(profile)?;
    let refused = |e| LaunchError::refusal(STAGE, Environment::Root, e);
    let board = root.sessions(board);
    let base = board.join(task.as_str());
    // Only the daemon writes to these, so an existing entry was given to an earlier run.
    make_dir(&board, 0o711).map_err(refused)?;
    make_dir(&base, 0o711).map_err(refused)?;
    let dir = base.join(name.as_str());
    let owner = identity.map_or_else(|| nix::unistd::geteuid().as_raw(), |identity| identity.uid);
    let state = match std::fs::symlink_metadata(&dir) {
        Ok(meta) if meta.is_dir() && meta.uid() == owner => {
            // A worker may have changed its mode. The path cannot be replaced meanwhile: only the daemon writes to its
            // parent.
            let closed = std::fs::Permissions::from_mode(0o700);
            std::fs::set_permissions(&dir, closed).map_err(|e| LaunchError::system(STAGE, &e))?;
            SessionDirState::Existing
        }
        found => {
            if found.is_ok() {
                // The task's user has changed, and may not read the old sessions.
                gc::sessions_of_profile(&base, name.as_str(), Sweep::Remove).map_err(|fate| match fate {
                    CollectResult::Foreign(why) | CollectResult::Stuck(why) => LaunchError::task(STAGE, why),
                    CollectResult::Absent | CollectResult::Gone(_) => {
                        LaunchError::task(STAGE, "its sessions are in use")
                    }
                })?;
            }
            make_dir(&dir, 0o700).map_err(refused)?;
            give(&dir, identity).map_err(|e| LaunchError::system(STAGE, &e))?;
            SessionDirState::Made
        }
    };
    Ok(SessionDir { dir, state })
}

fn name_of(profile: &Profile) -> Result<Name, LaunchError> {
    let name = Name::new(profile.as_str()).or_else(|_| Name::new(hex::encode(profile.as_str())));
    name.map_err(|e| LaunchError::system(Stage::MakeHome, &e))
}

/// Copies the sessions of another task for a task without any: as a whole, or not at all. `projects` holds a directory
/// for each workspace, of which `workspace` is this run's.
///
/// # Errors
/// They cannot be copied. Missing sessions are no error: the run starts a new session.
pub(super) fn fork(
    SessionOwner { root, board, task, profile }: SessionOwner<'_>,
    from: &ForkedFrom,
    projects: Option<&Path>,
    workspace: &Path,
    identity: Option<Identity>,
) -> Result<(), LaunchError> {
    const STAGE: Stage = Stage::MakeHome;
    let (name, board) = (name_of(profile)?, root.sessions(board));
    let source = board.join(from.run.task_id.as_str()).join(name.as_str());
    let base = board.join(task.as_str());
    let (dir, draft) = (base.join(name.as_str()), base.join(format!(".{name}.copy")));
    let is_there = |path: &Path| path.symlink_metadata().is_ok_and(|meta| meta.is_dir());
    if is_there(&dir) || !is_there(&source) {
        return Ok(());
    }
    let system = |e: &std::io::Error| LaunchError::system(STAGE, e);
    let refused = |e| LaunchError::refusal(STAGE, Environment::Root, e);
    make_dir(&board, 0o711).map_err(refused)?;
    make_dir(&base, 0o711).map_err(refused)?;
    // Remains of a daemon that was killed; no worker has used them.
    if draft.symlink_metadata().is_ok() {
        std::fs::remove_dir_all(&draft).map_err(|e| system(&e))?;
    }
    // Copied under another name, so that a run finds the whole copy or none.
    make_dir(&draft, 0o700).map_err(refused)?;
    let before = from.run.workspace_path.as_deref().map(Path::new);
    let moved = projects.zip(before).map(|(projects, before)| Moved::between(projects, before, workspace));
    let left_out = match copy(&source, &draft, identity, moved.as_ref(), Bounds::FORK) {
        Ok(left_out) => left_out,
        Err(error) => {
            std::fs::remove_dir_all(&draft).ok();
            let why = format!("the sessions of {} cannot be copied: {error}", from.run.task_id);
            return Err(match error {
                // Another try cannot succeed, so a person must decide.
                CopyError::Refused(_) | CopyError::Closed(_) => LaunchError::definition(
                    STAGE,
                    format!("{why}; `supervisor create` makes a task without them"),
                ),
                CopyError::System(error) if is_shortage(&error) => system(&error),
                CopyError::System(_) => LaunchError::task(STAGE, why),
            });
        }
    };
    if left_out.entries > 0 {
        let (first, origin) = (left_out.first.unwrap_or_default(), &from.run.task_id);
        tracing::warn!(%task, %origin, entries = left_out.entries, first = %first.display(), "session_files_left_out");
    }
    std::fs::rename(&draft, &dir).map_err(|e| system(&e))
}

/// Returns true if the name of a session can be an argument of a command and not be taken for an option.
pub(super) fn is_word(session: &str) -> bool {
    session.starts_with(|c: char| c.is_ascii_alphanumeric())
        && session.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-.:".contains(&byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_of_a_session_is_never_an_option_or_a_path() {
        for name in ["019a-7f", "ses_5x", "7f9c:1", "a.b"] {
            assert!(is_word(name), "{name}");
        }
        for name in ["", "-c", "--model", "../x", "a b", "a/b", "é"] {
            assert!(!is_word(name), "{name}");
        }
    }
}
