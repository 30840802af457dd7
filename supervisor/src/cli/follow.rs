//! Commands that run until they are interrupted or their task is over: `watch`, `tail`, `status --watch`.

use std::io::IsTerminal as _;
use std::time::Duration;

use kernel::{EventId, Profile, TaskId, Tenant};

use super::{CommandLine, outcome};
use crate::client::Client;
use crate::output::Output;
use api::command::Command as _;
use base::failure::Failure;
use base::terminal::reader_is_gone;
use verbs::{EventPage, Events, Show, Status, event_line, starts_later};

/// Time that a request waits at the daemon.
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
    /// Ignored: events are shown as they happen
    #[arg(long, value_name = "SECONDS")]
    interval: Option<f64>,
    /// Start after this event instead of now
    #[arg(long, value_name = "ID")]
    since: Option<EventId>,
}

/// Follow the events of a task until it ends or waits for a person
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "\
It ends when `wait` would, and exits as that does: with 0 if the task is done.

Examples:
  supervisor tail t_0123abcd")]
pub(super) struct Tail {
    /// The task
    task_id: TaskId,
    /// Ignored: events are shown as they happen
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
        base::terminal::complain("Watching for events; press Ctrl-C to stop.");
    }
    stream(client, events, output).await
}

pub(super) async fn tail(line: &CommandLine, tail: Tail) -> Result<u8, Failure> {
    let (client, output) = (&line.client()?, line.output);
    let task = client.whole_ids(&[tail.task_id]).await?.pop();
    let show = Show { task_id: task.clone(), ..Show::default() };
    let mut events = Events { task, limit: 1000, ..Events::default() };
    loop {
        // The status is read before the events, so the events of a final status are complete.
        let shown = client.call(&show).await?;
        let over = outcome::of_task(&shown);
        events.wait = if over.is_some() { 0 } else { WAIT_SECONDS };
        let page = client.call(&events).await?;
        tell(&page, output)?;
        if reader_is_gone() {
            return Ok(0);
        }
        events.since = page.cursor;
        if let Some(code) = over.filter(|_| page.events.is_empty()) {
            return Ok(code);
        }
    }
}

async fn stream(client: &Client, mut events: Events, output: Output) -> Result<u8, Failure> {
    loop {
        let page = client.call(&events).await?;
        tell(&page, output)?;
        if reader_is_gone() {
            return Ok(0);
        }
        events.since = page.cursor;
        events.wait = WAIT_SECONDS;
    }
}

/// Prints the events of a page.
fn tell(page: &EventPage, output: Output) -> Result<(), Failure> {
    if let Some(horizon) = &page.folded {
        base::terminal::complain(&starts_later(horizon));
    }
    for event in &page.events {
        if output.json() {
            output.value(event)?;
        } else {
            let mut screen = output.screen();
            event_line(event, &mut screen);
            output.text(&screen.into_text())?;
        }
    }
    Ok(())
}

pub(super) async fn status(client: &Client, status: Status, output: Output) -> Result<u8, Failure> {
    let nothing = || status.without_root(client.root(), client.board()).filter(|_| client.worker().is_none());
    if !status.watch {
        return match nothing() {
            Some(report) => output.reply::<Status>(&report),
            None => super::call(client, status, output).await,
        };
    }
    let interval = Duration::try_from_secs_f64(status.interval).map_err(|_| {
        Failure::usage(format!("{} is not a valid interval", status.interval))
            .hint("use a positive number of seconds, such as 0.5")
    })?;
    loop {
        let report = match nothing() {
            Some(report) => report,
            None => client.call(&status).await?,
        };
        if output.json() {
            output.value(&report)?;
        } else {
            let mut screen = output.screen();
            Status::show(&report, &mut screen);
            if std::io::stdout().is_terminal() {
                // Cursor home, each line cleared to its end, then everything below: this avoids flicker.
                let text = screen.into_page().replace('\n', "\x1b[K\n");
                output.text(&format!("\x1b[H{text}\x1b[J"))?;
            } else {
                output.text(&format!("{}\n", screen.into_text()))?;
            }
        }
        if reader_is_gone() {
            return Ok(0);
        }
        tokio::time::sleep(interval.max(Duration::from_millis(100))).await;
    }
}
