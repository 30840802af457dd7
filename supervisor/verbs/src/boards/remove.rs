//! `remove-board`: closes a board without open runs and archives or deletes it.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use kernel::{BoardName, Clock as _, Readers, SystemClock};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use shim::rundir::{LockState, RunDir};

use super::details::require;
use api::command::Command;
use api::{Call, Verb, blocking, verb};
use base::exit::Code;
use base::failure::Failure;
use base::paths::{Root, make_dir};
use base::terminal::Screen;
use daemon::{Event, OwnerLink};

/// Time for the last readers of a board to finish. Callers that wait for events end at once.
const TIMEOUT: Duration = Duration::from_secs(5);

/// Remove a board from its root.
#[derive(Clone, Debug, clap::Args, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[command(
    about = "Remove a board; its files are kept unless --delete is given",
    after_help = "\
Examples:
  supervisor boards rm releases
  supervisor boards rm releases --delete"
)]
pub struct RemoveBoard {
    /// The board.
    pub slug: BoardName,
    /// True if its files are deleted as well.
    #[arg(long, help = "Delete it for good")]
    #[serde(default)]
    pub delete: bool,
}

#[derive(Debug, Serialize, Deserialize)]
pub struct RemovedBoard {
    pub slug: BoardName,
    /// True if its files were deleted instead of archived.
    pub deleted: bool,
    pub kept: Option<PathBuf>,
}

impl Verb for RemoveBoard {
    verb! { "remove-board": Operator, Write, on(None) => RemovedBoard }

    async fn run(self, call: Call) -> Result<RemovedBoard, Failure> {
        let service = call.service;
        self.refuse_default()?;
        require(service.root(), &self.slug)?;
        let slug = self.slug.clone();
        let being = Failure::new(Code::NotFound, format!("the board `{slug}` is being removed"))
            .hint("supervisor boards list shows the others");
        let mut out = service.take_out(&slug, being)?;
        // No new request reaches the board from here on. The daemon's owner loop knows the runs that were started
        // before, and refuses if one of them is live. On an error, `out` is dropped and the board is served again.
        if let Some(daemon) = OwnerLink::from_service(&service) {
            daemon.ask(|reply| Event::Forget(slug.clone(), reply)).await.flatten()?;
        }
        tokio::time::timeout(TIMEOUT, out.closed()).await.map_err(|_| {
            Failure::new(Code::TryAgain, format!("the board `{slug}` is still being read"))
                .hint("try again in a moment")
        })?;
        let root = Arc::clone(&service);
        let removed =
            blocking("the board was not removed", move || self.take_away(root.root())).await.flatten()?;
        out.removed();
        Ok(removed)
    }
}

impl Command for RemoveBoard {
    fn show(reply: &RemovedBoard, screen: &mut Screen) {
        let place = match &reply.kept {
            Some(kept) => format!("kept in {}", kept.display()),
            None => "deleted".to_owned(),
        };
        screen.line(format!("Removed board {}: {place}", reply.slug));
    }
}

impl RemoveBoard {
    fn refuse_default(&self) -> Result<(), Failure> {
        if self.slug == BoardName::default() {
            return Err(Failure::new(Code::Conflict, "the default board cannot be removed")
                .hint("archive its tasks instead"));
        }
        Ok(())
    }

    /// Archives or deletes the files of a closed board, unless a run is live. Blocking.
    pub(crate) fn take_away(self, root: &Root) -> Result<RemovedBoard, Failure> {
        self.refuse_default()?;
        let RemoveBoard { slug, delete } = self;
        refuse_live(root, &slug)?;
        let from = root.boards().join(slug.as_str());
        let fail = |e: std::io::Error| Failure::file("remove the board", &from, &e);
        let base = root.removed_boards();
        make_dir(&base, 0o700)?;
        // One rename hides the board, even if a later step fails.
        let kept = base.join(format!("{slug}-{}", SystemClock.now().as_micros()));
        std::fs::rename(&from, &kept).map_err(fail)?;
        let choice = root.board_choice();
        if std::fs::read_to_string(&choice).is_ok_and(|name| name.trim() == slug.as_str()) {
            std::fs::remove_file(&choice).map_err(fail)?;
        }
        if delete {
            std::fs::remove_dir_all(&kept).map_err(fail)?;
        }
        Ok(RemovedBoard { slug, deleted: delete, kept: (!delete).then_some(kept) })
    }
}

/// Refuses a board with an open run, or with a live worker. A worker may run without a daemon; it then holds the lock
/// of its run directory.
fn refuse_live(root: &Root, slug: &BoardName) -> Result<(), Failure> {
    let entries = std::fs::read_dir(root.runs(slug)).into_iter().flatten().flatten();
    let held = entries.into_iter().find(|entry| {
        let state = RunDir::open(&entry.path()).and_then(|run| run.lock_state());
        matches!(state, Ok(LockState::Held))
    });
    if let Some(entry) = held {
        let run = entry.file_name();
        return Err(Failure::new(
            Code::Conflict,
            format!("run {} of board `{slug}` has not ended", run.display()),
        )
        .hint("start a daemon, and reclaim or complete the task"));
    }
    let open = match Readers::open(&root.board(slug), Arc::new(SystemClock)) {
        // The board is intact and may have open runs, but cannot be read before its migration.
        Err(error @ kernel::OpenError::OlderSchema { .. }) => return Err(error.into()),
        // The runs of a damaged board cannot be read, and such a board must be removable.
        Err(_) => Vec::new(),
        Ok(readers) => readers.with(|view| view.open_runs()).unwrap_or_default(),
    };
    match open.first() {
        None => Ok(()),
        Some(run) => Err(Failure::new(
            Code::Conflict,
            format!("run {} of {} is open on board `{slug}`", run.id, run.task_id),
        )
        .hint(format!("supervisor --board {slug} reclaim {}", run.task_id))),
    }
}
