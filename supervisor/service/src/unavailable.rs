//! Boards that are not served: damaged boards, until the daemon ends, and boards that are temporarily taken out of
//! service.

use std::sync::{Arc, PoisonError, Weak};

use kernel::BoardName;
use tokio::sync::watch;
use tokio_util::task::TaskTracker;

use super::{BoardHandle, Service};
use base::exit::Code;
use base::failure::Failure;

/// A board that is out of service while this value lives. Its drop restores service, after success, an error, a panic
/// or an abandoned request alike.
#[derive(Debug)]
pub struct OutOfService {
    service: Arc<Service>,
    name: BoardName,
    /// Reason why the board was not served before.
    before: Option<Failure>,
    is_removed: bool,
    handle: Weak<BoardHandle>,
    /// None if the board was not open.
    gone: Option<watch::Receiver<()>>,
}

impl OutOfService {
    /// Waits until no other part holds the board open.
    pub async fn closed(&mut self) {
        let Some(gone) = &mut self.gone else { return };
        // No value is ever sent: the wait ends when the sender is dropped.
        while gone.changed().await.is_ok() {}
    }

    /// Records that the board is removed. Former problems say nothing about a later board of the same name.
    pub fn removed(mut self) {
        self.is_removed = true;
    }
}

impl Drop for OutOfService {
    fn drop(&mut self) {
        let service = &self.service;
        let mut boards = service.boards.lock().unwrap_or_else(PoisonError::into_inner);
        if !service.unavailable.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.name) {
            // The board was found damaged meanwhile, and stays refused.
            return;
        }
        let mut refused = service.refused.lock().unwrap_or_else(PoisonError::into_inner);
        let before = self.before.take().filter(|_| !self.is_removed);
        let is_served = before.is_none() && !self.is_removed;
        match before {
            Some(failure) => refused.insert(self.name.clone(), failure),
            None => refused.remove(&self.name),
        };
        drop(refused);
        if let Some(handle) = self.handle.upgrade() {
            handle.set_closing(false);
            boards.insert(self.name.clone(), handle);
        }
        drop(boards);
        if let Some(daemon) = service.daemon().filter(|_| is_served) {
            // The owner loop has dropped the board, and reads it again if it still exists.
            daemon.board_changed(&self.name);
        }
    }
}

impl Service {
    /// Refuses a board, with the reason for later requests.
    pub fn refuse(&self, name: BoardName, failure: Failure) {
        let failure = failure.not_served(&name);
        self.refused.lock().unwrap_or_else(PoisonError::into_inner).insert(name, failure);
    }

    /// Takes a board out of service for good, with the error for later requests.
    pub fn withdraw(&self, name: &BoardName, failure: Failure) {
        let mut boards = self.boards.lock().unwrap_or_else(PoisonError::into_inner);
        self.unavailable.lock().unwrap_or_else(PoisonError::into_inner).remove(name);
        self.refused.lock().unwrap_or_else(PoisonError::into_inner).insert(name.clone(), failure);
        if let Some(handle) = boards.remove(name) {
            handle.set_closing(true);
        }
    }

    /// Takes a board out of service until the returned value is dropped, with the error for requests made meanwhile.
    ///
    /// # Errors
    /// Another request has taken it out of service.
    pub fn take_out(self: &Arc<Self>, name: &BoardName, failure: Failure) -> Result<OutOfService, Failure> {
        let mut boards = self.boards.lock().unwrap_or_else(PoisonError::into_inner);
        if !self.unavailable.lock().unwrap_or_else(PoisonError::into_inner).insert(name.clone()) {
            return Err(Failure::new(Code::TryAgain, format!("the board `{name}` is being removed already"))
                .hint("supervisor boards list shows whether it is gone"));
        }
        let before =
            self.refused.lock().unwrap_or_else(PoisonError::into_inner).insert(name.clone(), failure);
        let handle = boards.remove(name);
        if let Some(handle) = &handle {
            handle.set_closing(true);
        }
        Ok(OutOfService {
            service: Arc::clone(self),
            name: name.clone(),
            before,
            is_removed: false,
            gone: handle.as_ref().map(|handle| handle.gone.subscribe()),
            handle: handle.as_ref().map(Arc::downgrade).unwrap_or_default(),
        })
    }

    /// Returns the started verbs, whose callers may have gone.
    pub fn started_verbs(&self) -> &TaskTracker {
        &self.started_verbs
    }
}
