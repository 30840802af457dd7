//! Places that no run may reach, and the relation of another path to them. The start of a daemon, a new task and the
//! plan of a run use these rules.
//!
//! See decision 0024.

use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::mount_table::{MountTable, Spot};
use crate::paths::leads_to;

/// Places that a run must not reach although a grant may lead there.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ClosedPaths {
    /// The supervisor's own places: its root, its configuration and its runtime directory.
    pub places: Vec<PathBuf>,
    /// The run's own parts of these places.
    pub own: Vec<PathBuf>,
    /// The directories in which other tasks work.
    pub tasks: Vec<PathBuf>,
}

/// A set of places, located on their file systems.
#[derive(Debug, Clone)]
pub struct Boundary {
    table: MountTable,
    places: Vec<(PathBuf, Spot)>,
}

/// Relation of a path to the places of a [`Boundary`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PathRelation {
    /// Neither lies in the other.
    Apart,
    /// The path is this place or lies in it.
    Inside(PathBuf),
    /// These places lie in the path.
    Holds(Vec<Held>),
}

/// A place that lies in a path.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Held {
    /// Position as seen from the path. Where a mount shows the place a second time, it differs from the place's own
    /// path.
    pub at: PathBuf,
    /// The place, by its own path.
    pub place: PathBuf,
}

impl Boundary {
    /// Locates places, as they are mounted now.
    ///
    /// # Errors
    /// Fails if the kernel's table of mounts cannot be read.
    pub fn around(places: &[PathBuf]) -> io::Result<Self> {
        let table = MountTable::read()?;
        Ok(Self { places: located(&table, places), table })
    }

    /// Adds directories of other users by the table of mounts and their names alone, because opening a directory on a
    /// dead file system would block. Their paths hold no symbolic links.
    pub(crate) fn with_named(&self, places: &[PathBuf]) -> Self {
        let table = self.table.clone();
        let located = places.iter().filter_map(|place| Some((place.clone(), table.spot_by_name(place)?)));
        Self { places: located.collect(), table }
    }

    /// Returns the relation of a path to the places: by the targets of symbolic links and by mounts, not by names.
    pub fn relation(&self, path: &Path) -> PathRelation {
        self.relation_of_real(&leads_to(path))
    }

    /// Returns the relation of a path without symbolic links to the places.
    pub(crate) fn relation_of_real(&self, path: &Path) -> PathRelation {
        let Some(own) = self.table.spot(path) else { return PathRelation::Apart };
        if let Some((place, _)) = self.places.iter().find(|(_, spot)| own.lies_in(spot)) {
            return PathRelation::Inside(place.clone());
        }
        let windows = std::iter::once((path, own)).chain(self.table.beneath(path));
        let mut held: Vec<Held> = windows.flat_map(|(at, shown)| self.seen_through(at, &shown)).collect();
        held.sort();
        held.dedup_by(|later, first| later.at == first.at);
        if held.is_empty() { PathRelation::Apart } else { PathRelation::Holds(held) }
    }

    /// Returns the places that a mount at `at` shows. `shown` is the mounted part of its file system.
    fn seen_through(&self, at: &Path, shown: &Spot) -> Vec<Held> {
        let seen = self.places.iter().filter_map(|(place, spot)| {
            let at = if shown.lies_in(spot) {
                at.to_owned()
            } else if spot.lies_in(shown) {
                at.join(spot.path.strip_prefix(&shown.path).ok()?)
            } else {
                return None;
            };
            Some(Held { at, place: place.clone() })
        });
        seen.collect()
    }
}

fn located(table: &MountTable, places: &[PathBuf]) -> Vec<(PathBuf, Spot)> {
    let located = places.iter().filter_map(|place| {
        let place = leads_to(place);
        let spot = table.spot(&place)?;
        Some((place, spot))
    });
    located.collect()
}

impl Spot {
    /// Returns true if this is the other spot or lies in it.
    fn lies_in(&self, other: &Spot) -> bool {
        self.device == other.device && self.path.starts_with(&other.path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_apart_inside_or_around() {
        let dir = tempfile::tempdir().unwrap();
        let dir = dir.path().canonicalize().unwrap();
        std::fs::create_dir_all(dir.join("a/root/boards")).unwrap();
        std::fs::create_dir(dir.join("b")).unwrap();
        std::os::unix::fs::symlink(dir.join("a/root/boards"), dir.join("b/link")).unwrap();
        let root = dir.join("a/root");
        let boundary = Boundary::around(std::slice::from_ref(&root)).unwrap();
        let inside = PathRelation::Inside(root.clone());
        assert_eq!(boundary.relation(&dir.join("b")), PathRelation::Apart);
        assert_eq!(boundary.relation(&dir.join("a/root2")), PathRelation::Apart);
        assert_eq!(boundary.relation(&root), inside);
        assert_eq!(boundary.relation(&root.join("boards/not/yet")), inside);
        assert_eq!(boundary.relation(&dir.join("b/link/x")), inside, "where the link leads counts");
        let held = vec![Held { at: root.clone(), place: root }];
        assert_eq!(boundary.relation(&dir.join("a")), PathRelation::Holds(held.clone()));
        assert_eq!(boundary.relation(Path::new("/")), PathRelation::Holds(held));
    }

    #[test]
    fn a_second_name_of_a_place_is_that_place() {
        let table = |path: &str, device: &str| Spot { device: device.to_owned(), path: path.into() };
        let boundary = Boundary {
            table: MountTable::read().unwrap(),
            places: vec![("/var/lib/sv".into(), table("/var/lib/sv", "8:1"))],
        };
        // What a mount at /opt/x would show.
        let seen = |shown: Spot| -> Vec<PathBuf> {
            boundary.seen_through(Path::new("/opt/x"), &shown).into_iter().map(|held| held.at).collect()
        };
        assert_eq!(seen(table("/", "8:1")), [Path::new("/opt/x/var/lib/sv")]);
        assert_eq!(seen(table("/var/lib/sv/boards", "8:1")), [Path::new("/opt/x")]);
        assert!(seen(table("/var/lib/sv", "8:2")).is_empty());
        assert!(seen(table("/var/lib/other", "8:1")).is_empty());
    }
}
