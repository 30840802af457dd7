//! Replays the event log through the state machine, and compares the result with the board.

use std::collections::BTreeMap;

use crate::board::view::View;
use crate::model::error::Error;
use crate::model::id::{EventId, TaskId};
use crate::model::state::State;
use crate::rules::transition::{IllegalChange, next};
use crate::store::events::Logged;

/// Difference between the log and the board.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Difference {
    /// The log has a transition that the state machine does not allow.
    Illegal { event: EventId, task: TaskId, error: IllegalChange },
    /// The log has a task that the board does not have, and no event of its deletion.
    Missing { task: TaskId, replayed: State },
    /// The state by the log differs from the state on the board.
    State {
        task: TaskId,
        /// State by the log; none if the log has no such task.
        replayed: Option<State>,
        live: State,
    },
}

/// States of the tasks after the replayed events. A replay can be continued when the log has grown.
#[derive(Clone, Debug, Default)]
pub struct Replay {
    states: BTreeMap<TaskId, State>,
    /// Last replayed event; none before the first.
    through: Option<EventId>,
}

impl View<'_> {
    /// Replays the whole log, from the snapshot of folded events on, and compares the states with the board. Returns all
    /// differences.
    pub fn replay(&self) -> Result<Vec<Difference>, Error> {
        self.replay_on(&mut Replay::default())
    }

    /// Replays the events since the last call with the same replay, and compares the states with the whole board. Returns
    /// all differences. The replay starts again if events that it had not replayed were folded.
    pub fn replay_on(&self, replay: &mut Replay) -> Result<Vec<Difference>, Error> {
        let folded = self.tx.log_horizon()?.map(|horizon| horizon.through);
        // The events before the start of the log are folded into a snapshot of states. A new replay begins with this
        // snapshot, and so does a replay whose next events have been folded.
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
        let mut common = 0;
        self.tx.each_task_state(|task, state| {
            let replayed = replay.states.get(&task).copied();
            common += usize::from(replayed.is_some());
            if replayed != Some(state) {
                differences.push(Difference::State { task, replayed, live: state });
            }
            Ok(())
        })?;
        // Tasks that the log has and the board does not have.
        for (task, replayed) in replay.states.iter().filter(|_| common < replay.states.len()) {
            if self.task(task)?.is_none() {
                differences.push(Difference::Missing { task: task.clone(), replayed: *replayed });
            }
        }
        Ok(differences)
    }
}
