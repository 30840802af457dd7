//! Login files in the home of a run: copies of kept files, which belong to its worker. Changed copies are kept when the
//! run has ended, if its profile demands it.
//!
//! See decision 0113.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use kernel::{Profile, Tenant};
use policies::Identity;
use serde::{Deserialize, Serialize};

use super::environment::Environment;
use super::fault::{Fault, LaunchError};
use super::stage::Stage;
use base::failure::Failure;
use base::paths::Root;
use host::job::{self, Cause, Placing};
use host::retained::{self, FileAfterRun, RetainedHome};
use setup::lanes::Lane;
use setup::roster::Home;

const STAGE: Stage = Stage::PlaceLogin;

/// Locations of the files that are kept when the run has ended.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Retention {
    assignee: Profile,
    lane: Profile,
    tenant: Option<Tenant>,
    home: PathBuf,
    /// Path of its sessions in its home, and their directory.
    state: Option<(PathBuf, PathBuf)>,
    /// Files, with the modification time of the copy that the run got.
    files: BTreeMap<PathBuf, Option<SystemTime>>,
}

/// Owner of a home, with the lane.
#[derive(Clone, Copy, Debug)]
pub(super) struct HomeOwner<'a> {
    pub(super) assignee: &'a Profile,
    pub(super) lane: (&'a Profile, &'a Lane),
    pub(super) tenant: Option<&'a Tenant>,
    /// Fate of the home when the run has ended.
    pub(super) use_of: Home,
}

/// Copies the kept files of a run's assignee into its home, and into `state`, the directory of its sessions, if a file
/// lies there. Earlier runs of the task have written to that directory. Files that they left in place of a kept one are
/// removed, so that a run has the kept file or none. Returns the files to keep afterwards.
pub(super) fn place_retained(
    root: &Root,
    owner: HomeOwner<'_>,
    home: &Path,
    state: Option<&Path>,
    identity: Option<Identity>,
) -> Result<Option<Retention>, LaunchError> {
    let (lane_name, lane) = owner.lane;
    let mut retention = Retention {
        assignee: owner.assignee.clone(),
        lane: lane_name.clone(),
        tenant: owner.tenant.cloned(),
        home: home.to_owned(),
        state: lane.state().map(Path::to_owned).zip(state.map(Path::to_owned)),
        files: lane.kept_files().iter().map(|path| (path.clone(), None)).collect(),
    };
    let files = retention.retained(root).map_err(|e| LaunchError::refusal(STAGE, Environment::Root, e))?;
    let mut by_place: BTreeMap<PathBuf, Placing> = BTreeMap::new();
    // Only the sessions need the removal: the home is new and empty.
    for (dir, inside) in retention.files.keys().filter_map(|path| retention.in_sessions(path)) {
        by_place.entry(dir).or_default().gone.push(inside);
    }
    for (path, file) in files {
        let (dir, inside) = retention.place_of(&path);
        by_place.entry(dir).or_default().files.push((inside, hex::encode(file.bytes)));
        retention.files.insert(path, Some(file.changed));
    }
    for (dir, placing) in by_place {
        job::place_file(identity, Placing { dir, ..placing }).map_err(|failure| match failure.cause {
            Cause::NotTaken => LaunchError::task(STAGE, failure.message),
            // Written as the worker's user, whose quota may be spent: that holds up no other task.
            Cause::Shortage => LaunchError { stage: STAGE, error: failure.message, fault: Fault::Moment },
            _ => LaunchError::workspace(STAGE, Environment::Root, failure),
        })?;
    }
    Ok((owner.use_of == Home::Kept).then_some(retention))
}

impl Retention {
    /// Returns the files that are kept now.
    fn retained(&self, root: &Root) -> Result<BTreeMap<PathBuf, retained::RetainedFile>, Failure> {
        let files = self.files.keys().cloned().collect();
        retained::for_run(root, &self.assignee, &self.lane, self.tenant.as_ref(), &files)
    }

    /// Returns the real directory of a file, and its path within.
    fn place_of(&self, path: &Path) -> (PathBuf, PathBuf) {
        self.in_sessions(path).unwrap_or_else(|| (self.home.clone(), path.to_owned()))
    }

    /// Returns the directory and path of a file that lies among the sessions.
    fn in_sessions(&self, path: &Path) -> Option<(PathBuf, PathBuf)> {
        let (at, dir) = self.state.as_ref()?;
        Some((dir.clone(), path.strip_prefix(at).ok()?.to_owned()))
    }

    /// Keeps the files that the run has changed. A file that was changed elsewhere since the start stays as it is, such
    /// as by a login or another run. Blocks; the run's processes have ended.
    pub(super) fn keep(&self, root: &Root, identity: Option<Identity>) -> Result<(), Failure> {
        let now = self.retained(root)?;
        for (path, given) in &self.files {
            let current = now.get(path);
            if current.map(|file| file.changed) != *given {
                continue;
            }
            let (dir, inside) = self.place_of(path);
            let bytes = match retained::copy_out(&dir, &inside, identity)? {
                FileAfterRun::File(bytes) => bytes,
                FileAfterRun::Nothing => continue,
                FileAfterRun::Unfit(why) => {
                    tracing::warn!(assignee = %self.assignee, path = %path.display(), why, "not_kept");
                    continue;
                }
            };
            if !bytes.is_empty() && current.is_none_or(|file| file.bytes != bytes) {
                RetainedHome::for_assignee(root, &self.assignee, self.tenant.as_ref()).write(path, &bytes)?;
            }
        }
        Ok(())
    }
}
