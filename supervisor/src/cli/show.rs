//! `show` at the command line. Adds the state of a running task's worker, and with --verbose the sandbox of the last
//! run.

use kernel::Status;

use crate::client::Client;
use crate::output::Output;
use api::command::Command as _;
use base::failure::Failure;
use base::terminal::{Screen, printable};
use verbs::{Show, ShownTask, show_sandbox};

pub(super) async fn run(client: &Client, mut show: Show, output: Output) -> Result<u8, Failure> {
    if output.json() {
        return super::call(client, show, output).await;
    }
    show.localize(client.here())?;
    let shown = client.call(&show).await?;
    let mut screen = output.screen();
    Show::show(&shown, &mut screen);
    if show.verbose {
        show_sandbox(&shown, &mut screen);
    }
    // A worker is not shown its own state.
    if shown.task.status == Status::Running && client.worker().is_none() {
        show_worker(client, &shown, &mut screen).await;
    }
    output.text(&screen.into_text())?;
    Ok(0)
}

/// Shows the state of a task's worker. Shows nothing if the daemon does not respond.
async fn show_worker(client: &Client, shown: &ShownTask, screen: &mut Screen) {
    let asked = verbs::Status { tenant: shown.task.tenant.clone(), ..verbs::Status::default() };
    let Ok(report) = client.call(&asked).await else { return };
    if let Some(worker) = report.workers.iter().find(|worker| worker.run.task == shown.task.id) {
        screen.heading("Worker");
        screen.hanging("  ", &printable(&worker.state_line()));
    }
}
