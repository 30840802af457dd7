//! `claim`: gives a ready task, and a token for its run, to a worker that this supervisor did not start.
//!
//! See decision 0101.

use std::sync::Arc;
use std::time::Duration;

use kernel::{
    Accounts, Actor, Archived, Board, ClaimTerms, Filter, Placement, Profile, Run, StopReason, Task, TaskId,
};
use rand::Rng as _;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use api::command::Command;
use api::{Call, Verb, blocking, hash_token, verb};
use base::cli_context;
use base::exit::Code;
use base::failure::Failure;
use base::terminal::{Screen, printable};
use base::time::duration::WrittenDuration;
use daemon::{Provision, provide_external};

/// Default duration of an external claim, in seconds.
const LEASE: &str = "900";

/// Time that a client waits for the reply. It is long, because the checkout of a large repository takes a while.
const MADE: Duration = Duration::from_mins(3);

/// Claim a ready task for a worker outside of the daemon
#[derive(Clone, Debug, clap::Args, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[command(after_help = "\
The claim is a lease: unless a heartbeat renews it, it expires and the task is ready
again. The task's workspace is created as for a run, and its path is printed. If
that fails, the claim is undone.

The token gives a worker's verbs for this run until it ends. A program that has
SUPERVISOR_TASK, SUPERVISOR_TOKEN and SUPERVISOR_SOCKET in its environment acts as the
worker of the run.

Exit code: 75 if --assignee is given and nothing is ready for it; 3 if nobody has that
name.

Examples:
  supervisor claim t_0123abcd
  supervisor claim --assignee my-service --ttl 15m --json")]
pub struct Claim {
    /// The task
    #[serde(default)]
    pub task_id: Option<TaskId>,
    /// The task that this assignee should start first
    #[arg(long, value_name = "NAME", conflicts_with = "task_id")]
    #[serde(default)]
    pub assignee: Option<Profile>,
    /// Duration of the claim without a heartbeat
    #[arg(long, value_name = "DURATION", default_value = LEASE)]
    #[serde(default = "lease")]
    pub ttl: WrittenDuration,
}

fn lease() -> WrittenDuration {
    LEASE.parse().unwrap_or_else(|_| unreachable!("a literal span parses"))
}

/// Stored form of a claim's reply. It has no token, so a repeated request gets the same reply with a new token.
#[derive(Debug, Serialize, Deserialize)]
struct StoredClaim {
    task: Task,
    run: Run,
    /// Hash of the run's token.
    #[serde(default)]
    token: String,
}

/// The reply: the task, its run, and the token and the socket with which a program acts as the worker of the run.
#[derive(Serialize, Deserialize)]
pub struct ClaimReply {
    pub task: Task,
    pub run: Run,
    /// Secret with which the worker reports on this run.
    pub token: String,
    /// Path of the socket that accepts the token from programs of the operator's user.
    pub socket: String,
}

/// Omits the token.
impl std::fmt::Debug for ClaimReply {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Claimed")
            .field("task", &self.task.id)
            .field("run", &self.run.id)
            .finish_non_exhaustive()
    }
}

impl Verb for Claim {
    verb! { "claim": Operator, Write => ClaimReply }

    async fn run(self, call: Call) -> Result<ClaimReply, Failure> {
        let wanted = match (self.task_id, self.assignee) {
            (Some(id), None) => ClaimTarget::Task(id),
            (None, Some(assignee)) => ClaimTarget::NextOf(assignee),
            (Some(_), Some(_)) | (None, None) => {
                return Err(Failure::usage("claim takes either a task or an assignee")
                    .hint("supervisor claim <task>, or supervisor claim --assignee <name>"));
            }
        };
        let provision = Provision::for_board(&call.service, call.board()?).await?;
        let accounts = match &wanted {
            ClaimTarget::Task(_) => Accounts::new(),
            ClaimTarget::NextOf(_) => call.service.roster().accounts(&call.service.config()),
        };
        let (token, ttl) = (draw_token(), self.ttl.duration());
        let hash = hash_token(&token);
        let named = wanted.clone();
        let kept = call
            .write(move |board, actor| {
                let terms = ClaimTerms { ttl, token_hash: Some(&hash) };
                let claimed = match &wanted {
                    ClaimTarget::Task(id) => Some(board.open_claim(id, &terms, actor)?),
                    ClaimTarget::NextOf(assignee) => {
                        board.open_next_claim(assignee, &accounts, &terms, actor)?
                    }
                };
                let Some(claimed) = claimed else { return Ok(None) };
                // A workspace whose path is already known is recorded in the same commit as the claim, because a second
                // commit would double the time.
                let given = provision.give(board, &claimed.task, &claimed.workspace)?;
                if let Some(placement) = given.place {
                    board.record_workspace(claimed.run, &placement)?;
                }
                let kernel::Claimed { task, run } = claimed.read(board)?;
                Ok(Some(StoredClaim { task, run, token: hex::encode(hash) }))
            })
            .await?;
        let Some(kept) = kept else { return Err(nothing_to_claim(&call, named).await) };
        let run = kept.run.id;
        let StoredClaim { task, run: placed, token: given } = provide(&call, kept).await?;
        if given != hex::encode(hash) {
            // The request is a repetition: the stored reply has the hash of another token. The first token cannot be
            // repeated, so the run gets a new one.
            call.write_further(move |board, actor| board.give_token(run, &hash, actor)).await?;
        }
        let socket = call.service.root().operator_socket().display().to_string();
        Ok(ClaimReply { task, run: placed, token, socket })
    }

    fn answered_within(&self) -> Duration {
        MADE
    }
}

/// Task to claim: the task with an id, or the next task of an assignee.
#[derive(Clone, Debug)]
enum ClaimTarget {
    Task(TaskId),
    NextOf(Profile),
}

/// Returns the error of a request that claimed no task: the name is unknown, or no task is ready.
async fn nothing_to_claim(call: &Call, wanted: ClaimTarget) -> Failure {
    let what = match wanted {
        ClaimTarget::Task(id) => id.to_string(),
        ClaimTarget::NextOf(assignee) => {
            let roster = call.service.roster();
            let filter = Filter {
                assignee: Some(assignee.clone()),
                archived: Archived::Show,
                limit: 1,
                ..Filter::default()
            };
            let is_here = roster.names().iter().any(|name| name == assignee.as_str());
            let has_tasks = match call.read(move |view| view.tasks(&filter)).await {
                Ok(page) => !page.tasks.is_empty(),
                Err(failure) => return failure,
            };
            if !is_here && !has_tasks {
                let hint = match roster.nearest(assignee.as_str()) {
                    Some(near) => format!("is `{near}` meant? `supervisor assignees` lists all names"),
                    None => "`supervisor assignees` lists all names".to_owned(),
                };
                let text =
                    format!("no task is assigned to `{assignee}`, and no profile or lane has this name");
                return Failure::new(Code::NotFound, text).hint(hint);
            }
            format!("no task for {assignee}")
        }
    };
    Failure::new(Code::TryAgain, format!("{what} is ready to be claimed"))
        .hint("try again later; `supervisor list --why` says what tasks wait for")
}

fn draw_token() -> String {
    let mut secret = [0_u8; 32];
    rand::rng().fill_bytes(&mut secret);
    hex::encode(secret)
}

impl Command for Claim {
    fn show(reply: &ClaimReply, screen: &mut Screen) {
        screen.line(format!("Claimed {} as run {}", reply.task.id, reply.run.id));
        screen.line(format!(
            "Workspace: {}",
            printable(reply.task.workspace_path.as_deref().unwrap_or(reply.task.workspace.as_str()))
        ));
        screen.line(format!("Socket: {}", printable(&reply.socket)));
        screen.line(format!("Token: {}", reply.token));
        if let Some(expires) = reply.run.claim_expires {
            screen.line(cli_context::repeated(&format!(
                "The claim lasts until {}; renew it with: supervisor heartbeat {}",
                base::time::timestamp::local(expires),
                reply.task.id
            )));
        }
    }
}

/// Creates the workspace of a claimed task, and records its path unless the claim has recorded it. If this fails,
/// releases the claim.
async fn provide(call: &Call, claimed: StoredClaim) -> Result<StoredClaim, Failure> {
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
    let token = claimed.token;
    call.write_further(move |board, _| {
        // A repeated request finds the path recorded, and gets the same reply.
        if !works_at(&board.expect_run(run)?, &placement) {
            board.record_workspace(run, &placement)?;
        }
        let run = board.expect_run(run)?;
        Ok(StoredClaim { task: board.expect_task(&run.task_id)?, run, token })
    })
    .await
}

/// Returns true if this workspace is recorded for the run.
fn works_at(run: &Run, placement: &Placement) -> bool {
    run.workspace_path.as_ref() == Some(&placement.path)
}
