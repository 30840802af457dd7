//! Wake-ups of live runs: a change of the board that concerns a run's agent wakes the run's task in the daemon.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

use super::key::TaskKey;

/// Wake-ups of the live runs whose agents take messages. A notification between two waits is kept for the next one.
#[derive(Clone, Debug, Default)]
pub(crate) struct Bells(Arc<Mutex<BTreeMap<TaskKey, Arc<Notify>>>>);

/// Wake-up of one run, registered until it is dropped.
#[derive(Debug)]
pub(super) struct Bell {
    bells: Bells,
    key: TaskKey,
    news: Arc<Notify>,
}

impl Bells {
    /// Notifies the live run of a task, if it is registered. Does not block.
    pub(crate) fn ring(&self, key: &TaskKey) {
        if let Some(news) = self.locked().get(key) {
            news.notify_one();
        }
    }

    /// Registers a run.
    pub(super) fn hang(&self, key: &TaskKey) -> Bell {
        let news = Arc::new(Notify::new());
        self.locked().insert(key.clone(), Arc::clone(&news));
        Bell { bells: self.clone(), key: key.clone(), news }
    }

    fn locked(&self) -> MutexGuard<'_, BTreeMap<TaskKey, Arc<Notify>>> {
        // A thread that panicked while it held the lock had changed one entry, which is complete.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Bell {
    /// Waits for a notification. Cancel-safe: a notification is kept until it is received.
    pub(super) async fn rung(&self) {
        self.news.notified().await;
    }
}

impl Drop for Bell {
    fn drop(&mut self) {
        let mut all = self.bells.locked();
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
    async fn a_ring_is_kept_until_it_is_heard_and_a_bell_goes_with_its_run() {
        let bells = Bells::default();
        let key = TaskKey { board: "default".parse().unwrap(), task: "t_00000001".parse().unwrap() };
        bells.ring(&key);
        let bell = bells.hang(&key);
        bells.ring(&key);
        bells.ring(&key);
        bell.rung().await;
        let next = bells.hang(&key);
        drop(bell);
        bells.ring(&key);
        next.rung().await;
        drop(next);
        assert!(bells.locked().is_empty());
    }
}
