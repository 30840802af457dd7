//! Collects a board's leftovers in short steps, which a cursor continues.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use kernel::{Holder, RunId, TaskId, Timestamp};
use workspace::Loss;

use super::{CollectResult, Item, Kind, Owner, Scratch, Sweep, has_scratch, logs, runs, sessions, worktrees};
use base::failure::Failure;
use base::paths::Root;
use host::uids::uids_of;
use service::{BoardHandle, Service};

/// Events folded in one transaction; other writes wait for it.
const FOLD: u32 = 500;
/// Stored replies deleted in one transaction.
const REPLIES: u32 = 1000;
/// Ledger rows deleted in one transaction.
const LEDGER: u32 = 1000;
/// Tasks read at once.
const TASKS: u32 = 100;

#[derive(Clone, Debug)]
pub struct Ages {
    /// Logs of runs that ended before this time are removed.
    pub logs: Timestamp,
    /// Replies stored before this time are removed.
    pub replies: Timestamp,
    /// Ledger rows before this calendar day are removed.
    pub ledger: String,
    /// Events before this time are folded; none keeps them all.
    pub events: Option<Timestamp>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cursor {
    stage: usize,
    after: String,
}

impl std::fmt::Display for Cursor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:{}", self.stage, self.after)
    }
}

impl std::str::FromStr for Cursor {
    type Err = Failure;

    fn from_str(text: &str) -> Result<Self, Failure> {
        let wrong =
            || Failure::usage(format!("{text:?} is not a valid cursor")).hint("leave it out to start over");
        let (stage, after) = text.split_once(':').ok_or_else(wrong)?;
        let stage = stage.parse().ok().filter(|stage| *stage < STAGES.len()).ok_or_else(wrong)?;
        Ok(Cursor { stage, after: after.to_owned() })
    }
}

/// Kinds of leftovers in the order of collection.
const STAGES: [Kind; 10] = [
    Kind::Workspace,
    Kind::Worktree,
    Kind::Log,
    Kind::RunDirectory,
    Kind::Home,
    Kind::Sessions,
    Kind::Attachment,
    Kind::Replies,
    Kind::Ledger,
    Kind::Events,
];

#[derive(Debug)]
pub struct Batch {
    /// Removed items, and items that stay with their reasons.
    pub items: Vec<Item>,
    /// Cursor to continue from; none at the end.
    pub next: Option<Cursor>,
}

#[derive(Debug)]
pub struct Collection {
    pub service: Arc<Service>,
    pub board: Arc<BoardHandle>,
    pub sweep: Sweep,
    /// Age limits.
    pub ages: Ages,
    pub until: Instant,
}

impl Collection {
    /// Continues from a cursor. Blocking.
    pub fn go_on(&self, from: Cursor) -> Result<Batch, Failure> {
        let mut items = Vec::new();
        let Cursor { mut stage, mut after } = from;
        while let Some(kind) = STAGES.get(stage) {
            let rest = match kind {
                Kind::Workspace => self.workspaces(&after, &mut items)?,
                Kind::Worktree => self.worktrees(&after, &mut items)?,
                Kind::Log => self.logs(&after, &mut items)?,
                Kind::RunDirectory => self.run_directories(&after, &mut items)?,
                Kind::Home => self.homes(&after, &mut items)?,
                Kind::Sessions => self.sessions(&after, &mut items)?,
                Kind::Attachment => self.attachments(&mut items)?,
                Kind::Replies => self.replies(&mut items)?,
                Kind::Ledger => self.ledger(&mut items)?,
                Kind::Events => self.events(&mut items)?,
            };
            if let Some(after) = rest {
                return Ok(Batch { items, next: Some(Cursor { stage, after }) });
            }
            stage += 1;
            after = String::new();
        }
        Ok(Batch { items, next: None })
    }

    fn root(&self) -> &Root {
        self.service.root()
    }

    fn is_late(&self) -> bool {
        Instant::now() >= self.until
    }

    /// Calls `step` for each name in a directory. Returns the last name if time ran out before the end.
    fn each(
        &self,
        dir: &Path,
        after: &str,
        mut step: impl FnMut(&str, &Path) -> Result<(), Failure>,
    ) -> Result<Option<String>, Failure> {
        let entries = match std::fs::read_dir(dir) {
            Ok(entries) => entries,
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(e) => return Err(Failure::file("list", dir, &e)),
        };
        let mut names: Vec<_> = entries.flatten().map(|entry| entry.file_name()).collect();
        names.retain(|name| name.to_string_lossy().as_ref() > after);
        names.sort();
        for name in names {
            let shown = name.to_string_lossy();
            step(&shown, &dir.join(&name))?;
            if self.is_late() {
                return Ok(Some(shown.into_owned()));
            }
        }
        Ok(None)
    }

    fn workspaces(&self, after: &str, items: &mut Vec<Item>) -> Result<Option<String>, Failure> {
        let needed = self.board.readers().with(|view| view.directories_in_use())?;
        let needed: BTreeSet<PathBuf> = needed.into_iter().map(PathBuf::from).collect();
        let former = uids_of(self.root(), self.board.id(), &self.service.config().worker)?;
        self.each(&self.root().workspaces(self.board.name()), after, |name, path| {
            let Ok(id) = TaskId::in_full(name) else {
                items.extend(foreign(Kind::Workspace, path, None, "the supervisor did not make it"));
                return Ok(());
            };
            let (task, known) =
                self.board.readers().with(|view| Ok((view.task(&id)?, view.has_had(&id)?)))?;
            let owner = match task {
                Some(task) if task.status != kernel::Status::Archived => return Ok(()),
                Some(task) if !has_scratch(&task) => {
                    items.extend(foreign(Kind::Workspace, path, Some(&id), "its task worked elsewhere"));
                    return Ok(());
                }
                Some(task) => Owner::of_workspace(task.worker_uid),
                None if !known => {
                    let why = "no task of this board has had this id";
                    items.extend(foreign(Kind::Workspace, path, Some(&id), why));
                    return Ok(());
                }
                // The row of a deleted task is gone, and with it the uid of its worker.
                None if nix::unistd::geteuid().is_root() => {
                    former.clone().map_or(Owner::Nobody, Owner::Former)
                }
                None => Owner::of_workspace(None),
            };
            let scratch =
                Scratch { root: self.root(), board: self.board.name(), task: &id, owner, needed: &needed };
            items.extend(Item::for_path(Kind::Workspace, path, Some(&id), scratch.collect(self.sweep)));
            Ok(())
        })
    }

    fn worktrees(&self, after: &str, items: &mut Vec<Item>) -> Result<Option<String>, Failure> {
        let mut after = after.to_owned();
        loop {
            let tasks = self.board.readers().with(|view| view.archived_worktrees(&after, TASKS))?;
            let Some(last) = tasks.last().map(|task| task.id.clone()) else { return Ok(None) };
            for task in tasks {
                let Some((path, worktree)) = worktrees::worktree_of(&task) else { continue };
                // Most are gone already, and a job process costs more than this check.
                if path.symlink_metadata().is_ok() {
                    let runs = self.board.readers().with(|view| view.runs(&task.id))?;
                    let terms = worktrees::CollectTerms { sweep: self.sweep, loss: Loss::Refuse };
                    let (root, board) = (self.root(), self.board.name());
                    let result = worktrees::collect(worktree, &path, &runs, root, board, terms);
                    items.extend(Item::for_path(Kind::Worktree, &path, Some(&task.id), result));
                }
                if self.is_late() {
                    return Ok(Some(task.id.to_string()));
                }
            }
            after = last.to_string();
        }
    }

    fn logs(&self, after: &str, items: &mut Vec<Item>) -> Result<Option<String>, Failure> {
        self.each(&self.root().logs(self.board.name()), after, |name, path| {
            let Ok(id) = TaskId::in_full(name) else {
                items.extend(foreign(Kind::Log, path, None, "the supervisor did not make it"));
                return Ok(());
            };
            let (task, known, runs) = self
                .board
                .readers()
                .with(|view| Ok((view.task(&id)?, view.has_had(&id)?, view.runs(&id)?)))?;
            match task {
                Some(task) => {
                    items.extend(logs::of_task(path, &id, &runs, self.ages.logs, self.sweep));
                    if self.sweep == Sweep::Remove && task.status == kernel::Status::Archived {
                        // Fails while the directory has logs; no further run of the task writes to it.
                        std::fs::remove_dir(path).ok();
                    }
                }
                None if known => {
                    let result = logs::of_deleted(self.root(), self.board.name(), &id, self.sweep);
                    items.extend(Item::for_path(Kind::Log, path, Some(&id), result));
                }
                None => {
                    let why = "no task of this board has had this id";
                    items.extend(foreign(Kind::Log, path, Some(&id), why));
                }
            }
            Ok(())
        })
    }

    fn run_directories(&self, after: &str, items: &mut Vec<Item>) -> Result<Option<String>, Failure> {
        self.each(&self.root().runs(self.board.name()), after, |name, path| {
            let number = name.strip_prefix('.').and_then(|rest| rest.strip_suffix(".gone")).unwrap_or(name);
            let result = match number.parse().map(RunId) {
                Err(_) => CollectResult::Foreign("the supervisor did not make it".to_owned()),
                Ok(id) if name == number && self.is_open(id)? => CollectResult::Absent,
                Ok(_) => runs::directory(path, self.sweep),
            };
            items.extend(Item::for_path(Kind::RunDirectory, path, None, result));
            Ok(())
        })
    }

    fn homes(&self, after: &str, items: &mut Vec<Item>) -> Result<Option<String>, Failure> {
        let homes = self.root().run_home(self.board.name(), RunId(0));
        let homes = homes.parent().unwrap_or(&homes).to_owned();
        self.each(&homes, after, |name, path| {
            let Ok(id) = name.parse().map(RunId) else {
                items.extend(foreign(Kind::Home, path, None, "the supervisor did not make it"));
                return Ok(());
            };
            // A run that continues without its row still has a run directory.
            let run_dir = self.root().run_dir(self.board.name(), id);
            let is_kept = match self.sweep {
                Sweep::Look => {
                    matches!(
                        runs::directory(&run_dir, Sweep::Look),
                        CollectResult::Foreign(_) | CollectResult::Stuck(_)
                    )
                }
                Sweep::Remove => run_dir.exists(),
            };
            if is_kept || self.is_open(id)? {
                return Ok(());
            }
            let run = self.board.readers().with(|view| view.run(id))?;
            items.extend(Item::for_path(Kind::Home, path, None, runs::home(path, run.as_ref(), self.sweep)));
            Ok(())
        })
    }

    fn sessions(&self, after: &str, items: &mut Vec<Item>) -> Result<Option<String>, Failure> {
        let (root, board) = (self.root(), self.board.name());
        self.each(&root.sessions(board), after, |name, path| {
            let Ok(id) = TaskId::in_full(name) else {
                items.extend(foreign(Kind::Sessions, path, None, "the supervisor did not make it"));
                return Ok(());
            };
            let (task, known) =
                self.board.readers().with(|view| Ok((view.task(&id)?, view.has_had(&id)?)))?;
            let result = match task {
                Some(task) if task.status != kernel::Status::Archived => return Ok(()),
                None if !known => CollectResult::Foreign("no task of this board has had this id".to_owned()),
                Some(_) | None => sessions::of_task(root, board, &id, self.sweep),
            };
            items.extend(Item::for_path(Kind::Sessions, path, Some(&id), result));
            Ok(())
        })
    }

    fn attachments(&self, items: &mut Vec<Item>) -> Result<Option<String>, Failure> {
        for (path, bytes) in self.board.sweep_blobs(&kernel::SweepScope::All, self.sweep)?.files {
            let result = CollectResult::Gone(workspace::Size { bytes, entries: 1 });
            items.extend(Item::for_path(Kind::Attachment, &path, None, result));
        }
        Ok(None)
    }

    fn is_open(&self, id: RunId) -> Result<bool, Failure> {
        let run = self.board.readers().with(|view| view.run(id))?;
        Ok(run.is_some_and(|run| run.ended_at.is_none() && run.holder == Holder::Supervisor))
    }

    fn replies(&self, items: &mut Vec<Item>) -> Result<Option<String>, Failure> {
        let before = self.ages.replies;
        let mut gone = (0, 0);
        let rest = loop {
            // The search reads the whole table; only the removal blocks other writes.
            let (found, bytes) = self.board.readers().with(|view| view.old_replies(before, self.page()))?;
            let count = found.len();
            gone = (gone.0 + count as u64, gone.1 + bytes);
            if self.sweep == Sweep::Look || count == 0 {
                break None;
            }
            self.board.writer()?.call(move |board| board.forget_replies(&found))?;
            if self.is_late() {
                break Some(String::new());
            }
        };
        items.extend(Item::rows(Kind::Replies, "replies that nobody asks for again", gone.0, gone.1));
        Ok(rest)
    }

    fn ledger(&self, items: &mut Vec<Item>) -> Result<Option<String>, Failure> {
        let before = &self.ages.ledger;
        let (mut gone, mut rest) = (0, None);
        if self.sweep == Sweep::Look {
            gone = self.board.readers().with(|view| view.ledger_before(before))?;
        } else {
            loop {
                let day = before.clone();
                let count = self.board.writer()?.call(move |board| board.forget_ledger(&day, LEDGER))?;
                gone += count;
                if count == 0 {
                    break;
                }
                if self.is_late() {
                    rest = Some(String::new());
                    break;
                }
            }
        }
        items.extend(Item::rows(Kind::Ledger, "rows of the ledger", gone, 0));
        Ok(rest)
    }

    fn page(&self) -> u32 {
        if self.sweep == Sweep::Look { u32::MAX } else { REPLIES }
    }

    fn events(&self, items: &mut Vec<Item>) -> Result<Option<String>, Failure> {
        let Some(before) = self.ages.events else { return Ok(None) };
        let mut gone = kernel::Folded::default();
        let mut rest = None;
        if self.sweep == Sweep::Look {
            gone = self.board.readers().with(|view| view.foldable(before))?;
        } else {
            loop {
                let folded = self.board.writer()?.call(move |board| board.fold_events(before, FOLD))?;
                base::failpoint::pass("after-fold");
                if folded.events == 0 {
                    break;
                }
                gone.events += folded.events;
                gone.bytes += folded.bytes;
                if self.is_late() {
                    rest = Some(String::new());
                    break;
                }
            }
        }
        items.extend(Item::rows(Kind::Events, "events, folded into a snapshot", gone.events, gone.bytes));
        Ok(rest)
    }
}

fn foreign(kind: Kind, path: &Path, task: Option<&TaskId>, why: &str) -> Option<Item> {
    Item::for_path(kind, path, task, CollectResult::Foreign(why.to_owned()))
}
