//! `dispatch`: starts the ready tasks of a board once and waits for their runs.

use std::sync::Arc;

use kernel::{
    BoardName, Clock as _, EventKind, Filter, Holder, Reach, Run, RunId, Status, TaskId, WaitingCode,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use api::command::Command;
use api::{Call, Verb, flag, verb};
use base::exit::Code;
use base::failure::Failure;
use base::terminal::{Cell, Screen, printable};
use daemon::{
    Capacity, ClaimInputs, Claimant, Event, OwnerLink, RosterAndConfig, StartClaim, TaskKey, UnadmittedTask,
    scan,
};
use host::headroom;
use setup::roster::Roster;

/// Limit on the ready tasks of a plan.
const LOOK: u32 = 10_000;

/// Run ready tasks and wait for them
#[derive(Clone, Debug, Default, clap::Args, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[command(after_help = "\
With a running daemon, which starts ready tasks by itself, dispatch waits for the live
runs. Without one, it acts as the daemon until nothing is left to do.

Exit code: 0 if all that it started is done, else that of the first task that is
not, as `wait` has it.

Examples:
  supervisor dispatch
  supervisor dispatch --dry-run
  supervisor dispatch --max 5 --failure-limit 2 --json")]
pub struct Dispatch {
    /// Print what would start, and start nothing
    #[arg(long)]
    #[serde(deserialize_with = "flag")]
    pub dry_run: bool,
    /// Start at most this many tasks
    #[arg(long, value_name = "N")]
    pub max: Option<usize>,
    /// Block a task after this many counted failures in a row; a running daemon keeps its own limit
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub failure_limit: Option<u32>,
}

/// A task that was or would be started.
#[derive(Debug, Serialize, Deserialize)]
pub struct Spawned {
    pub task_id: TaskId,
    pub assignee: Option<String>,
    pub workspace: String,
    /// The run; none in a dry run.
    pub run_id: Option<RunId>,
    pub status: Option<Status>,
    pub outcome: Option<kernel::Outcome>,
    /// Reason of the failed start.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// A task that waits for its profile.
#[derive(Debug, Serialize, Deserialize)]
pub struct Capped {
    pub task_id: TaskId,
    pub assignee: String,
    /// Number of the profile's tasks that run.
    pub current: usize,
    /// The reason in the form of all other lists of waiting tasks.
    #[serde(default)]
    pub why: Option<kernel::Waiting>,
}

#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Dispatched {
    /// Number of reclaimed tasks.
    #[serde(default)]
    pub reclaimed: usize,
    /// Tasks with a run that crashed.
    #[serde(default)]
    pub crashed: Vec<TaskId>,
    /// Tasks with a run that took too long.
    #[serde(default)]
    pub timed_out: Vec<TaskId>,
    /// Tasks with a run that made no progress.
    #[serde(default)]
    pub(crate) stale: Vec<TaskId>,
    #[serde(default)]
    pub(crate) auto_blocked: Vec<TaskId>,
    /// Number of tasks that became ready.
    #[serde(default)]
    pub promoted: usize,
    /// Runs that were started, or would be.
    pub spawned: Vec<Spawned>,
    /// Tasks without an assignee.
    pub skipped_unassigned: Vec<TaskId>,
    /// Tasks with an assignee that nothing on this host can run.
    pub skipped_nonspawnable: Vec<TaskId>,
    /// Tasks of profiles that have reached their limit of running tasks.
    #[serde(default)]
    pub skipped_per_profile_capped: Vec<Capped>,
    /// Always empty: there is no default assignee. Clients expect the field.
    #[serde(default)]
    pub(crate) auto_assigned_default: Vec<TaskId>,
    /// Ready tasks that wait, each with its reason.
    pub waiting: Vec<UnadmittedTask>,
}

impl Dispatched {
    /// Adds an event of the pass to the counts.
    pub fn count(&mut self, event: &kernel::Event) {
        let tasks = match event.kind.parse() {
            Ok(EventKind::Reclaimed) => return self.reclaimed += 1,
            Ok(EventKind::Promoted) => return self.promoted += 1,
            Ok(EventKind::Crashed) => &mut self.crashed,
            Ok(EventKind::TimedOut) => &mut self.timed_out,
            Ok(EventKind::Stalled) => &mut self.stale,
            Ok(EventKind::GaveUp) => &mut self.auto_blocked,
            Ok(_) | Err(_) => return,
        };
        tasks.extend(event.task_id.clone().filter(|task| !tasks.contains(task)));
    }
}

impl Verb for Dispatch {
    verb! { "dispatch": Operator, Read => Dispatched }

    async fn run(self, call: Call) -> Result<Dispatched, Failure> {
        if self.dry_run {
            return plan(&call, self.max).await;
        }
        let Some(daemon) = OwnerLink::from_service(&call.service) else {
            return Err(Failure::new(Code::Unreachable, "no daemon is running for this root"));
        };
        let live = daemon.ask(Event::Look).await?.live;
        let board = call.board()?.name();
        let spawned = live
            .into_iter()
            .filter(|run| run.board == *board)
            .map(|run| Spawned {
                task_id: run.task,
                assignee: run.profile.map(|profile| profile.to_string()),
                workspace: run.workspace.into(),
                run_id: Some(run.run),
                status: Some(Status::Running),
                outcome: None,
                error: None,
            })
            .collect();
        Ok(Dispatched { spawned, ..plan(&call, Some(0)).await? })
    }
}

impl Command for Dispatch {
    fn show(reply: &Dispatched, screen: &mut Screen) {
        if reply.spawned.is_empty() {
            screen.line("Nothing to start.");
        } else {
            let rows = reply.spawned.iter().map(|one| {
                let outcome = match (one.outcome, one.run_id) {
                    (Some(outcome), _) => Cell::inked(super::list::ink(Some(outcome)), outcome.to_string()),
                    (None, Some(run)) => Cell::from(format!("run {run}")),
                    (None, None) => Cell::from("would start".to_owned()),
                };
                let row = [
                    Cell::from(one.task_id.to_string()),
                    Cell::or_dash(one.assignee.as_ref()),
                    outcome,
                    Cell::or_dash(one.status),
                    Cell::from(one.workspace.clone()),
                ];
                (row, vec![one.error.iter().map(|error| printable(error)).collect()])
            });
            let header = ["TASK", "ASSIGNEE", "OUTCOME", "STATUS", "WORKSPACE"];
            let rows: Vec<([Cell; 5], Vec<Vec<String>>)> = rows.collect();
            let cells: Vec<[Cell; 5]> = rows.iter().map(|(row, _)| row.clone()).collect();
            if screen.fits(&header, &cells) {
                screen.list_with_details(header, rows);
            } else {
                // A path gets a line of its own, where it is not cut: a cut path is useless.
                let short =
                    rows.into_iter().map(|([task, assignee, outcome, status, workspace], mut below)| {
                        below.insert(0, vec![workspace.text().to_owned()]);
                        ([task, assignee, outcome, status], below)
                    });
                screen.list_with_details(["TASK", "ASSIGNEE", "OUTCOME", "STATUS"], short.collect());
            }
        }
        for capped in &reply.skipped_per_profile_capped {
            let why = capped.why.as_ref().map(upkeep::diagnosis::why::line).unwrap_or_default();
            screen.hanging(&format!("{}  ", capped.task_id), &printable(&why));
        }
        for waiting in &reply.waiting {
            screen.hanging(
                &format!("{}  ", waiting.task),
                &printable(&upkeep::diagnosis::why::line(&waiting.why)),
            );
        }
    }
}

/// Returns the daemon's free slots; without a daemon, the slots beside the runs that are still active.
async fn room(call: &Call, roster: Arc<Roster>) -> Result<Capacity, Failure> {
    if let Some(daemon) = OwnerLink::from_service(&call.service) {
        return daemon.ask(Event::Room).await;
    }
    let board = call.board()?.name().clone();
    let config = call.service.config();
    let (name, holds) = (board.clone(), call.read(|view| view.holds()).await?);
    let running = call
        .read(move |view| {
            let ours = view.open_runs()?.into_iter().filter(|run| run.holder == Holder::Supervisor);
            let claim = |run: Run| {
                let task = view.expect_task(&run.task_id)?;
                let key = TaskKey { board: board.clone(), task: run.task_id };
                let asked = ClaimInputs { policy: run.policy.as_deref(), ..ClaimInputs::by(&task) };
                let claimant = Claimant { tenant: run.tenant, profile: run.profile };
                Ok(StartClaim::new(
                    key,
                    claimant,
                    asked,
                    RosterAndConfig { roster: &roster, config: &config },
                ))
            };
            ours.map(claim).collect::<Result<Vec<StartClaim>, kernel::Error>>()
        })
        .await?;
    let room = Capacity::with_running(&running, call.service.config()).measured(headroom::read);
    let room = room.keeping(&name, &holds, kernel::SystemClock.now());
    let service = Arc::clone(&call.service);
    let others = tokio::task::spawn_blocking(move || {
        // A board that cannot be read counts as one with tenants.
        let has_tenants = |board: &BoardName| {
            let board = service.board(board).map_err(drop)?;
            board.readers().with(|view| view.has_tenants()).map_err(drop)
        };
        let names = service.board_names().unwrap_or_default();
        names.iter().filter(|board| **board != name).any(|board| has_tenants(board) != Ok(false))
    });
    let is_shared = others.await.map_err(|e| Failure::failed(format!("the boards were not read: {e}")))?;
    Ok(if is_shared { room.shared() } else { room })
}

/// Returns the plan of a pass: the same rules as the daemon's, and the same reasons.
async fn plan(call: &Call, max: Option<usize>) -> Result<Dispatched, Failure> {
    let service = Arc::clone(&call.service);
    let examined = tokio::task::spawn_blocking(move || service.roster_of_host()).await;
    let roster = examined.map_err(|e| Failure::failed(format!("the host was not examined: {e}")))?;
    let config = call.service.config();
    let mut room = room(call, Arc::clone(&roster)).await?.limited(max);
    let board = call.board()?.name().clone();
    call.read(move |view| {
        let looked = scan(view, &board, &mut room, &roster)?;
        let mut plan = Dispatched::default();
        for (candidate, _) in looked.admitted {
            plan.spawned.push(Spawned {
                assignee: Some(candidate.assignee.to_string()),
                task_id: candidate.task,
                workspace: candidate.workspace.into(),
                run_id: None,
                status: None,
                outcome: None,
                error: None,
            });
        }
        let ready = Filter { statuses: vec![Status::Ready], limit: LOOK, ..Filter::default() };
        let mut left = view.tasks(&ready)?.tasks;
        left.retain(|task| plan.spawned.iter().all(|one| one.task_id != task.id));
        let reasons = view.waiting_all(&left, &roster.accounts(&config))?;
        for (task, why) in left.into_iter().zip(reasons) {
            let Some(profile) = task.assignee.clone() else {
                plan.skipped_unassigned.push(task.id);
                continue;
            };
            let policy = task.policy.as_deref();
            match roster.resolve(&profile, policy, &config) {
                Ok(_) => {}
                // An external worker may claim a task whose assignee is no profile and no lane.
                Err(why) if why.is_unknown() => {
                    plan.skipped_nonspawnable.push(task.id);
                    continue;
                }
                Err(why) => {
                    let why = why.waiting();
                    plan.waiting.push(UnadmittedTask { board: board.clone(), task: task.id, why });
                    continue;
                }
            }
            let key = TaskKey { board: board.clone(), task: task.id.clone() };
            let claimant = Claimant { tenant: task.tenant.clone(), profile: Some(profile.clone()) };
            let known = RosterAndConfig { roster: &roster, config: &config };
            let claim = StartClaim::new(key, claimant, ClaimInputs::by(&task), known);
            let refusal = room.refusal(&claim);
            match (why, refusal, room.full_profile(&claim)) {
                (None, Some(refusal), Some(current)) if refusal.reach == Reach::Profile => {
                    let assignee = profile.to_string();
                    let capped = Capped { task_id: task.id, assignee, current, why: Some(*refusal.why) };
                    plan.skipped_per_profile_capped.push(capped);
                }
                (why, refusal, _) => {
                    let why = why.or(refusal.map(|refusal| *refusal.why));
                    // Nothing refuses the task, so others come before it in the order of starts.
                    let turn = || {
                        kernel::Waiting::new(
                            WaitingCode::Turn,
                            "waits for its turn: tasks before it start first",
                        )
                    };
                    let why = why.unwrap_or_else(turn);
                    plan.waiting.push(UnadmittedTask { board: board.clone(), task: task.id, why });
                }
            }
        }
        Ok(plan)
    })
    .await
}
