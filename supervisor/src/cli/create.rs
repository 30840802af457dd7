//! `create` at the command line: prints the id alone where a script asks for it.

use crate::client::Client;
use crate::command::Command as _;
use crate::failure::Failure;
use crate::output::Output;
use crate::verbs::Create;

pub(super) async fn run(client: &Client, mut create: Create, output: Output) -> Result<u8, Failure> {
    if !create.quiet {
        return super::call(client, create, output).await;
    }
    create.localize(client.here())?;
    let created = client.call(&create).await?;
    output.text(&format!("{}\n", created.task.id))?;
    output.warn(&created.warnings);
    Ok(0)
}
