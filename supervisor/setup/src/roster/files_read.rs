//! Fingerprints of the lane and policy files that were read, to detect files that a daemon has not reloaded.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::path::{Path, PathBuf};

use crate::config::definitions::{NamedFile, files_of, with_ending};
use crate::config::settings;
use base::paths::Root;

/// Files of `lanes.d` and `policies.d` with a hash of each text. The texts are not kept, because they may contain
/// secrets.
#[derive(Clone, Debug, Default)]
pub(super) struct FilesRead {
    texts: BTreeMap<PathBuf, u64>,
}

impl FilesRead {
    /// Reads the current files. Blocking.
    pub(super) fn now(root: &Root) -> Self {
        let mut texts = BTreeMap::new();
        for dir in [root.lanes_dir(), root.policies_dir()] {
            // A directory that cannot be listed has no readable files later either.
            let files = files_of(&dir, |entry| with_ending(entry, &["toml"]));
            for NamedFile { path, .. } in files.unwrap_or_default() {
                let mut hasher = DefaultHasher::new();
                settings::read(&path).ok().hash(&mut hasher);
                texts.insert(path, hasher.finish());
            }
        }
        FilesRead { texts }
    }

    /// Returns files that exist in only one of the two, or whose texts differ.
    fn changed<'a>(&'a self, other: &'a Self) -> impl Iterator<Item = &'a PathBuf> {
        let gone = other.texts.keys().filter(|path| !self.texts.contains_key(*path));
        self.texts
            .iter()
            .filter(|(path, text)| other.texts.get(*path) != Some(text))
            .map(|(path, _)| path)
            .chain(gone)
    }

    /// Returns the changed files on which a lane depends: its own file, and all policy files, because policies may
    /// extend each other.
    pub(super) fn changed_for(&self, other: &Self, root: &Root, lane: &str) -> Vec<PathBuf> {
        let lane_file = root.lanes_dir().join(format!("{lane}.toml"));
        let policies = root.policies_dir();
        let concerns = |path: &Path| path == lane_file || path.starts_with(&policies);
        self.changed(other).filter(|path| concerns(path)).cloned().collect()
    }
}
