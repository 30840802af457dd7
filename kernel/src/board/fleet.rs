//! The tasks of a fleet: one for each directory and tick, made once.

use super::Board;
use super::create::Created;
use crate::model::actor::Actor;
use crate::model::error::Error;
use crate::model::fleet::{FleetId, NewFleetTask};
use crate::model::id::Tick;
use crate::rules::authority;

/// How many tasks of a fleet one transaction makes: others wait for its end.
pub const FLEET_BATCH: usize = 250;

impl Board<'_> {
    /// Makes the tasks of directories at a tick. The task that a directory has at this tick is returned instead, whatever became of
    /// it. A task that is refused keeps no other from being made; what is returned has the order of what is given.
    ///
    /// # Errors
    /// An error of the store fails all of them, and more than [`FLEET_BATCH`] are refused.
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
