//! Creates the tasks of a fleet: one for each directory and tick.
//!
//! The idempotency key of a task is made of the profile, the directory and the tick, and no other verb may use such a
//! key: a worker cannot create the task that stands for its own next one. A refused directory does not undo the
//! others; a second call completes the tick.

use super::Board;
use super::create::Created;
use crate::model::actor::Actor;
use crate::model::error::Error;
use crate::model::fleet::{FleetId, NewFleetTask};
use crate::model::id::Tick;
use crate::rules::authority;

/// Largest number of fleet tasks that one transaction creates, because other writers wait for its end.
pub const FLEET_BATCH: usize = 250;

impl Board<'_> {
    /// Creates the tasks of directories at a tick. For a directory that already has a task at this tick, returns that
    /// task, in any status. A refused task does not affect the others. The results have the order of the input.
    ///
    /// # Errors
    /// An error of the store fails the whole call, and so do more than [`FLEET_BATCH`] tasks.
    pub fn dispatch_fleet(
        &mut self,
        fleet: &FleetId,
        tick: &Tick,
        tasks: Vec<NewFleetTask>,
        actor: &Actor,
    ) -> Result<Vec<Result<Created, Error>>, Error> {
        authority::person(actor, "dispatch a fleet")?;
        if tasks.len() > FLEET_BATCH {
            let why = format!("{} of them: one request takes {FLEET_BATCH}", tasks.len());
            return Err(Error::invalid("directories", why, "send the others with further requests"));
        }
        let mut outcomes = Vec::with_capacity(tasks.len());
        for NewFleetTask { directory, mut task } in tasks {
            task.idempotency_key = Some(fleet.key(&directory, tick));
            match self.attempt(|board| board.make(task, actor)) {
                Err(error @ (Error::Storage { .. } | Error::Writer { .. })) => return Err(error),
                outcome => outcomes.push(outcome),
            }
        }
        Ok(outcomes)
    }
}
