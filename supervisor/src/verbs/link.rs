//! `link` and `unlink`: what must be done before what.

use kernel::{Task, TaskId};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::api::{Audience, Call, Effect, Verb};
use crate::failure::Failure;
use crate::terminal::Screen;

/// Make a task wait for another
#[derive(Clone, Debug, clap::Args, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[command(after_help = "\
Examples:
  supervisor link t_0123abcd t_4567cdef      (t_4567cdef waits for t_0123abcd)")]
pub(crate) struct Link {
    /// What must be done first
    pub(crate) parent_id: TaskId,
    /// What waits for it
    pub(crate) child_id: TaskId,
}

/// No longer make a task wait for another
#[derive(Clone, Debug, clap::Args, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[command(after_help = "\
Examples:
  supervisor unlink t_0123abcd t_4567cdef")]
pub(crate) struct Unlink {
    /// What had to be done first
    pub(crate) parent_id: TaskId,
    /// What waited for it
    pub(crate) child_id: TaskId,
}

/// The child as it stands now.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Linked {
    /// The parent.
    pub(crate) parent_id: TaskId,
    /// The child.
    pub(crate) child_id: TaskId,
    /// The child's status now.
    pub(crate) status: kernel::Status,
}

impl Linked {
    fn of(parent_id: TaskId, child: Task) -> Self {
        Linked { parent_id, child_id: child.id, status: child.status }
    }
}

impl Verb for Link {
    const NAME: &'static str = "link";
    const AUDIENCE: Audience = Audience::Worker;
    const EFFECT: Effect = Effect::Write;
    type Reply = Linked;

    async fn run(self, call: Call) -> Result<Linked, Failure> {
        call.write(move |board, actor| {
            board.link(&self.parent_id, &self.child_id, actor)?;
            let child = board.expect_task(&self.child_id)?;
            Ok(Linked::of(self.parent_id, child))
        })
        .await
    }

    fn show(reply: &Linked, screen: &mut Screen) {
        screen.line(format!("Linked: {} waits for {} ({})", reply.child_id, reply.parent_id, reply.status));
    }
}

impl Verb for Unlink {
    const NAME: &'static str = "unlink";
    const AUDIENCE: Audience = Audience::Operator;
    const EFFECT: Effect = Effect::Write;
    type Reply = Linked;

    async fn run(self, call: Call) -> Result<Linked, Failure> {
        call.write(move |board, actor| {
            board.unlink(&self.parent_id, &self.child_id, actor)?;
            let child = board.expect_task(&self.child_id)?;
            Ok(Linked::of(self.parent_id, child))
        })
        .await
    }

    fn show(reply: &Linked, screen: &mut Screen) {
        screen.line(format!(
            "Unlinked: {} no longer waits for {} ({})",
            reply.child_id, reply.parent_id, reply.status
        ));
    }
}
