//! The event log, played again through the state machine.

use std::collections::{BTreeMap, BTreeSet};

use crate::board::view::View;
use crate::model::error::Error;
use crate::model::id::{EventId, TaskId};
use crate::model::state::State;
use crate::rules::transition::{IllegalChange, next};
use crate::store::events::Logged;

/// Where the log and the board disagree.
#[derive(Clone, Debug, PartialEq, Eq)]
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

/// Where the log has led so far, for a replay that goes on as the log grows.
#[derive(Clone, Debug, Default)]
pub struct Replay {
    states: BTreeMap<TaskId, State>,
    /// The last event that was played, where anything was.
    through: Option<EventId>,
}

impl View<'_> {
    /// Plays the whole log again, from where folded events have left it, and compares where it leads with the board. Returns every difference.
    pub fn replay(&self) -> Result<Vec<Difference>, Error> {
        self.replay_on(&mut Replay::default())
    }

    /// Plays what was logged since the last call with the same replay, and compares where the log leads with the whole board. Returns
    /// every difference. What was folded since then and not played begins it anew.
    pub fn replay_on(&self, replay: &mut Replay) -> Result<Vec<Difference>, Error> {
        let folded = self.tx.log_horizon()?.map(|horizon| horizon.through);
        if replay.through.is_none() || replay.through < folded {
            *replay = Replay { states: BTreeMap::new(), through: folded };
            self.tx.each_folded_state(|task, state| {
                replay.states.insert(task, state);
                Ok(())
            })?;
        }
        let mut differences = Vec::new();
        let since = replay.through.unwrap_or(EventId(0));
        self.tx.each_step(since, |event, task, step| {
            replay.through = Some(event);
            match step {
                Logged::Deleted => {
                    replay.states.remove(&task);
                }
                Logged::Moved(change) => match next(replay.states.get(&task).copied(), change) {
                    Ok(state) => {
                        replay.states.insert(task, state);
                    }
                    Err(error) => differences.push(Difference::Illegal { event, task, error }),
                },
            }
            Ok(())
        })?;
        let mut live = BTreeSet::new();
        self.tx.each_task_state(|task, state| {
            let replayed = replay.states.get(&task).copied();
            if replayed != Some(state) {
                differences.push(Difference::State { task: task.clone(), replayed, live: state });
            }
            live.insert(task);
            Ok(())
        })?;
        let lost = replay.states.iter().filter(|(task, _)| !live.contains(*task));
        differences.extend(
            lost.map(|(task, replayed)| Difference::Missing { task: task.clone(), replayed: *replayed }),
        );
        Ok(differences)
    }
}
