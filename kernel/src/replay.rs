//! The event log, played again through the state machine.

use std::collections::BTreeMap;

use crate::error::Error;
use crate::id::{EventId, TaskId};
use crate::status::State;
use crate::store::{events, tasks};
use crate::transition::{IllegalChange, next};
use crate::view::View;

/// Where the log and the board disagree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Difference {
    /// The log has a transition that does not exist.
    Illegal {
        /// The event.
        event: EventId,
        /// The task.
        task: TaskId,
        /// What the state machine says.
        error: IllegalChange,
    },
    /// The log leads somewhere else.
    State {
        /// The task.
        task: TaskId,
        /// Where the log leads; none when it does not know the task.
        replayed: Option<State>,
        /// Where the board has it.
        live: State,
    },
}

impl View<'_> {
    /// Plays the whole log again and compares where it leads with the board. Returns every difference.
    pub fn replay(&self) -> Result<Vec<Difference>, Error> {
        let mut states: BTreeMap<TaskId, State> = BTreeMap::new();
        let mut differences = Vec::new();
        events::changes(self.conn, |event, task, change| {
            match next(states.get(&task).copied(), change) {
                Ok(state) => {
                    states.insert(task, state);
                }
                Err(error) => differences.push(Difference::Illegal { event, task, error }),
            }
            Ok(())
        })?;
        tasks::states(self.conn, |task, live| {
            let replayed = states.get(&task).copied();
            if replayed != Some(live) {
                differences.push(Difference::State { task, replayed, live });
            }
            Ok(())
        })?;
        Ok(differences)
    }
}
