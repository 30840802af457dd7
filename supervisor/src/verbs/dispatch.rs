//! `dispatch`: one pass over the board that waits for what it started.

use kernel::{Filter, RunId, Status, TaskId, WaitingCode};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::api::{Audience, Call, Effect, Verb};
use crate::daemon::{DispatchReport, Event, Waiting};
use crate::exit::Code;
use crate::failure::Failure;
use crate::terminal::{Cell, Screen, printable};

/// How many ready tasks a plan looks at.
const LOOK: u32 = 10_000;

/// Run what is ready, and wait for it
#[derive(Clone, Debug, Default, clap::Args, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[command(after_help = "\
With a daemon running, which starts ready tasks by itself, it waits for the live
runs. Without one it is the daemon, until nothing is left to do.

Examples:
  supervisor dispatch
  supervisor dispatch --dry-run
  supervisor dispatch --max 5 --json")]
pub(crate) struct Dispatch {
    /// Only say what would be started
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Start at most this many tasks
    #[arg(long, value_name = "N")]
    pub(crate) max: Option<usize>,
}

/// A task that was or would be started.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Spawned {
    /// The task.
    pub(crate) task_id: TaskId,
    /// Its profile.
    pub(crate) assignee: Option<String>,
    /// Its workspace.
    pub(crate) workspace: String,
    /// The run; none in a dry run.
    pub(crate) run_id: Option<RunId>,
    /// Where the task stands now.
    pub(crate) status: Option<Status>,
    /// How the run ended.
    pub(crate) outcome: Option<kernel::Outcome>,
}

/// What a pass did.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct Dispatched {
    /// What was started, or would be.
    pub(crate) spawned: Vec<Spawned>,
    /// Tasks without an assignee.
    pub(crate) skipped_unassigned: Vec<TaskId>,
    /// Tasks whose assignee nothing here can run.
    pub(crate) skipped_nonspawnable: Vec<TaskId>,
    /// Ready tasks that wait, and what for.
    pub(crate) waiting: Vec<Waiting>,
}

impl Verb for Dispatch {
    const NAME: &'static str = "dispatch";
    const AUDIENCE: Audience = Audience::Operator;
    const EFFECT: Effect = Effect::Read;
    type Reply = Dispatched;

    async fn run(self, call: Call) -> Result<Dispatched, Failure> {
        if self.dry_run {
            return plan(&call, self.max).await;
        }
        let Some(events) = call.service.daemon() else {
            return Err(Failure::new(Code::Unreachable, "no daemon is running for this root"));
        };
        let (reply, answer) = tokio::sync::oneshot::channel();
        let gone = || Failure::new(Code::TryAgain, "the daemon is stopping");
        events.send(Event::Dispatch(reply)).map_err(|_| gone())?;
        let DispatchReport { live, waiting } = answer.await.map_err(|_| gone())?;
        let spawned = live
            .into_iter()
            .filter(|run| &run.board == call.board.name())
            .map(|run| Spawned {
                task_id: run.task,
                assignee: run.profile.map(|profile| profile.to_string()),
                workspace: run.workspace,
                run_id: Some(run.run),
                status: Some(Status::Running),
                outcome: None,
            })
            .collect();
        Ok(Dispatched { spawned, waiting, ..Dispatched::default() })
    }

    fn show(reply: &Dispatched, screen: &mut Screen) {
        if reply.spawned.is_empty() {
            screen.line("Nothing to start.");
        } else {
            let rows = reply.spawned.iter().map(|one| {
                let outcome = match (one.outcome, one.run_id) {
                    (Some(outcome), _) => Cell::inked(super::runs::ink(Some(outcome)), outcome.to_string()),
                    (None, Some(run)) => Cell::from(format!("run {run}")),
                    (None, None) => Cell::from("would start".to_owned()),
                };
                [
                    Cell::from(one.task_id.to_string()),
                    Cell::or_dash(one.assignee.as_ref()),
                    outcome,
                    Cell::or_dash(one.status),
                    Cell::from(one.workspace.clone()),
                ]
            });
            screen.list(["TASK", "ASSIGNEE", "OUTCOME", "STATUS", "WORKSPACE"], rows);
        }
        for waiting in &reply.waiting {
            screen.hanging(&format!("{}  ", waiting.task), &printable(&crate::why::line(&waiting.why)));
        }
    }
}

async fn plan(call: &Call, max: Option<usize>) -> Result<Dispatched, Failure> {
    let lanes = call.service.lanes()?;
    let limits = call.service.config().limits.clone();
    let (ready, open, unassigned) = call
        .read(|view| {
            let idle = Filter { status: Some(Status::Ready), limit: LOOK, ..Filter::default() };
            let unassigned = view.tasks(&idle)?.tasks.into_iter().filter(|task| task.assignee.is_none());
            let unassigned: Vec<TaskId> = unassigned.map(|task| task.id).collect();
            Ok((view.ready(LOOK as usize, &kernel::Skip::default())?, view.open_runs()?, unassigned))
        })
        .await?;
    let free = limits.total().saturating_sub(open.len());
    let room = max.unwrap_or(usize::MAX).min(free);
    let mut plan = Dispatched { skipped_unassigned: unassigned, ..Dispatched::default() };
    for candidate in ready {
        let assignee = &candidate.assignee;
        if lanes.get(assignee).is_none() {
            plan.skipped_nonspawnable.push(candidate.task);
        } else if plan.spawned.len() < room {
            plan.spawned.push(Spawned {
                assignee: Some(assignee.to_string()),
                task_id: candidate.task,
                workspace: candidate.workspace,
                run_id: None,
                status: None,
                outcome: None,
            });
        } else {
            plan.waiting.push(Waiting {
                board: call.board.name().clone(),
                task: candidate.task,
                why: if plan.spawned.len() < free {
                    kernel::Waiting::new(
                        WaitingCode::Pass,
                        "waits for another pass: this one starts no more (--max)",
                    )
                } else {
                    let text = format!("waits for a slot: {} may run at once", limits.total());
                    kernel::Waiting::new(WaitingCode::Slot, text)
                },
            });
        }
    }
    Ok(plan)
}
