//! `promote`: a person lets tasks leave triage, or go on at once.

use kernel::{Board, Force, TaskId};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::bulk::Bulk;
use super::texts;
use crate::api::{Audience, Call, Effect, Verb};
use crate::client::Client;
use crate::failure::Failure;
use crate::terminal::Screen;

/// Let tasks leave triage, or go on at once
#[derive(Clone, Debug, Default, clap::Args, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[command(after_help = "\
A task that waits for its time, or that is blocked, goes on at once.

Examples:
  supervisor promote t_0123abcd 'specified with the customer'
  supervisor promote t_0123abcd --ids t_4567cdef t_89abcdef
  supervisor promote t_0123abcd --force --dry-run")]
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
    /// Unlink parents that are not done: nothing starts before its parents
    #[arg(long)]
    pub(crate) force: bool,
    /// Only say what would become of them
    #[arg(long)]
    pub(crate) dry_run: bool,
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
        let force = if self.force { Force::Yes } else { Force::No };
        let ids: Vec<TaskId> = self.task_id.into_iter().chain(self.ids).collect();
        call.write(move |board, actor| {
            Bulk::each(board, ids, |board, id| {
                let promote = |board: &mut Board<'_>| board.promote(id, reason.as_deref(), force, actor);
                if self.dry_run {
                    let task = board.rehearse(promote)?;
                    return Ok((task.status, Some("nothing was done".to_owned())));
                }
                promote(board).map(|task| (task.status, None))
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
