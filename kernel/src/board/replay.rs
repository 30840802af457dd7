//! The event log, played again through the state machine.

use std::collections::BTreeMap;

use crate::board::view::View;
use crate::model::error::Error;
use crate::model::id::{EventId, TaskId};
use crate::model::state::State;
use crate::rules::transition::{IllegalChange, next};
use crate::store::events::Logged;

/// Where the log and the board disagree.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the name of a field says what it is")]
pub enum Difference {
    /// The log has a transition that does not exist.
    Illegal { event: EventId, task: TaskId, error: IllegalChange },
    /// The log knows a task that the board does not, and says nothing of its deletion.
    Missing { task: TaskId, replayed: State },
    /// The log leads somewhere else.
    State {
        task: TaskId,
        /// Where the log leads; none when it does not know the task.
        replayed: Option<State>,
        live: State,
    },
}

impl View<'_> {
    /// Plays the whole log again, from where folded events have left it, and compares where it leads with the board. Returns every difference.
    pub fn replay(&self) -> Result<Vec<Difference>, Error> {
        let mut states: BTreeMap<TaskId, State> = BTreeMap::new();
        let mut differences = Vec::new();
        self.tx.each_folded_state(|task, state| {
            states.insert(task, state);
            Ok(())
        })?;
        self.tx.each_step(|event, task, step| {
            match step {
                Logged::Deleted => {
                    states.remove(&task);
                }
                Logged::Moved(change) => match next(states.get(&task).copied(), change) {
                    Ok(state) => {
                        states.insert(task, state);
                    }
                    Err(error) => differences.push(Difference::Illegal { event, task, error }),
                },
            }
            Ok(())
        })?;
        self.tx.each_task_state(|task, live| {
            let replayed = states.remove(&task);
            if replayed != Some(live) {
                differences.push(Difference::State { task, replayed, live });
            }
            Ok(())
        })?;
        let lost = states.into_iter().map(|(task, replayed)| Difference::Missing { task, replayed });
        differences.extend(lost);
        Ok(differences)
    }
}
