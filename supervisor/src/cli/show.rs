//! `show` at the command line: with --verbose what confined the last run stands below the rest.

use crate::client::Client;
use crate::command::Command as _;
use crate::failure::Failure;
use crate::output::Output;
use crate::verbs::{Show, show_sandbox};

pub(super) async fn run(client: &Client, mut show: Show, output: Output) -> Result<u8, Failure> {
    if !show.verbose || output.json() {
        return super::call(client, show, output).await;
    }
    show.localize(client.here())?;
    let shown = client.call(&show).await?;
    let mut screen = output.screen();
    Show::show(&shown, &mut screen);
    show_sandbox(&shown, &mut screen);
    output.text(&screen.into_text())?;
    Ok(0)
}
