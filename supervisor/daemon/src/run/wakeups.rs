//! Wake-ups of live runs: a change of the board that concerns a run's agent wakes the run's task in the daemon.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

use super::key::TaskKey;

/// Wake-ups of the live runs whose agents take messages. A notification between two waits is kept for the next one.
#[derive(Clone, Debug, Default)]
pub(crate) struct Wakeups(Arc<Mutex<BTreeMap<TaskKey, Arc<Notify>>>>);

/// Wake-up of one run, registered until it is dropped.
#[derive(Debug)]
pub(super) struct Wakeup {
    registry: Wakeups,
    key: TaskKey,
    news: Arc<Notify>,
}

impl Wakeups {
    /// Notifies the live run of a task, if it is registered. Does not block.
    pub(crate) fn notify(&self, key: &TaskKey) {
        if let Some(news) = self.locked().get(key) {
            news.notify_one();
        }
    }

    /// Registers a run.
    pub(super) fn register(&self, key: &TaskKey) -> Wakeup {
        let news = Arc::new(Notify::new());
        self.locked().insert(key.clone(), Arc::clone(&news));
        Wakeup { registry: self.clone(), key: key.clone(), news }
    }

    fn locked(&self) -> MutexGuard<'_, BTreeMap<TaskKey, Arc<Notify>>> {
        // A thread that panicked while it held the lock had changed one entry, which is complete.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Wakeup {
    /// Waits for a notification. Cancel-safe: a notification is kept until it is received.
    pub(super) async fn notified(&self) {
        self.news.notified().await;
    }
}

impl Drop for Wakeup {
    fn drop(&mut self) {
        let mut all = self.registry.locked();
        // The next run of the task may have registered already.
        if all.get(&self.key).is_some_and(|news| Arc::ptr_eq(news, &self.news)) {
            all.remove(&self.key);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_notification_is_kept_until_it_is_received_and_a_wakeup_goes_with_its_run() {
        let wakeups = Wakeups::default();
        let key = TaskKey { board: "default".parse().unwrap(), task: "t_00000001".parse().unwrap() };
        wakeups.notify(&key);
        let wakeup = wakeups.register(&key);
        wakeups.notify(&key);
        wakeups.notify(&key);
        wakeup.notified().await;
        let next = wakeups.register(&key);
        drop(wakeup);
        wakeups.notify(&key);
        next.notified().await;
        drop(next);
        assert!(wakeups.locked().is_empty());
    }
}
