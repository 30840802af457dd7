//! The bells of live runs: a change of the board that concerns the agent of a run rings its bell, and the run's own task looks.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

use super::key::TaskKey;

/// One bell for each live run whose agent takes messages. A ring that nobody hears yet is heard at the next wait.
#[derive(Clone, Debug, Default)]
pub(crate) struct Bells(Arc<Mutex<BTreeMap<TaskKey, Arc<Notify>>>>);

/// The bell of one run, as long as that lives.
#[derive(Debug)]
pub(super) struct Bell {
    bells: Bells,
    key: TaskKey,
    news: Arc<Notify>,
}

impl Bells {
    /// Rings for the live run of a task, where it has a bell. Waits for nothing.
    pub(crate) fn ring(&self, key: &TaskKey) {
        if let Some(news) = self.locked().get(key) {
            news.notify_one();
        }
    }

    /// Hangs up the bell of a run.
    pub(super) fn hang(&self, key: &TaskKey) -> Bell {
        let news = Arc::new(Notify::new());
        self.locked().insert(key.clone(), Arc::clone(&news));
        Bell { bells: self.clone(), key: key.clone(), news }
    }

    fn locked(&self) -> MutexGuard<'_, BTreeMap<TaskKey, Arc<Notify>>> {
        // A thread that panicked with the lock had changed one entry, which is complete.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Bell {
    /// Waits until it rings. Cancel-safe: a ring is kept until it is heard.
    pub(super) async fn rung(&self) {
        self.news.notified().await;
    }
}

impl Drop for Bell {
    fn drop(&mut self) {
        let mut all = self.bells.locked();
        // The next run of the task may have its own already.
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
