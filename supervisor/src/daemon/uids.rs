//! Which worker uids belong to which board: no two boards of a root ever give out the same one.
//!
//! `uids.json` of the root holds a range for each board that has run a worker. A range, once given, is kept, also when
//! the configured range changes later: files with its uids may still be there.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use kernel::BoardId;
use serde::{Deserialize, Serialize};

use crate::config::WorkerConfig;
use crate::failure::Failure;
use crate::paths::Root;
use crate::rundir::write_json;

const FILE: &str = "uids.json";

/// One board's range of uids.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Range {
    /// The first uid.
    pub(super) first: u32,
    /// The last uid.
    pub(super) last: u32,
}

/// The uids that the workers of a board have had, if any.
pub(crate) fn uids_of(root: &Root, board: BoardId) -> Result<Option<RangeInclusive<u32>>, Failure> {
    let uids = Uids::load(root)?;
    let ranges = uids.ranges.lock().unwrap_or_else(PoisonError::into_inner);
    Ok(ranges.get(&board.to_string()).map(|range| range.first..=range.last))
}

/// The ranges of all boards. Only the process that owns the root changes them.
#[derive(Debug)]
pub(super) struct Uids {
    dir: PathBuf,
    ranges: Mutex<BTreeMap<String, Range>>,
}

impl Uids {
    /// Reads the ranges of a root.
    pub(super) fn load(root: &Root) -> Result<Self, Failure> {
        let dir = root.dir().to_owned();
        let path = dir.join(FILE);
        let ranges = match std::fs::read(&path) {
            Ok(bytes) => serde_json::from_slice(&bytes).map_err(|e| {
                Failure::failed(format!("{} cannot be understood: {e}", path.display()))
                    .hint("restore it from a backup; without it two boards could give one uid to two workers")
            })?,
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => BTreeMap::new(),
            Err(e) => return Err(Failure::file("read", &path, &e)),
        };
        Ok(Uids { dir, ranges: Mutex::new(ranges) })
    }

    /// The range of a board; a new board gets the next free one, which is durable before it is used.
    pub(super) fn range(&self, board: BoardId, config: &WorkerConfig) -> Result<Range, Failure> {
        let mut ranges = self.ranges.lock().unwrap_or_else(PoisonError::into_inner);
        let key = board.to_string();
        if let Some(range) = ranges.get(&key) {
            return Ok(*range);
        }
        let range = next_range(&ranges, config)?;
        let mut extended = ranges.clone();
        extended.insert(key, range);
        write_json(&self.dir, FILE, &extended)
            .map_err(|e| Failure::file("write", &self.dir.join(FILE), &e))?;
        *ranges = extended;
        Ok(range)
    }
}

fn next_range(taken: &BTreeMap<String, Range>, config: &WorkerConfig) -> Result<Range, Failure> {
    // A sixteenth of the whole range: with the default one, sixteen boards of twelve million tasks each.
    let size = (config.uid_count / 16).max(1);
    let end = u64::from(config.first_uid) + u64::from(config.uid_count);
    let mut first = config.first_uid;
    while let Some(other) =
        taken.values().find(|other| other.first < first.saturating_add(size) && first <= other.last)
    {
        first = other.last.saturating_add(1);
    }
    if u64::from(first) + u64::from(size) > end {
        return Err(Failure::failed(format!(
            "the uids from worker.first_uid = {} on are used up: {} boards have theirs",
            config.first_uid,
            taken.len()
        ))
        .hint("raise worker.uid_count in supervisor.toml"));
    }
    Ok(Range { first, last: first + size - 1 })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::paths::RootChoice;

    fn board(n: u8) -> BoardId {
        format!("00000000-0000-0000-0000-0000000000{n:02x}").parse().unwrap()
    }

    #[test]
    fn boards_get_ranges_that_do_not_meet_and_keep_them() {
        let dir = tempfile::tempdir().unwrap();
        let choice = RootChoice { root: Some(dir.path().into()), ..RootChoice::default() };
        let root = choice.resolve(|_| None).unwrap();
        let config = WorkerConfig { first_uid: 5000, uid_count: 160, ..WorkerConfig::default() };
        let uids = Uids::load(&root).unwrap();
        let one = uids.range(board(1), &config).unwrap();
        let two = uids.range(board(2), &config).unwrap();
        assert_eq!((one.first, one.last, two.first, two.last), (5000, 5009, 5010, 5019));
        let again = Uids::load(&root).unwrap();
        assert_eq!(again.range(board(1), &config).unwrap(), one);
        let wider = WorkerConfig { first_uid: 5000, uid_count: 1600, ..config };
        assert_eq!(again.range(board(3), &wider).unwrap().first, 5020);
    }

    #[test]
    fn a_range_that_is_used_up_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let choice = RootChoice { root: Some(dir.path().into()), ..RootChoice::default() };
        let uids = Uids::load(&choice.resolve(|_| None).unwrap()).unwrap();
        let config = WorkerConfig { first_uid: 5000, uid_count: 64, ..WorkerConfig::default() };
        for n in 0..16 {
            uids.range(board(n), &config).unwrap();
        }
        assert!(uids.range(board(16), &config).unwrap_err().hint.is_some());
    }
}
