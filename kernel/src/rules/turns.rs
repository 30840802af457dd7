//! Turns toward a goal: their number, and the pace at which quick turns are delayed.
//!
//! A turn is a run, and the count is a column that the end of the run sets: a loop inside one process would lose its
//! count with the process, and the limits of a run would hold for all turns together.

use std::time::Duration;

use crate::model::error::Error;
use crate::model::limits;
use crate::model::task::{NewTask, Task};

/// Length below which a turn counts as hasty.
const HASTY: Duration = Duration::from_secs(10);
/// Length above which a turn counts as earnest work, so that hasty turns before it are forgotten.
const EARNEST: Duration = Duration::from_mins(1);

/// Progress toward a goal that only the worker's verdict proves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct GoalTurns {
    /// Number of turns before this turn.
    pub(crate) taken: u32,
    /// Number of turns after which a person is asked.
    pub(crate) limit: u32,
}

impl GoalTurns {
    /// Returns the number of this turn, from 1 on.
    pub(crate) fn turn(self) -> u32 {
        self.taken.saturating_add(1)
    }

    /// Returns true if no turn follows this turn.
    pub(crate) fn is_last(self) -> bool {
        self.turn() >= self.limit
    }
}

/// Refuses a number of turns or failed checks that is zero or too large. `usual` names the default in the hint.
pub(crate) fn require_number(field: &'static str, number: u32, usual: &str) -> Result<(), Error> {
    if number == 0 {
        return Err(Error::invalid(field, "it is zero", format!("give 1 or more; {usual}")));
    }
    require_at_most(field, number, limits::TURNS, usual)
}

fn require_at_most(field: &'static str, number: u32, most: u32, usual: &str) -> Result<(), Error> {
    if number <= most {
        return Ok(());
    }
    Err(Error::invalid(
        field,
        format!("{number} is too large, the limit is {most}"),
        format!("give less; {usual}"),
    ))
}

/// Limits the turns and checks of a task that a worker makes: no more than the worker's own task has, if that has a goal.
pub(crate) fn bound(creating: &Task, new: &mut NewTask) -> Result<(), Error> {
    let most = creating.goal.turns().map_or(limits::TURNS_BY_WORKER, |own| own.min(limits::TURNS_BY_WORKER));
    if let Some(number) = new.check.max_checks {
        require_at_most("max_checks", number, limits::TURNS_BY_WORKER, "a person may give more")?;
    }
    if let Some(number) = new.goal.max_turns {
        return require_at_most("goal_max_turns", number, most, "a person may give more");
    }
    if new.goal.mode {
        new.goal.max_turns = Some(most);
    }
    Ok(())
}

/// Pace of a task's turns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct TurnPace {
    /// Number of hasty turns in a row up to the last turn; zero if the last turn was not hasty.
    pub(crate) hasty: u32,
    /// True if the last turn took long enough to have done some work.
    pub(crate) is_earnest: bool,
}

impl TurnPace {
    /// Computes the pace from the lengths of turns, the last turn first.
    pub(crate) fn from_lengths(lengths: impl IntoIterator<Item = Duration>) -> Self {
        let mut lengths = lengths.into_iter().peekable();
        let last = lengths.peek().copied().unwrap_or_default();
        if last >= HASTY {
            return TurnPace { hasty: 0, is_earnest: last > EARNEST };
        }
        let count = lengths.take_while(|length| *length <= EARNEST).filter(|length| *length < HASTY).count();
        TurnPace { hasty: u32::try_from(count).unwrap_or(u32::MAX), is_earnest: false }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn turns_of_seconds_count_until_one_of_more_than_a_minute() {
        let counted = |lengths: &[u64]| {
            TurnPace::from_lengths(lengths.iter().map(|length| Duration::from_secs(*length)))
        };
        for (lengths, count) in [
            (&[][..], 0),
            (&[0], 1),
            (&[10, 0, 0], 0),
            (&[9, 1, 0], 3),
            (&[1, 10, 1], 2),
            (&[1, 30, 1], 2),
            (&[1, 60, 61, 1, 1], 1),
            (&[60, 1], 0),
            (&[61, 1], 0),
        ] {
            let is_earnest = lengths.first().is_some_and(|last| *last > 60);
            assert_eq!(counted(lengths), TurnPace { hasty: count, is_earnest }, "{lengths:?}");
        }
    }
}
