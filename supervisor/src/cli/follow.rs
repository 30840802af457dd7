//! What goes on until it is interrupted: `watch`, `tail`, `log --follow`, `status --watch`.

use std::time::Duration;

use kernel::{EventId, Profile, TaskId, Tenant};

use super::CommandLine;
use crate::client::Client;
use crate::command::Command as _;
use crate::failure::Failure;
use crate::output::Output;
use crate::verbs::{Events, Log, Runs, Show, Status, event_line, starts_later};

/// How long one question waits at the daemon.
const WAIT_SECONDS: u64 = 30;

/// Follow the events of the whole board
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "\
Examples:
  supervisor watch
  supervisor watch --tenant acme --kinds completed,blocked
  supervisor watch --json | jq .kind")]
pub(super) struct Watch {
    /// Only tasks of this assignee
    #[arg(long, value_name = "NAME")]
    assignee: Option<Profile>,
    /// Only tasks of this tenant
    #[arg(long, value_name = "NAME")]
    tenant: Option<Tenant>,
    /// Only these kinds, separated by commas
    #[arg(long, value_name = "KINDS", value_delimiter = ',')]
    kinds: Vec<String>,
    /// Not needed: events are shown as they happen
    #[arg(long, value_name = "SECONDS")]
    interval: Option<f64>,
    /// Start after this event instead of now
    #[arg(long, value_name = "ID")]
    since: Option<EventId>,
}

/// Follow the events of one task
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "\
Examples:
  supervisor tail t_0123abcd")]
pub(super) struct Tail {
    /// The task
    task_id: TaskId,
    /// Not needed: events are shown as they happen
    #[arg(long, value_name = "SECONDS")]
    interval: Option<f64>,
}

pub(super) async fn watch(line: &CommandLine, watch: Watch) -> Result<u8, Failure> {
    let (client, output) = (&line.client()?, line.output);
    let since = if let Some(since) = watch.since {
        since
    } else {
        let newest = Events { since: EventId(i64::MAX), limit: 1, ..Events::default() };
        client.call(&newest).await?.last_event
    };
    let events = Events {
        since,
        limit: 1000,
        assignee: watch.assignee,
        tenant: watch.tenant,
        kinds: watch.kinds,
        ..Events::default()
    };
    if !output.json() {
        crate::terminal::complain("Watching for events; press Ctrl-C to stop.");
    }
    stream(client, events, output).await
}

pub(super) async fn tail(line: &CommandLine, tail: Tail) -> Result<u8, Failure> {
    let (client, output) = (&line.client()?, line.output);
    client.call(&Show { task_id: Some(tail.task_id.clone()), ..Show::default() }).await?;
    let events = Events { task: Some(tail.task_id), limit: 1000, ..Events::default() };
    stream(client, events, output).await
}

async fn stream(client: &Client, mut events: Events, output: Output) -> Result<u8, Failure> {
    loop {
        let page = client.call(&events).await?;
        if let Some(horizon) = &page.folded {
            crate::terminal::complain(&starts_later(horizon));
        }
        events.since = page.cursor;
        events.wait = WAIT_SECONDS;
        for event in &page.events {
            if output.json() {
                output.value(event)?;
            } else {
                let mut screen = output.screen();
                event_line(event, &mut screen);
                output.text(&screen.into_text())?;
            }
        }
    }
}

/// Waits until there is something to follow.
async fn first_run(client: &Client, log: &Log) -> Result<(), Failure> {
    let runs = Runs { task_id: log.task_id.clone(), ..Runs::default() };
    let mut events = Events { task: log.task_id.clone(), limit: 1000, ..Events::default() };
    while client.call(&runs).await?.split().0.is_empty() {
        if events.wait == 0 {
            crate::terminal::complain("The task has not started yet; waiting. Press Ctrl-C to stop.");
        }
        // The cursor is taken before the next look, so that a start in between cuts the wait short.
        events.since = client.call(&events).await?.cursor;
        events.wait = WAIT_SECONDS;
    }
    Ok(())
}

pub(super) async fn log(client: &Client, mut log: Log, output: Output) -> Result<u8, Failure> {
    if !log.follow {
        return super::call(client, log, output).await;
    }
    log.localize(client.here())?;
    if log.run.is_none() {
        first_run(client, &log).await?;
    }
    let mut waiting = Events { task: log.task_id.clone(), limit: 1000, ..Events::default() };
    loop {
        let piece = client.call(&log).await?;
        log.run = piece.run_id;
        log.offset = Some(piece.next_offset);
        if output.json() {
            output.value(&piece)?;
        } else {
            output.text(&crate::terminal::printable_output(&piece.text))?;
        }
        if piece.ended && piece.text.is_empty() {
            return Ok(0);
        }
        // The log itself announces nothing; the end of the run is an event and cuts the wait short.
        waiting.wait = 1;
        waiting.since = client.call(&waiting).await?.cursor;
    }
}

pub(super) async fn status(client: &Client, status: Status, output: Output) -> Result<u8, Failure> {
    if !status.watch {
        return super::call(client, status, output).await;
    }
    let interval = Duration::try_from_secs_f64(status.interval).map_err(|_| {
        Failure::usage(format!("{} is not a valid interval", status.interval))
            .hint("use a positive number of seconds, such as 0.5")
    })?;
    loop {
        let report = client.call(&status).await?;
        if output.json() {
            output.value(&report)?;
        } else {
            let mut screen = output.screen();
            Status::show(&report, &mut screen);
            // Home, the lines each cleared to their end, then everything below: no flicker.
            let text = screen.into_page().replace('\n', "\x1b[K\n");
            output.text(&format!("\x1b[H{text}\x1b[J"))?;
        }
        tokio::time::sleep(interval.max(Duration::from_millis(100))).await;
    }
}
