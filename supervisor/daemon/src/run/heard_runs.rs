//! Runs whose shims this daemon hears of, by the names that the notifications of a shim have. A notification then needs no
//! search of all boards.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use kernel::{BoardId, RunId};
use tokio::sync::Notify;

use super::key::TaskKey;

/// Names of a run in a notification.
type Names = (String, RunId);

/// A run that this daemon has launched.
#[derive(Debug)]
pub(super) struct HeardRun {
    pub(super) key: TaskKey,
    /// Notified when its command has started.
    pub(super) started: Notify,
}

/// The runs that this daemon has launched and that live.
#[derive(Clone, Debug, Default)]
pub(crate) struct HeardRuns(Arc<Mutex<HashMap<Names, Arc<HeardRun>>>>);

/// Entry of a run, removed when this is dropped.
#[derive(Debug)]
pub(crate) struct Entry {
    registry: HeardRuns,
    names: Names,
    run: Arc<HeardRun>,
}

impl Entry {
    /// Waits for the notification that the command has started. Cancel-safe: a notification is kept until it is received.
    pub(super) async fn started(&self) {
        self.run.started.notified().await;
    }
}

impl HeardRuns {
    /// Adds a run.
    pub(super) fn add(&self, board: BoardId, id: RunId, key: TaskKey) -> Entry {
        let (names, run) = ((board.to_string(), id), Arc::new(HeardRun { key, started: Notify::new() }));
        self.locked().insert(names.clone(), Arc::clone(&run));
        Entry { registry: self.clone(), names, run }
    }

    /// Returns the run of a notification; none if this daemon has not launched it.
    pub(super) fn find(&self, board: &str, run: RunId) -> Option<Arc<HeardRun>> {
        self.locked().get(&(board.to_owned(), run)).cloned()
    }

    fn locked(&self) -> MutexGuard<'_, HashMap<Names, Arc<HeardRun>>> {
        // A thread that panicked while it held the lock had changed one entry, which is complete.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Entry {
    fn drop(&mut self) {
        self.registry.locked().remove(&self.names);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_notification_finds_a_launched_run_until_that_is_over() {
        let runs = HeardRuns::default();
        let board: BoardId = "00000000-0000-0000-0000-000000000001".parse().unwrap();
        let key = TaskKey { board: "default".parse().unwrap(), task: "t_00000001".parse().unwrap() };
        let entry = runs.add(board, RunId(7), key.clone());
        let heard = runs.find(&board.to_string(), RunId(7)).unwrap();
        assert_eq!(heard.key, key);
        assert!(runs.find(&board.to_string(), RunId(8)).is_none());
        // A notification that comes before the run waits for it is kept.
        heard.started.notify_one();
        entry.started().await;
        drop(entry);
        assert!(runs.find(&board.to_string(), RunId(7)).is_none());
    }
}
