//! `link` and `unlink`: make a task wait for another one, or end this.

use kernel::{AtWork, Settled, Task, TaskId};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use api::command::Command;
use api::{Call, Verb, verb};
use base::failure::Failure;
use base::terminal::Screen;

/// Make a task wait for another
#[derive(Clone, Debug, clap::Args, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[command(after_help = "\
A child whose run started a moment ago (worker.link_grace, 30 s) is taken back and
waits. One that has run longer, or is done, is refused without --reclaim.

Examples:
  supervisor link t_0123abcd t_4567cdef      (t_4567cdef waits for t_0123abcd)
  supervisor link --reclaim t_0123abcd t_4567cdef")]
pub struct Link {
    /// The task that must be done first
    pub parent_id: TaskId,
    /// The task that waits for it
    pub child_id: TaskId,
    /// Take the child back even if its worker started long ago or it is done
    #[arg(long)]
    #[serde(default)]
    pub reclaim: bool,
}

/// Remove the link between two tasks
#[derive(Clone, Debug, clap::Args, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[command(after_help = "\
Examples:
  supervisor unlink t_0123abcd t_4567cdef")]
pub struct Unlink {
    /// The task that was to be done first
    pub parent_id: TaskId,
    /// The task that waited for it
    pub child_id: TaskId,
}

/// The link, and the child's current state.
#[derive(Debug, Serialize, Deserialize)]
pub struct Linked {
    pub parent_id: TaskId,
    pub child_id: TaskId,
    pub status: kernel::Status,
    /// The run of the child that was ended for the link.
    #[serde(default)]
    pub(crate) taken_back: Option<kernel::RunId>,
    /// Says which changes are still to come.
    #[serde(default)]
    pub note: Option<String>,
}

impl Linked {
    fn from_child(parent_id: TaskId, child: Task) -> Self {
        Linked { parent_id, child_id: child.id, status: child.status, taken_back: None, note: None }
    }

    fn settled(parent_id: TaskId, settled: Settled) -> Self {
        let note = settled.run.map(|run| match settled.effect {
            kernel::Effect::Now => format!("its run {run} was taken back"),
            kernel::Effect::WhenRunEnds => {
                format!("its run {run} is taken back: it waits as soon as its worker has ended")
            }
        });
        Linked { taken_back: settled.run, note, ..Linked::from_child(parent_id, settled.task) }
    }
}

impl Verb for Link {
    verb! { "link": Worker, Write, members, tool(Worker, "") => Linked }

    async fn run(self, call: Call) -> Result<Linked, Failure> {
        call.refuse_live_without_daemon(std::slice::from_ref(&self.child_id)).await?;
        let grace = call.service.config().worker.link_grace.duration();
        let at_work = if self.reclaim { AtWork::TakeBack } else { AtWork::TakeBackWithin(grace) };
        call.write(move |board, actor| {
            let settled = board.link(&self.parent_id, &self.child_id, at_work, actor)?;
            Ok(Linked::settled(self.parent_id, settled))
        })
        .await
    }
}

impl Command for Link {
    fn show(reply: &Linked, screen: &mut Screen) {
        let note = reply.note.as_deref().map(|note| format!("; {note}")).unwrap_or_default();
        let (child, parent) = (&reply.child_id, &reply.parent_id);
        screen.line(format!("Linked: {child} comes after {parent} ({}){note}", reply.status));
    }
}

impl Verb for Unlink {
    verb! { "unlink": Operator, Write, members => Linked }

    async fn run(self, call: Call) -> Result<Linked, Failure> {
        call.write(move |board, actor| {
            board.unlink(&self.parent_id, &self.child_id, actor)?;
            let child = board.expect_task(&self.child_id)?;
            Ok(Linked::from_child(self.parent_id, child))
        })
        .await
    }
}

impl Command for Unlink {
    fn show(reply: &Linked, screen: &mut Screen) {
        screen.line(format!(
            "Unlinked: {} no longer waits for {} ({})",
            reply.child_id, reply.parent_id, reply.status
        ));
    }
}
