//! `claim`: takes a ready task by hand, for a worker that this supervisor does not run.

use kernel::{Run, Task, TaskId};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::api::{Audience, Call, Effect, Verb};
use crate::failure::Failure;
use crate::span::Span;
use crate::terminal::Screen;

/// The lease of a claim by hand.
const LEASE: &str = "900";

/// Take a ready task by hand
#[derive(Clone, Debug, clap::Args, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[command(after_help = "\
The claim is a lease: renew it with heartbeat, or the task goes back to ready
when it runs out.

Examples:
  supervisor claim t_0123abcd
  supervisor claim t_0123abcd --ttl 1h --json")]
pub(crate) struct Claim {
    /// The task
    pub(crate) task_id: TaskId,
    /// How long the claim holds without a heartbeat
    #[arg(long, value_name = "SPAN", default_value = LEASE)]
    #[serde(default = "lease")]
    pub(crate) ttl: Span,
}

fn lease() -> Span {
    LEASE.parse().unwrap_or_else(|_| unreachable!("a literal span parses"))
}

/// The claim.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Claimed {
    /// The task.
    pub(crate) task: Task,
    /// The run that was opened.
    pub(crate) run: Run,
}

impl Verb for Claim {
    const NAME: &'static str = "claim";
    const AUDIENCE: Audience = Audience::Operator;
    const EFFECT: Effect = Effect::Write;
    type Reply = Claimed;

    async fn run(self, call: Call) -> Result<Claimed, Failure> {
        call.write(move |board, actor| {
            let claimed = board.claim(&self.task_id, self.ttl.duration(), actor)?;
            Ok(Claimed { task: claimed.task, run: claimed.run })
        })
        .await
    }

    fn show(reply: &Claimed, screen: &mut Screen) {
        screen.line(format!("Claimed {} as run {}", reply.task.id, reply.run.id));
        screen.line(format!(
            "Workspace: {}",
            reply.task.workspace_path.as_deref().unwrap_or(&reply.task.workspace)
        ));
        if let Some(expires) = reply.run.claim_expires {
            screen.line(format!(
                "The claim holds until {}; renew it with: supervisor heartbeat {}",
                crate::moment::local(expires),
                reply.task.id
            ));
        }
    }
}
