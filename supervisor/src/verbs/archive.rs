//! `archive`: takes a task off the board; its history stays.

use kernel::{Detach, TaskId};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::bulk::{Bulk, outcome};
use crate::api::{Audience, Call, Effect, Verb};
use crate::failure::Failure;
use crate::terminal::Screen;

/// Take tasks off the board
#[derive(Clone, Debug, Default, clap::Args, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[command(after_help = "\
A worker that is still running is ended first. A task that is not done and has
open children is refused: they would wait for ever.

Examples:
  supervisor archive t_0123abcd t_4567cdef
  supervisor archive t_0123abcd --detach")]
pub(crate) struct Archive {
    /// The tasks
    #[arg(value_name = "TASK", required = true)]
    pub(crate) task_ids: Vec<TaskId>,
    /// Unlink open children first
    #[arg(long)]
    pub(crate) detach: bool,
}

impl Verb for Archive {
    const NAME: &'static str = "archive";
    const AUDIENCE: Audience = Audience::Operator;
    const EFFECT: Effect = Effect::Write;
    type Reply = Bulk;

    async fn run(self, call: Call) -> Result<Bulk, Failure> {
        call.refuse_live_without_daemon(&self.task_ids).await?;
        let detach = if self.detach { Detach::Unlink } else { Detach::Refuse };
        call.write(move |board, actor| {
            Bulk::each(board, self.task_ids, |board, id| {
                board.archive(id, detach, actor).map(|settled| outcome(&settled))
            })
        })
        .await
    }

    fn show(reply: &Bulk, screen: &mut Screen) {
        reply.show("Archived", screen);
    }

    fn verdict(reply: &Bulk) -> u8 {
        reply.verdict()
    }
}
