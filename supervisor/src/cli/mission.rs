//! `mission` at the command line: goals that are divided into tasks, with limits for all of these together.

use super::call;
use crate::client::Client;
use crate::output::Output;
use api::command::Command as _;
use base::failure::Failure;
use verbs::CreateMission;

pub(super) async fn create(
    client: &Client,
    mut create: CreateMission,
    output: Output,
) -> Result<u8, Failure> {
    if !create.quiet {
        return call(client, create, output).await;
    }
    create.localize(client.here())?;
    let created = client.call(&create).await?;
    output.text(&format!("{}\n", created.task.id))?;
    output.warn(&created.warnings);
    Ok(0)
}
