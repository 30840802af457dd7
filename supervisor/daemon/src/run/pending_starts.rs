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
    /// Records that a start begins, and returns its token. A task has at most one start at a time.
    pub(crate) fn begin(&self, key: &TaskKey) -> CancellationToken {
        let token = CancellationToken::new();
        self.all().insert(key.clone(), token.clone());
        token
    }

    /// Gives up the start of a task by cancelling its waits. Does nothing if the start is over.
    pub(crate) fn give_up(&self, key: &TaskKey) {
        if let Some(token) = self.all().get(key) {
            token.cancel();
        }
    }

    /// Records that a start is over, with any result.
    pub(crate) fn end(&self, key: &TaskKey) {
        self.all().remove(key);
    }

    /// Records the result of a claim. Returns true if it failed, and the claim before it did not fail for the same reason:
    /// on a full disk a claim fails each second, which is logged once.
    pub(crate) fn is_new_trouble(&self, why: Option<&str>) -> bool {
        let mut trouble = self.trouble.lock().unwrap_or_else(PoisonError::into_inner);
        let is_new = why.is_some() && trouble.as_deref() != why;
        *trouble = why.map(str::to_owned);
        is_new
    }

    fn all(&self) -> MutexGuard<'_, BTreeMap<TaskKey, CancellationToken>> {
        // Each change of the map is a single call, so the map is consistent even if a thread panicked with the lock.
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
