//! `schedule`: tasks that are not to start before a time.

use kernel::{Clock as _, Status, TaskId, Timestamp};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::bulk::{Bulk, pending};
use super::texts;
use crate::api::{Audience, Call, Effect, Verb};
use crate::failure::Failure;
use crate::moment;
use crate::terminal::Screen;

/// Let tasks wait until a time, and start by themselves then
#[derive(Clone, Debug, Default, clap::Args, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[command(after_help = "\
The worker of a running task is ended first.

Examples:
  supervisor schedule t_0123abcd --at 2h
  supervisor schedule t_0123abcd 'waits for the customer'
  supervisor schedule t_0123abcd 'after the release' --at 1800000000 --ids t_4567cdef")]
pub(crate) struct Schedule {
    /// The task
    #[arg(required = true)]
    pub(crate) task_id: Option<TaskId>,
    /// Why
    #[arg(value_name = "REASON", num_args = 0..)]
    pub(crate) reason: Vec<String>,
    /// When: epoch seconds, or a span from now such as 10m [default: when somebody unblocks them]
    #[arg(long, value_name = "WHEN")]
    pub(crate) at: Option<String>,
    /// Further tasks
    #[arg(long, value_name = "TASK", num_args = 1..)]
    pub(crate) ids: Vec<TaskId>,
}

impl Verb for Schedule {
    const NAME: &'static str = "schedule";
    const AUDIENCE: Audience = Audience::Operator;
    const EFFECT: Effect = Effect::Write;
    type Reply = Bulk;

    async fn run(self, call: Call) -> Result<Bulk, Failure> {
        let at = match &self.at {
            Some(at) => texts::moment(at, kernel::SystemClock.now())?,
            None => Timestamp::OPEN_END,
        };
        let reason = texts::sentence(&self.reason);
        let ids: Vec<TaskId> = self.task_id.into_iter().chain(self.ids).collect();
        call.refuse_live_without_daemon(&ids).await?;
        call.write(move |board, actor| {
            Bulk::each(board, ids, |board, id| {
                let settled = board.schedule(id, at, reason.as_deref(), actor)?;
                let time = match (at, settled.task.status) {
                    (Timestamp::OPEN_END, Status::Todo) => {
                        "when its parents are done, parked until unblocked".to_owned()
                    }
                    (Timestamp::OPEN_END, _) => format!("until: supervisor unblock {id}"),
                    (at, _) => format!("starts at {}", moment::local(at)),
                };
                let note =
                    pending(settled.effect).map_or(time.clone(), |pending| format!("{pending}; {time}"));
                Ok((settled.task.status, Some(note)))
            })
        })
        .await
    }

    fn show(reply: &Bulk, screen: &mut Screen) {
        reply.show("Scheduled", screen);
    }

    fn verdict(reply: &Bulk) -> u8 {
        reply.verdict()
    }
}
