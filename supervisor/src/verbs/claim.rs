//! `claim`: takes a ready task by hand, for a worker that this supervisor does not run.

use std::sync::Arc;
use std::time::Duration;

use kernel::{Actor, Board, Placement, Run, StopReason, Task, TaskId};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::api::{Audience, Call, Effect, Verb, blocking};
use crate::command::Command;
use crate::daemon::{Provision, provide_external};
use crate::failure::Failure;
use crate::terminal::{Screen, printable};
use crate::time::duration::WrittenDuration;

/// The lease of a claim by hand.
const LEASE: &str = "900";

/// How long a client waits: the checkout of a large repository takes a while.
const MADE: Duration = Duration::from_mins(3);

/// Claim a ready task by hand
#[derive(Clone, Debug, clap::Args, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[command(after_help = "\
The claim is a lease: unless a heartbeat renews it, it expires and the task is ready
again. The task's workspace is created as for a run, and its path is printed. If
that fails, the claim is undone.

Examples:
  supervisor claim t_0123abcd
  supervisor claim t_0123abcd --ttl 1h --json")]
pub(crate) struct Claim {
    /// The task
    pub(crate) task_id: TaskId,
    /// How long the claim lasts without a heartbeat
    #[arg(long, value_name = "DURATION", default_value = LEASE)]
    #[serde(default = "lease")]
    pub(crate) ttl: WrittenDuration,
}

fn lease() -> WrittenDuration {
    LEASE.parse().unwrap_or_else(|_| unreachable!("a literal span parses"))
}

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Claimed {
    pub(crate) task: Task,
    pub(crate) run: Run,
}

impl Verb for Claim {
    const NAME: &'static str = "claim";
    const AUDIENCE: Audience = Audience::Operator;
    const EFFECT: Effect = Effect::Write;
    type Reply = Claimed;

    async fn run(self, call: Call) -> Result<Claimed, Failure> {
        let provision = Provision::of(&call.service, call.board()?).await?;
        let claimed = call
            .write(move |board, actor| {
                let claimed = board.claim(&self.task_id, self.ttl.duration(), actor)?;
                let run = claimed.run.id;
                // Recorded with the claim where it is known: a second commit would take as long again.
                if let Some(placement) = provision.give(board, &claimed.task)? {
                    board.record_workspace(run, &placement)?;
                }
                Ok(Claimed { task: board.expect_task(&self.task_id)?, run: board.expect_run(run)? })
            })
            .await?;
        provide(&call, claimed).await
    }

    fn answered_within(&self) -> Duration {
        MADE
    }
}

impl Command for Claim {
    fn show(reply: &Claimed, screen: &mut Screen) {
        screen.line(format!("Claimed {} as run {}", reply.task.id, reply.run.id));
        screen.line(format!(
            "Workspace: {}",
            printable(reply.task.workspace_path.as_deref().unwrap_or(&reply.task.workspace))
        ));
        if let Some(expires) = reply.run.claim_expires {
            screen.line(format!(
                "The claim lasts until {}; renew it with: supervisor heartbeat {}",
                crate::time::timestamp::local(expires),
                reply.task.id
            ));
        }
    }
}

/// Makes the workspace of a task that was just claimed, and records its place where the claim does not name it yet; where that
/// fails, the claim is given back.
async fn provide(call: &Call, claimed: Claimed) -> Result<Claimed, Failure> {
    let (service, handle, task) =
        (Arc::clone(&call.service), Arc::clone(call.board()?), claimed.task.clone());
    let made =
        blocking("the workspace was not made", move || provide_external(&service, &handle, &task)).await;
    let run = claimed.run.id;
    let placement = match made.flatten() {
        Ok(placement) => placement,
        Err(failure) => {
            let reason = format!("its workspace was not made: {}", failure.message);
            let back = move |board: &mut Board<'_>, actor: &Actor| {
                board.stop_run(run, StopReason::Reclaimed, Some(&reason), actor).map(drop)
            };
            call.write_further(back).await?;
            return Err(failure);
        }
    };
    if works_at(&claimed.run, &placement) {
        return Ok(claimed);
    }
    call.write_further(move |board, _| {
        // A repeat of the request finds it recorded, and gets the same reply.
        if !works_at(&board.expect_run(run)?, &placement) {
            board.record_workspace(run, &placement)?;
        }
        let run = board.expect_run(run)?;
        Ok(Claimed { task: board.expect_task(&run.task_id)?, run })
    })
    .await
}

/// Whether it is recorded where a run works.
fn works_at(run: &Run, placement: &Placement) -> bool {
    run.workspace_path.as_ref() == Some(&placement.path)
}
