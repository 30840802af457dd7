//! `run-schedule`: a tick out of turn.

use kernel::{ScheduleName, ScheduleTick};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::usable;
use crate::api::{Audience, Call, Effect, Verb, blocking};
use crate::failure::Failure;

/// Makes the tasks of a schedule now. Its own ticks stay as they are.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RunSchedule {
    /// The schedule.
    pub(crate) name: ScheduleName,
}

impl Verb for RunSchedule {
    const NAME: &'static str = "run-schedule";
    const AUDIENCE: Audience = Audience::Operator;
    const EFFECT: Effect = Effect::Write;
    type Reply = ScheduleTick;

    async fn run(self, call: Call) -> Result<ScheduleTick, Failure> {
        let (service, name) = (call.service.clone(), self.name.clone());
        let planned = blocking("the schedule was not read", move || usable(&service, &name)).await??;
        let board = call.board()?.name();
        if planned.board != *board {
            return Err(Failure::usage(format!(
                "the tasks of `{}` are of the board `{}`, not `{board}`",
                self.name, planned.board
            ))
            .hint(format!("supervisor --board {} schedules run {}", planned.board, self.name)));
        }
        // The board of a daemon has it already, perhaps changed since.
        let has_it = call.service.daemon().is_some();
        call.write(move |board, actor| {
            if !has_it {
                board.define_schedule(&self.name, &planned.spec)?;
            }
            board.run_schedule(&self.name, actor)
        })
        .await
    }
}
