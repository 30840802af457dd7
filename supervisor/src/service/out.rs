//! Boards that are not served: one that is damaged, until the daemon ends, and one that is being taken away, as long as that takes.

use std::sync::{Arc, PoisonError, Weak};

use kernel::BoardName;
use tokio::sync::watch;
use tokio_util::task::TaskTracker;

use super::{BoardHandle, Service};
use crate::exit::Code;
use crate::failure::Failure;

/// A board that is out of service as long as this lives. Whatever ends it, an error, a panic or a request that is given up, the board
/// is served again, or one of its name.
#[derive(Debug)]
pub(crate) struct OutOfService {
    service: Arc<Service>,
    name: BoardName,
    /// Why it was not served before.
    before: Option<Failure>,
    is_removed: bool,
    handle: Weak<BoardHandle>,
    /// None where nobody had it open.
    gone: Option<watch::Receiver<()>>,
}

impl OutOfService {
    /// Returns when nobody has the board open any more.
    pub(crate) async fn closed(&mut self) {
        let Some(gone) = &mut self.gone else { return };
        // Nothing is ever sent: the wait ends with the sender.
        while gone.changed().await.is_ok() {}
    }

    /// The board is gone for good: what was wrong with it says nothing about the next one of its name.
    pub(crate) fn removed(mut self) {
        self.is_removed = true;
    }
}

impl Drop for OutOfService {
    fn drop(&mut self) {
        let service = &self.service;
        let mut boards = service.boards.lock().unwrap_or_else(PoisonError::into_inner);
        if !service.out.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.name) {
            // It was found to be damaged meanwhile, and stays refused.
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
            // Its owner loop has forgotten the board, and looks at it again where it is still there.
            daemon.board_changed(&self.name);
        }
    }
}

impl Service {
    /// Serves a board no more, and tells everyone why.
    pub(crate) fn refuse(&self, name: BoardName, failure: Failure) {
        let failure = failure.not_served(&name);
        self.refused.lock().unwrap_or_else(PoisonError::into_inner).insert(name, failure);
    }

    /// Takes a board out of service for good, with the error for later requests.
    pub(crate) fn withdraw(&self, name: &BoardName, failure: Failure) {
        let mut boards = self.boards.lock().unwrap_or_else(PoisonError::into_inner);
        self.out.lock().unwrap_or_else(PoisonError::into_inner).remove(name);
        self.refused.lock().unwrap_or_else(PoisonError::into_inner).insert(name.clone(), failure);
        if let Some(handle) = boards.remove(name) {
            handle.set_closing(true);
        }
    }

    /// Takes a board out of service until the return value is dropped, with the error for requests made meanwhile.
    ///
    /// # Errors
    /// Somebody else has taken it out of service.
    pub(crate) fn take_out(
        self: &Arc<Self>,
        name: &BoardName,
        failure: Failure,
    ) -> Result<OutOfService, Failure> {
        let mut boards = self.boards.lock().unwrap_or_else(PoisonError::into_inner);
        if !self.out.lock().unwrap_or_else(PoisonError::into_inner).insert(name.clone()) {
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

    /// The verbs that have begun, and whose callers may have gone.
    pub(crate) fn begun(&self) -> &TaskTracker {
        &self.begun
    }
}
