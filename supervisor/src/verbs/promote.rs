//! `promote`: a person lets tasks leave triage.

use kernel::TaskId;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::bulk::Bulk;
use super::texts;
use crate::api::{Audience, Call, Effect, Verb};
use crate::client::Client;
use crate::failure::Failure;
use crate::terminal::Screen;

/// Let tasks leave triage
#[derive(Clone, Debug, Default, clap::Args, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[command(after_help = "\
Examples:
  supervisor promote t_0123abcd 'specified with the customer'
  supervisor promote t_0123abcd --ids t_4567cdef t_89abcdef")]
pub(crate) struct Promote {
    /// The task
    #[arg(required = true)]
    pub(crate) task_id: Option<TaskId>,
    /// Why
    #[arg(value_name = "REASON", num_args = 0..)]
    pub(crate) reason: Vec<String>,
    /// Further tasks
    #[arg(long, value_name = "TASK", num_args = 1..)]
    pub(crate) ids: Vec<TaskId>,
}

impl Verb for Promote {
    const NAME: &'static str = "promote";
    const AUDIENCE: Audience = Audience::Operator;
    const EFFECT: Effect = Effect::Write;
    type Reply = Bulk;

    fn localize(&mut self, client: &Client) -> Result<(), Failure> {
        self.task_id = Some(texts::own_task(self.task_id.take(), client)?);
        Ok(())
    }

    async fn run(self, call: Call) -> Result<Bulk, Failure> {
        let reason = texts::sentence(&self.reason);
        let ids: Vec<TaskId> = self.task_id.into_iter().chain(self.ids).collect();
        call.write(move |board, actor| {
            Bulk::each(board, ids, |board, id| {
                board.promote(id, reason.as_deref(), actor).map(|task| (task.status, None))
            })
        })
        .await
    }

    fn show(reply: &Bulk, screen: &mut Screen) {
        reply.show("Promoted", screen);
    }

    fn verdict(reply: &Bulk) -> u8 {
        reply.verdict()
    }
}
