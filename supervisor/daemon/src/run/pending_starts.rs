//! Starts in progress, each of which can be given up before it has a shim.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio_util::sync::CancellationToken;

use super::key::TaskKey;

/// Cancellation tokens of the tasks that are being claimed and prepared.
#[derive(Debug, Default)]
pub(crate) struct PendingStarts {
    tokens: Mutex<BTreeMap<TaskKey, CancellationToken>>,
    /// Reason of the last failed claim; none after a success.
    trouble: Mutex<Option<String>>,
}

impl PendingStarts {
    /// Records that a start begins. A task has at most one.
    pub(crate) fn begin(&self, key: &TaskKey) -> CancellationToken {
        let token = CancellationToken::new();
        self.all().insert(key.clone(), token.clone());
        token
    }

    /// Gives up a start, and cancels its waits. Has no effect on a finished one.
    pub(crate) fn give_up(&self, key: &TaskKey) {
        if let Some(token) = self.all().get(key) {
            token.cancel();
        }
    }

    /// Records that a start is over, in any way.
    pub(crate) fn end(&self, key: &TaskKey) {
        self.all().remove(key);
    }

    /// Records the result of a claim. Returns true if it failed for another reason than the last one: a full disk fails
    /// one each second, and is logged once.
    pub(crate) fn is_new_trouble(&self, why: Option<&str>) -> bool {
        let mut trouble = self.trouble.lock().unwrap_or_else(PoisonError::into_inner);
        let is_new = why.is_some() && trouble.as_deref() != why;
        *trouble = why.map(str::to_owned);
        is_new
    }

    fn all(&self) -> MutexGuard<'_, BTreeMap<TaskKey, CancellationToken>> {
        // A thread that panicked while it held the lock had changed one entry, which is complete.
        self.tokens.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trouble_is_new_where_it_is_another_one_or_was_over() {
        let pending = PendingStarts::default();
        let news = [Some("full"), Some("full"), Some("closed"), Some("full"), None, Some("full")];
        let news = news.map(|why| pending.is_new_trouble(why));
        assert_eq!(news, [true, false, true, true, false, true]);
    }
}
