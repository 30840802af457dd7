//! Folds old events into snapshots of the states. The log then starts later, and a replay from there gives the same
//! board.
//!
//! See decision 0013.

use std::collections::BTreeMap;

use crate::board::Board;
use crate::board::view::View;
use crate::model::clock::Timestamp;
use crate::model::error::Error;
use crate::model::id::TaskId;
use crate::model::log::{Folded, Horizon};
use crate::model::state::State;
use crate::rules::transition::next;
use crate::store::events::Logged;

impl Board<'_> {
    /// Folds the oldest events before a moment, at most `limit`, and removes them. A result of zero events means that
    /// none are left. The remaining log replays to the same board ([`View::replay`]). A step is atomic, so this holds
    /// after a crash as well.
    ///
    /// # Errors
    /// [`Error::Conflict`] for an event that the state machine does not allow. The event is evidence of a fault and
    /// stays.
    pub fn fold_events(&mut self, before: Timestamp, limit: u32) -> Result<Folded, Error> {
        let old = self.tx.oldest_events(before, limit)?;
        let Some(last) = old.last().map(|event| event.id) else { return Ok(Folded::default()) };
        let mut states: BTreeMap<TaskId, Option<State>> = BTreeMap::new();
        let mut done = Folded::default();
        for event in old {
            done.events += 1;
            done.bytes += event.bytes;
            let Some((task, step)) = event.step else { continue };
            let from = match states.get(&task) {
                Some(state) => *state,
                None => self.tx.folded_state(&task)?,
            };
            let to = match step {
                Logged::Deleted => None,
                Logged::Moved(change) => Some(next(from, change).map_err(|error| {
                    Error::conflict(
                        format!("event {} of {task} is invalid: {error}", event.id),
                        "it was not folded; `supervisor doctor --replay` says where log and board differ",
                    )
                })?),
            };
            states.insert(task, to);
        }
        for (task, state) in states {
            self.tx.store_folded_state(&task, state)?;
        }
        self.tx.cut_log(last, self.now())?;
        Ok(done)
    }
}

impl View<'_> {
    /// Returns the start of the log, if older events were folded.
    pub fn horizon(&self) -> Result<Option<Horizon>, Error> {
        self.tx.log_horizon()
    }

    /// Returns the figures of folding all events before a moment.
    pub fn foldable(&self, before: Timestamp) -> Result<Folded, Error> {
        let (events, bytes) = self.tx.count_events_before(before)?;
        Ok(Folded { events, bytes })
    }
}
