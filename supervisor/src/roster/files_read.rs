//! What the files of lanes and policies said when they were read: whether a daemon has read them as they are now.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::path::{Path, PathBuf};

use crate::config::definitions::{self, Subject};
use crate::paths::Root;

/// The files of `lanes.d` and `policies.d`, each with a hash of its text: the text itself may hold what is secret.
#[derive(Clone, Debug, Default)]
pub(super) struct FilesRead {
    texts: BTreeMap<PathBuf, u64>,
}

impl FilesRead {
    /// The files as they are now. Blocking.
    pub(super) fn now(root: &Root) -> Self {
        let mut texts = BTreeMap::new();
        for dir in [root.lanes_dir(), root.policies_dir()] {
            // A directory that cannot be listed has no files that could be read later either.
            drop(definitions::read_all(&dir, "toml", Subject::Lane, |_, path, text| {
                let mut hasher = DefaultHasher::new();
                text.ok().hash(&mut hasher);
                texts.insert(path.to_owned(), hasher.finish());
            }));
        }
        FilesRead { texts }
    }

    /// The files that are there in one of both only, or have another text.
    fn changed<'a>(&'a self, other: &'a Self) -> impl Iterator<Item = &'a PathBuf> {
        let gone = other.texts.keys().filter(|path| !self.texts.contains_key(*path));
        self.texts
            .iter()
            .filter(|(path, text)| other.texts.get(*path) != Some(text))
            .map(|(path, _)| path)
            .chain(gone)
    }

    /// The files among those that changed on which a lane depends: its own, and those of policies, of which one may extend another.
    pub(super) fn changed_for(&self, other: &Self, root: &Root, lane: &str) -> Vec<PathBuf> {
        let own = root.lanes_dir().join(format!("{lane}.toml"));
        let policies = root.policies_dir();
        let concerns = |path: &Path| path == own || path.starts_with(&policies);
        self.changed(other).filter(|path| concerns(path)).cloned().collect()
    }
}
