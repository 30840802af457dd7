//! `dispatch` at the command line: asks a daemon, or is one until nothing is left to do.

use kernel::{EventId, Holder};

use super::Output;
use crate::client::Client;
use crate::daemon::{self, Extent};
use crate::failure::Failure;
use crate::owner::OwnerLock;
use crate::verbs::{Dispatch, Dispatched, Events, Runs, Show, Spawned};

pub(super) async fn run(client: &Client, verb: Dispatch, output: Output) -> Result<u8, Failure> {
    if verb.dry_run {
        let plan = client.call(&verb).await?;
        return output.reply::<Dispatch>(&plan);
    }
    let dispatched = if OwnerLock::holder(client.root()).is_some() {
        let mut dispatched = client.call(&verb).await?;
        for spawned in &mut dispatched.spawned {
            wait_for(client, spawned).await?;
        }
        dispatched
    } else {
        be_the_daemon(client, verb.max).await?
    };
    output.reply::<Dispatch>(&dispatched)
}

/// Waits until a run that a daemon has started is over.
async fn wait_for(client: &Client, spawned: &mut Spawned) -> Result<(), Failure> {
    let mut events = Events { task: Some(spawned.task_id.clone()), limit: 1000, ..Events::default() };
    loop {
        // The cursor is taken before the look, so that an end in between cuts the wait short.
        events.since = client.call(&events).await?.cursor;
        let runs = client.call(&Runs { task_id: Some(spawned.task_id.clone()) }).await?;
        let run = runs.into_iter().find(|run| Some(run.id) == spawned.run_id);
        match run {
            Some(run) if run.ended_at.is_none() => events.wait = 30,
            Some(run) => {
                spawned.outcome = run.outcome;
                let shown = client.call(&Show { task_id: Some(spawned.task_id.clone()) }).await?;
                spawned.status = Some(shown.task.status);
                return Ok(());
            }
            None => return Ok(()),
        }
    }
}

async fn be_the_daemon(client: &Client, max: Option<usize>) -> Result<Dispatched, Failure> {
    let newest = Events { since: EventId(i64::MAX), limit: 1, ..Events::default() };
    let before = client.call(&newest).await?.last_event;
    if std::env::var_os("RUST_LOG").is_some() {
        super::start_log(Output { json: false, colour: crate::terminal::Colour::Never });
    }
    daemon::run(client.root().clone(), Extent::UntilIdle(max), || {}).await?;
    let mut dispatched = Dispatched::default();
    let mut events =
        Events { since: before, limit: 10_000, kinds: vec!["claimed".to_owned()], ..Events::default() };
    loop {
        let page = client.call(&events).await?;
        let full = page.events.len() == 10_000;
        events.since = page.cursor;
        for event in page.events {
            let Some(run_id) = event.run_id else { continue };
            let runs = client.call(&Runs { task_id: Some(event.task_id.clone()) }).await?;
            let Some(run) = runs.into_iter().find(|run| run.id == run_id && run.hand == Holder::Supervisor)
            else {
                continue;
            };
            let shown = client.call(&Show { task_id: Some(event.task_id.clone()) }).await?;
            dispatched.spawned.push(Spawned {
                task_id: event.task_id,
                assignee: run.profile.map(|profile| profile.to_string()),
                workspace: shown.task.workspace,
                run_id: Some(run_id),
                status: Some(shown.task.status),
                outcome: run.outcome,
            });
        }
        if !full {
            break;
        }
    }
    let left = client.call(&Dispatch { dry_run: true, max: Some(0) }).await?;
    dispatched.skipped_unassigned = left.skipped_unassigned;
    dispatched.skipped_nonspawnable = left.skipped_nonspawnable;
    dispatched.waiting = left.waiting;
    Ok(dispatched)
}
