//! The starts that are under way, so that one can be given up before there is a shim to be asked.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio_util::sync::CancellationToken;

use super::key::TaskKey;

/// One token for each task that is being claimed and prepared.
#[derive(Debug, Default)]
pub(in crate::daemon) struct Starts(Mutex<BTreeMap<TaskKey, CancellationToken>>);

impl Starts {
    /// Notes that a start begins. There is one at a time for each task.
    pub(in crate::daemon) fn begin(&self, key: &TaskKey) -> CancellationToken {
        let token = CancellationToken::new();
        self.all().insert(key.clone(), token.clone());
        token
    }

    /// Gives a start up: what it waits for is ended. One that is over already is left alone.
    pub(in crate::daemon) fn give_up(&self, key: &TaskKey) {
        if let Some(token) = self.all().get(key) {
            token.cancel();
        }
    }

    /// Notes that a start is over, one way or the other.
    pub(in crate::daemon) fn end(&self, key: &TaskKey) {
        self.all().remove(key);
    }

    fn all(&self) -> MutexGuard<'_, BTreeMap<TaskKey, CancellationToken>> {
        // A thread that panicked with the lock had changed one entry, which is complete.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
