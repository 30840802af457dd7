//! `create` at the command line: prints only the id if a script asks for it.

use kernel::Status;

use crate::client::Client;
use crate::output::Output;
use api::command::Command as _;
use base::failure::Failure;
use verbs::Create;

pub(super) async fn run(client: &Client, mut create: Create, output: Output) -> Result<u8, Failure> {
    if !create.quiet {
        return super::call(client, create, output).await;
    }
    create.localize(client.here())?;
    let mut created = client.call(&create).await?;
    let task = &created.task;
    // Shortens the first warning, which is about the assignee, to one line for scripts.
    if let Some(first) =
        created.warnings.first_mut().filter(|_| task.assignee.is_none() && task.status != Status::Triage)
    {
        *first = format!("{} has no assignee, so nothing runs it", task.id);
    }
    output.text(&format!("{}\n", created.task.id))?;
    output.warn(&created.warnings);
    Ok(0)
}
