//! Terminal ownership: at most one attached client at a time may type at the terminal of a live run, and must renew
//! its claim.
//!
//! See decision 0190.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use kernel::{Actor, RunId};

use super::BoardHandle;

/// Time after which ownership without a renewal ends.
pub const KEPT: Duration = Duration::from_secs(15);

/// Terminal owners of one board's runs. A new daemon has none; a typing client takes ownership again.
#[derive(Debug, Default)]
pub struct TerminalOwners(Mutex<BTreeMap<RunId, Held>>);

/// Ownership of a terminal.
#[derive(Clone, Debug)]
pub struct Held {
    /// Id of the attached client.
    holder: String,
    /// Person at the client.
    pub actor: Actor,
    /// Number of bytes typed.
    pub bytes: u64,
    until: Instant,
}

/// Result of a request for ownership.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ownership {
    /// The client owns the terminal from now on.
    Now,
    /// The client owned it already, and has typed this many bytes.
    Before(u64),
    /// Another person, of this name, owns it.
    Others(String),
}

impl TerminalOwners {
    /// Takes or renews ownership of a run's terminal. Ownership that has expired at `now` is replaced; the second
    /// value is the former owner.
    fn take(&self, run: RunId, holder: &str, actor: &Actor, now: Instant) -> (Ownership, Option<Held>) {
        let until = now + KEPT;
        let taken = || Held { holder: holder.to_owned(), actor: actor.clone(), bytes: 0, until };
        match self.locked().entry(run) {
            Entry::Vacant(free) => {
                free.insert(taken());
                (Ownership::Now, None)
            }
            Entry::Occupied(mut held) if held.get().holder == holder => {
                held.get_mut().until = until;
                (Ownership::Before(held.get().bytes), None)
            }
            Entry::Occupied(mut held) if held.get().until <= now => {
                (Ownership::Now, Some(held.insert(taken())))
            }
            Entry::Occupied(held) => (Ownership::Others(held.get().actor.name.clone()), None),
        }
    }

    /// Counts typed bytes.
    pub fn typed(&self, run: RunId, holder: &str, bytes: usize) {
        if let Some(held) = self.locked().get_mut(&run).filter(|held| held.holder == holder) {
            held.bytes = held.bytes.saturating_add(u64::try_from(bytes).unwrap_or(u64::MAX));
        }
    }

    /// Ends ownership, if this client has it.
    pub fn leave(&self, run: RunId, holder: &str) -> Option<Held> {
        let mut all = self.locked();
        if all.get(&run)?.holder == holder { all.remove(&run) } else { None }
    }

    /// Returns the expiry of a client's ownership; none if it no longer owns the terminal.
    pub fn until(&self, run: RunId, holder: &str) -> Option<Instant> {
        self.locked().get(&run).filter(|held| held.holder == holder).map(|held| held.until)
    }

    /// Ends all ownership and returns it.
    pub(crate) fn drain(&self) -> BTreeMap<RunId, Held> {
        std::mem::take(&mut *self.locked())
    }

    fn locked(&self) -> MutexGuard<'_, BTreeMap<RunId, Held>> {
        // A thread that panicked with the lock had changed a single entry, which is complete.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Terminal ownership for one request. Dropping it ends the ownership, whatever becomes of the request.
#[derive(Debug)]
pub struct HeldOnce {
    board: Arc<BoardHandle>,
    run: RunId,
    holder: String,
}

impl Drop for HeldOnce {
    fn drop(&mut self) {
        // The input is recorded separately.
        drop(self.board.terminal_owners.leave(self.run, &self.holder));
    }
}

impl BoardHandle {
    /// Takes or renews ownership of a run's terminal.
    pub fn take_terminal(&self, run: RunId, holder: &str, actor: &Actor) -> Ownership {
        let (taken, before) = self.terminal_owners.take(run, holder, actor, Instant::now());
        if let Some(before) = before {
            self.record_typed(run, before);
        }
        taken
    }

    /// Takes ownership of a run's terminal for one request.
    ///
    /// # Errors
    /// Another person, of this name, owns it.
    pub fn take_terminal_once(self: &Arc<Self>, run: RunId, actor: &Actor) -> Result<HeldOnce, String> {
        let holder = uuid::Uuid::new_v4().to_string();
        match self.take_terminal(run, &holder, actor) {
            Ownership::Now | Ownership::Before(_) => Ok(HeldOnce { board: Arc::clone(self), run, holder }),
            Ownership::Others(name) => Err(name),
        }
    }

    /// Records the number of bytes that a person typed at a run's terminal, unless it is 0. Never waits.
    pub fn record_typed(&self, run: RunId, held: Held) {
        let Held { actor, bytes, .. } = held;
        if let Some(writer) = self.writer.as_ref().filter(|_| bytes > 0) {
            writer.submit(move |board| board.record_typed(run, bytes, &actor), drop);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_types_at_a_time_and_the_next_one_when_it_has_left() {
        let (owners, run) = (TerminalOwners::default(), "7".parse::<RunId>().unwrap());
        let (ann, bob) = (Actor::person("ann"), Actor::person("bob"));
        let take = |holder, actor| owners.take(run, holder, actor, Instant::now()).0;
        assert_eq!(take("1", &ann), Ownership::Now);
        owners.typed(run, "1", 3);
        owners.typed(run, "2", 9);
        assert_eq!(take("1", &ann), Ownership::Before(3));
        assert_eq!(take("2", &bob), Ownership::Others("ann".to_owned()));
        assert_eq!(take("3", &ann), Ownership::Others("ann".to_owned()), "at another terminal");
        assert!(owners.leave(run, "2").is_none());
        assert_eq!(owners.leave(run, "1").map(|held| held.bytes), Some(3));
        assert_eq!(take("2", &bob), Ownership::Now);
        assert!(owners.until(run, "1").is_none() && owners.until(run, "2").is_some());
    }

    #[test]
    fn who_says_nothing_for_too_long_loses_the_keyboard_to_the_next_one_with_what_was_typed() {
        let (owners, run) = (TerminalOwners::default(), "7".parse::<RunId>().unwrap());
        let (ann, bob) = (Actor::person("ann"), Actor::person("bob"));
        let begin = Instant::now();
        owners.take(run, "1", &ann, begin);
        owners.typed(run, "1", 3);
        let just = begin + KEPT.checked_sub(Duration::from_millis(1)).unwrap();
        assert_eq!(owners.take(run, "2", &bob, just).0, Ownership::Others("ann".to_owned()));
        let (taken, before) = owners.take(run, "2", &bob, begin + KEPT);
        assert_eq!(taken, Ownership::Now);
        assert_eq!(before.map(|held| (held.actor.name, held.bytes)), Some(("ann".to_owned(), 3)));
        assert_eq!(owners.take(run, "1", &ann, begin + KEPT).0, Ownership::Others("bob".to_owned()));
    }
}
