//! Ranges of worker uids of the boards. No two boards of a host ever share a uid, even in different roots.
//!
//! Files keep their owners over a restart of the host, so a board keeps its range forever, even if the configured
//! range changes. The ranges of all roots are in one ledger of the host (`ledger.rs`), which every daemon of the root
//! user uses.

mod ledger;

use std::collections::HashMap;
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use kernel::{BoardId, Counted, Workspace};
use serde::{Deserialize, Serialize};

use self::ledger::{Ledger, LiveUids, Owner, Reservation, Reservations, Stamp};
use base::exit::Code;
use base::failure::Failure;
use base::paths::Root;
use setup::config::WorkerConfig;
use setup::config::uid_map::{self, UidMap};

/// Largest range of a board, so that a host can serve many boards.
const MOST: u32 = 1 << 21;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Range {
    pub first: u32,
    pub last: u32,
}

impl Range {
    fn meets(self, other: Range) -> bool {
        self.first <= other.last && other.first <= self.last
    }
}

/// Returns the uids that workers of a board have had, if any. In a root of an ordinary user, workers share the user's
/// uid.
pub fn uids_of(
    root: &Root,
    board: BoardId,
    config: &WorkerConfig,
) -> Result<Option<RangeInclusive<u32>>, Failure> {
    if !nix::unistd::geteuid().is_root() {
        // An ordinary user cannot read the ledger either.
        return Ok(None);
    }
    let owner = Owner::for_board(root, board)?;
    let range = Ledger::at(&config.uid_ledger).read()?.range_of(&owner);
    Ok(range.map(|range| range.first..=range.last))
}

/// Returns the uid of a task, in the transaction that opens its run. A task in a scratch workspace has a uid of its
/// own.
pub fn own_uid(
    range: Option<Range>,
    board: &mut kernel::Board<'_>,
    task: &kernel::TaskId,
    workspace: &Workspace,
) -> Result<Option<u32>, kernel::Error> {
    match range {
        Some(range) if workspace.is_scratch() => board.allocate_uid(task, range.first, range.last).map(Some),
        _ => Ok(None),
    }
}

/// Returns the roots of this host that have assigned uids.
pub fn roots(config: &WorkerConfig) -> Result<Vec<PathBuf>, Failure> {
    let entries = Ledger::at(&config.uid_ledger).read()?;
    Ok(entries.iter().map(|entry| entry.owner.root().to_owned()).collect())
}

/// Ranges of a root's boards. Only the process that owns the root uses it.
#[derive(Debug)]
pub struct Uids {
    root: Root,
    known: Mutex<KnownRanges>,
}

/// Ranges that this process has read or assigned.
#[derive(Debug, Default)]
struct KnownRanges {
    ranges: HashMap<BoardId, Range>,
    /// Version of the ledger that contains them.
    ledger: Option<Stamp>,
}

impl KnownRanges {
    /// Returns the range of a board, if the ledger is unchanged since it was read.
    fn as_of(&self, board: BoardId, ledger: Option<Stamp>) -> Option<Range> {
        let is_same = ledger.is_some() && ledger == self.ledger;
        self.ranges.get(&board).copied().filter(|_| is_same)
    }
}

impl Uids {
    /// Makes the state without any range; ranges are looked up when the first worker needs one.
    pub fn new(root: &Root) -> Self {
        Uids { root: root.clone(), known: Mutex::default() }
    }

    /// Returns the cached range of a board, if the ledger is unchanged since it was read. Never waits.
    pub fn known(&self, board: BoardId, config: &WorkerConfig) -> Option<Range> {
        let known = self.known.try_lock().ok()?;
        known.as_of(board, Ledger::at(&config.uid_ledger).stamp())
    }

    /// Returns the range of a board. A new board gets the next free range, which is durable before it is used.
    pub fn range(&self, board: BoardId, config: &WorkerConfig) -> Result<Range, Failure> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let ledger = Ledger::at(&config.uid_ledger);
        if let Some(range) = known.as_of(board, ledger.stamp()) {
            return Ok(range);
        }
        let known_range = known.ranges.get(&board).copied();
        let given = self.enter(board, known_range, &ledger, config);
        // The ledger was changed by another root or damaged. The board keeps the range that this process assigned.
        let range = match (given, known_range) {
            (Ok(range), _) => range,
            (Err(failure), Some(range)) => {
                tracing::warn!(%board, error = %failure, "uid_ledger_not_usable");
                return Ok(range);
            }
            (Err(failure), None) => return Err(failure),
        };
        known.ledger = ledger.stamp();
        known.ranges.insert(board, range);
        Ok(range)
    }

    /// Finds the range of a board in the ledger, or enters it: the range that this process assigned before the ledger
    /// was lost, or a new one.
    fn enter(
        &self,
        board: BoardId,
        own: Option<Range>,
        ledger: &Ledger,
        config: &WorkerConfig,
    ) -> Result<Range, Failure> {
        refuse_unmapped(config, &UidMap::own())?;
        let owner = Owner::for_board(&self.root, board)?;
        ledger.change(|entries| give(entries, owner, own, config, LiveUids::read))
    }
}

/// Refuses a configured range that this process's user namespace lacks.
fn refuse_unmapped(config: &WorkerConfig, map: &UidMap) -> Result<(), Failure> {
    let whole = uid_map::Range { first: config.first_uid, count: config.uid_count };
    if map.covers(whole) {
        return Ok(());
    }
    Err(Failure::new(
        Code::Conflict,
        format!(
            "this container does not have the uids {} to {} (worker.first_uid, worker.uid_count)",
            whole.first,
            u64::from(whole.first) + u64::from(whole.count) - 1
        ),
    )
    .hint("use uids from /proc/self/uid_map, or leave both out to get a range that fits"))
}

/// Finds the range of a board, or assigns a range in which no process has a uid. Pure, except for `read_uids` and the
/// check for vanished roots.
fn give(
    entries: &mut Reservations,
    owner: Owner,
    own: Option<Range>,
    config: &WorkerConfig,
    read_uids: impl FnOnce() -> Result<LiveUids, Failure>,
) -> Result<Range, Failure> {
    if let Some(range) = entries.range_of(&owner) {
        return Ok(range);
    }
    let free = |entries: &Reservations, range: Range| !entries.iter().any(|entry| entry.range.meets(range));
    if let Some(range) = own.filter(|range| free(entries, *range)) {
        entries.push(Reservation { owner, range });
        return Ok(range);
    }
    let live = read_uids()?;
    let mut range = next_range(entries, config, &live);
    if range.is_none() {
        // Uids of vanished roots are reused only if there are no others.
        entries.forget_vanished(&live);
        range = next_range(entries, config, &live);
    }
    let range = range.ok_or_else(|| used_up(entries, config))?;
    entries.push(Reservation { owner, range });
    Ok(range)
}

fn next_range(entries: &Reservations, config: &WorkerConfig, live: &LiveUids) -> Option<Range> {
    // At most a sixteenth of the whole range: with the default range, 95 boards of two million tasks each.
    let size = (config.uid_count / 16).clamp(1, MOST);
    let end = u64::from(config.first_uid) + u64::from(config.uid_count);
    let mut first = config.first_uid;
    loop {
        let range = Range { first, last: first.saturating_add(size - 1) };
        if u64::from(first) + u64::from(size) > end {
            return None;
        }
        let taken = entries.iter().find(|entry| entry.range.meets(range)).map(|entry| entry.range.last);
        match taken.or_else(|| live.highest_in(range)) {
            Some(last) => first = last.saturating_add(1),
            None => return Some(range),
        }
    }
}

fn used_up(entries: &Reservations, config: &WorkerConfig) -> Failure {
    Failure::new(
        Code::Conflict,
        format!(
            "the uids from worker.first_uid = {} on are used up: {} of this host have theirs ({})",
            config.first_uid,
            Counted(entries.iter().count(), "board"),
            config.uid_ledger.display()
        ),
    )
    .hint("raise worker.uid_count in supervisor.toml")
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use base::paths::RootChoice;

    fn board(n: u8) -> BoardId {
        format!("00000000-0000-0000-0000-0000000000{n:02x}").parse().unwrap()
    }

    fn root(dir: &Path) -> Root {
        std::fs::create_dir_all(dir).unwrap();
        let choice = RootChoice { root: Some(dir.into()), ..RootChoice::default() };
        choice.resolve(|_| None).unwrap()
    }

    fn config(dir: &Path, count: u32) -> WorkerConfig {
        let uid_ledger = dir.join("ledger");
        WorkerConfig { first_uid: 5000, uid_count: count, uid_ledger, ..WorkerConfig::default() }
    }

    #[test]
    fn boards_get_ranges_that_do_not_meet_and_keep_them() {
        let dir = tempfile::tempdir().unwrap();
        let (root, config) = (root(&dir.path().join("r")), config(dir.path(), 160));
        let uids = Uids::new(&root);
        let one = uids.range(board(1), &config).unwrap();
        let two = uids.range(board(2), &config).unwrap();
        assert_eq!((one.first, one.last, two.first, two.last), (5000, 5009, 5010, 5019));
        assert_eq!(uids.known(board(2), &config), Some(two));
        let again = Uids::new(&root);
        assert_eq!(again.known(board(1), &config), None, "it was not asked for yet");
        assert_eq!(again.range(board(1), &config).unwrap(), one);
        assert_eq!(uids.known(board(1), &config), Some(one));
        let wider = WorkerConfig { uid_count: 1600, ..config.clone() };
        assert_eq!(again.range(board(3), &wider).unwrap().first, 5020);
        let had = nix::unistd::geteuid().is_root().then_some(5010..=5019);
        assert_eq!(uids_of(&root, board(2), &config).unwrap(), had);
    }

    #[test]
    fn two_roots_of_a_host_never_have_the_same_uids_even_where_one_is_a_copy() {
        let dir = tempfile::tempdir().unwrap();
        let config = config(dir.path(), 160);
        let ranges = ["a", "copy-of-a"].map(|name| {
            let root = root(&dir.path().join(name));
            Uids::new(&root).range(board(1), &config).unwrap()
        });
        assert!(!ranges[0].meets(ranges[1]), "{ranges:?}");
    }

    #[test]
    fn a_root_that_was_moved_keeps_its_uids() {
        let dir = tempfile::tempdir().unwrap();
        let config = config(dir.path(), 160);
        let before = Uids::new(&root(&dir.path().join("a"))).range(board(1), &config).unwrap();
        std::fs::rename(dir.path().join("a"), dir.path().join("b")).unwrap();
        assert_eq!(Uids::new(&root(&dir.path().join("b"))).range(board(1), &config).unwrap(), before);
    }

    #[test]
    fn a_range_that_is_used_up_is_refused_and_that_of_a_root_that_is_gone_is_given_again() {
        let dir = tempfile::tempdir().unwrap();
        let (root, config) = (root(&dir.path().join("r")), config(dir.path(), 64));
        let uids = Uids::new(&root);
        for n in 0..16 {
            uids.range(board(n), &config).unwrap();
        }
        assert!(uids.range(board(16), &config).unwrap_err().hint.is_some());
        std::fs::remove_dir_all(root.dir()).unwrap();
        let other = self::root(&dir.path().join("other"));
        assert_eq!(Uids::new(&other).range(board(16), &config).unwrap().first, 5000);
    }

    #[test]
    fn a_range_in_which_a_process_lives_is_given_to_nobody() {
        let dir = tempfile::tempdir().unwrap();
        let own = nix::unistd::geteuid().as_raw();
        let config = WorkerConfig { first_uid: own, ..config(dir.path(), 160) };
        let range = Uids::new(&root(&dir.path().join("r"))).range(board(1), &config).unwrap();
        assert!(range.first > own, "{range:?}");
    }

    #[test]
    fn what_was_given_out_is_entered_again_where_the_ledger_is_lost_and_stays_where_it_is_spoilt() {
        let dir = tempfile::tempdir().unwrap();
        let config = config(dir.path(), 160);
        let [one, other] = ["a", "b"].map(|name| Uids::new(&root(&dir.path().join(name))));
        let range = one.range(board(1), &config).unwrap();
        std::fs::remove_file(config.uid_ledger.join("ranges.json")).unwrap();
        assert_eq!(one.known(board(1), &config), None, "the ledger has to be written anew first");
        assert_eq!(one.range(board(1), &config).unwrap(), range);
        assert!(!other.range(board(1), &config).unwrap().meets(range));
        std::fs::write(config.uid_ledger.join("ranges.json"), "{").unwrap();
        assert_eq!(one.range(board(1), &config).unwrap(), range);
        assert!(one.range(board(2), &config).is_err());
    }

    #[test]
    fn a_ledger_that_cannot_be_understood_gives_no_uids() {
        let dir = tempfile::tempdir().unwrap();
        let (root, config) = (root(&dir.path().join("r")), config(dir.path(), 160));
        Uids::new(&root).range(board(1), &config).unwrap();
        let file = std::fs::read_dir(&config.uid_ledger).unwrap().flatten().find(|e| e.file_name() != "lock");
        std::fs::write(file.unwrap().path(), "{").unwrap();
        let failure = Uids::new(&root).range(board(2), &config).unwrap_err();
        assert!(failure.message.contains("cannot be understood") && failure.hint.is_some(), "{failure}");
    }
}
