//! `claim`: takes a ready task by hand, for a worker that this supervisor does not run.

use std::sync::Arc;
use std::time::Duration;

use kernel::{Actor, Board, Run, StopReason, Task, TaskId};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::api::{Audience, Call, Effect, Verb};
use crate::command::Command;
use crate::daemon::{WorkerUids, provide_external};
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
        let (service, handle) = (Arc::clone(&call.service), Arc::clone(call.board()?));
        let uids = blocking(move || WorkerUids::of(&service, &handle)).await?;
        let claimed = call
            .write(move |board, actor| {
                let claimed = board.claim(&self.task_id, self.ttl.duration(), actor)?;
                uids.give(board, &claimed.task)?;
                Ok(Claimed { task: board.expect_task(&self.task_id)?, run: claimed.run })
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

/// Makes the workspace of a task that was just claimed; where that fails, the claim is given back.
async fn provide(call: &Call, claimed: Claimed) -> Result<Claimed, Failure> {
    let Claimed { task, run } = claimed;
    let (service, handle) = (Arc::clone(&call.service), Arc::clone(call.board()?));
    let made = blocking(move || provide_external(&service, &handle, &task)).await;
    let run = run.id;
    let placement = match made {
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
    call.write_further(move |board, _| {
        // A repeat of the request finds it recorded, and gets the same reply.
        if board.expect_run(run)?.workspace_path.as_ref() != Some(&placement.path) {
            board.record_workspace(run, &placement)?;
        }
        let run = board.expect_run(run)?;
        Ok(Claimed { task: board.expect_task(&run.task_id)?, run })
    })
    .await
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Failure> + Send + 'static,
) -> Result<T, Failure> {
    let done = tokio::task::spawn_blocking(work).await;
    done.map_err(|panic| Failure::failed(format!("the workspace was not made: {panic}")))?
}
