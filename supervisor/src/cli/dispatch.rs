//! `dispatch` at the command line: asks the daemon, or runs as one until no work is left.

use std::io::IsTerminal as _;
use std::time::Duration;

use kernel::{Event, EventId, EventKind, Holder, Run, WaitingCode};

use super::settling::newest;
use super::{outcome, pages};
use crate::client::Client;
use crate::mcp;
use crate::output::{LogFormat, Output, start_log};
use crate::resources::surface;
use base::cli_context;
use base::exit::Code;
use base::failure::Failure;
use base::owner::{OwnerLock, Ownership};
use base::terminal::complain;
use daemon::{DaemonMode, TaskKey};
use setup::config::Tuning;
use verbs::{Dispatch, Dispatched, Events, Runs, Show, ShownTask, Spawned};

/// Time after which a person at a terminal is told why the command waits.
const LONG: Duration = Duration::from_secs(2);

pub(super) async fn run(client: &Client, verb: Dispatch, output: Output) -> Result<u8, Failure> {
    if verb.dry_run {
        let plan = client.call(&verb).await?;
        return output.reply::<Dispatch>(&plan);
    }
    let pass = std::pin::pin!(pass(client, verb));
    let (dispatched, code) = patiently(pass).await?;
    output.reply::<Dispatch>(&dispatched)?;
    Ok(code)
}

/// Makes a pass. Returns its report, and the first exit code that is not 0 among the tasks that it ran.
async fn pass(client: &Client, verb: Dispatch) -> Result<(Dispatched, u8), Failure> {
    let ownership = OwnerLock::ownership(client.root());
    if ownership == Ownership::Free {
        return be_the_daemon(client, &verb).await;
    }
    if verb.failure_limit.is_some() {
        complain("warning: the running daemon keeps its own failure limit: worker.failure_limit");
    }
    let before = newest(client).await?;
    let asked = client.call(&verb).await;
    let mut dispatched = asked.map_err(|failure| of_a_member(failure, ownership, client))?;
    let mut code = 0;
    for spawned in &mut dispatched.spawned {
        let came_to = wait_for(client, spawned).await?;
        code = first_failure(code, came_to);
    }
    for event in since(client, before).await? {
        dispatched.count(&event);
    }
    Ok((dispatched, code))
}

/// Adds a hint to the error of a pass in a root of another user, whose daemon starts tasks anyway.
fn of_a_member(failure: Failure, ownership: Ownership, client: &Client) -> Failure {
    if failure.code != Code::NotPermitted || ownership != Ownership::Hidden {
        return failure;
    }
    let root = client.root().dir().display();
    Failure::new(Code::NotPermitted, format!("only the user that owns {root} dispatches"))
        .hint("its daemon starts tasks by itself; `supervisor list --why` says what yours wait for")
}

/// Returns the first exit code that is not 0.
fn first_failure(before: u8, next: u8) -> u8 {
    if before == 0 { next } else { before }
}

/// Returns the exit code of a task, or of its run if the task continues by itself.
fn code_of(shown: &ShownTask, run: &Run) -> u8 {
    outcome::after_run(shown, run)
}

/// Waits for a pass. Tells a person the reason if it takes long.
async fn patiently<T>(mut pass: impl Future<Output = T> + Unpin) -> T {
    tokio::select! {
        // Cancel-safe: the pass is only borrowed, and continues below.
        done = &mut pass => return done,
        () = tokio::time::sleep(LONG) => {}
    }
    if std::io::stderr().is_terminal() {
        complain(&cli_context::repeated(
            "Waiting for workers; `supervisor status` in another terminal shows them.",
        ));
    }
    pass.await
}

/// Waits for the end of a run that a daemon started. Returns the exit code of its task.
async fn wait_for(client: &Client, spawned: &mut Spawned) -> Result<u8, Failure> {
    let mut events = Events { task: Some(spawned.task_id.clone()), limit: 1000, ..Events::default() };
    loop {
        // The cursor is read before the runs, so that an end in between ends the wait early.
        events.since = client.call(&events).await?.cursor;
        let runs = Runs { task_id: Some(spawned.task_id.clone()), ..Runs::default() };
        let (runs, _) = pages::all(client, &runs).await?;
        let run = runs.into_iter().find(|run| Some(run.id) == spawned.run_id);
        match run {
            Some(run) if run.ended_at.is_none() => events.wait = 30,
            Some(run) => {
                let shown =
                    client.call(&Show { task_id: Some(spawned.task_id.clone()), ..Show::default() }).await?;
                let code = code_of(&shown, &run);
                spawned.status = Some(shown.task.status);
                spawned.outcome = run.outcome;
                spawned.error = run.error;
                return Ok(code);
            }
            None => return Ok(0),
        }
    }
}

/// Returns the report of a pass about an event.
async fn since(client: &Client, before: EventId) -> Result<Vec<Event>, Failure> {
    use EventKind as E;
    let kinds = [E::Claimed, E::Reclaimed, E::Crashed, E::TimedOut, E::Stalled, E::GaveUp, E::Promoted];
    let kinds = kinds.map(|kind| kind.to_string()).to_vec();
    let mut events = Events { since: before, limit: 10_000, kinds, ..Events::default() };
    let mut all = Vec::new();
    loop {
        let page = client.call(&events).await?;
        let full = page.events.len() == 10_000;
        events.since = page.cursor;
        all.extend(page.events);
        if !full {
            return Ok(all);
        }
    }
}

async fn be_the_daemon(client: &Client, verb: &Dispatch) -> Result<(Dispatched, u8), Failure> {
    let before = newest(client).await?;
    if base::environment::variable("RUST_LOG").is_some() {
        start_log(Output::new(false, base::terminal::Colour::Never), "info", LogFormat::Text);
    }
    let tuning = Tuning { failure_limit: verb.failure_limit, ..Tuning::default() };
    let known = daemon::run(
        client.root().clone(),
        DaemonMode::UntilIdle(verb.max),
        tuning,
        mcp::mount(surface()),
        || {},
    )
    .await?;
    let mut dispatched = Dispatched::default();
    let mut code = 0;
    for event in since(client, before).await? {
        dispatched.count(&event);
        let kind = event.kind.parse();
        let (Some(run_id), Some(task_id), Ok(EventKind::Claimed)) = (event.run_id, event.task_id, kind)
        else {
            continue;
        };
        let runs = Runs { task_id: Some(task_id.clone()), ..Runs::default() };
        let (runs, _) = pages::all(client, &runs).await?;
        let Some(run) = runs.into_iter().find(|run| run.id == run_id && run.holder == Holder::Supervisor)
        else {
            continue;
        };
        let show = Show { task_id: Some(task_id.clone()), ..Show::default() };
        let shown = client.call(&show).await?;
        code = first_failure(code, code_of(&shown, &run));
        dispatched.spawned.push(Spawned {
            task_id,
            assignee: run.profile.map(|profile| profile.to_string()),
            workspace: shown.task.workspace,
            run_id: Some(run_id),
            status: Some(shown.task.status),
            outcome: run.outcome,
            error: run.error,
        });
    }
    let left = client.call(&Dispatch { dry_run: true, max: Some(0), ..Dispatch::default() }).await?;
    dispatched.skipped_unassigned = left.skipped_unassigned;
    dispatched.skipped_nonspawnable = left.skipped_nonspawnable;
    dispatched.skipped_per_profile_capped = left.skipped_per_profile_capped;
    dispatched.waiting = left.waiting;
    // Without the pass nothing is broken, and its end is all that the plan sees.
    let is_bare = |why: &kernel::Waiting| matches!(why.code, WaitingCode::Turn | WaitingCode::Pass);
    for waiting in dispatched.waiting.iter_mut().filter(|waiting| is_bare(&waiting.why)) {
        let key = TaskKey { board: waiting.board.clone(), task: waiting.task.clone() };
        if let Some(why) = known.get(&key) {
            waiting.why = why.clone();
        }
    }
    Ok((dispatched, code))
}
