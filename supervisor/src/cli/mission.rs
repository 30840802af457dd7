//! `mission` at the command line: goals that are divided into tasks, with limits for all of these together.

use super::{CommandLine, call, nouns};
use crate::client::Client;
use crate::output::Output;
use api::command::Command as _;
use base::failure::Failure;
use verbs::CreateMission;

/// Create, list, show, plan, review, pause, resume and cancel missions
#[derive(Debug, clap::Args)]
#[command(after_help = "\
A mission is a task with all tasks that are made below it. Any task of it names it.

Examples:
  supervisor mission create 'build the website' --assignee planner --max-cost 5
  supervisor mission list
  supervisor mission show t_0123abcd
  supervisor mission cancel t_0123abcd")]
pub(super) struct MissionCommand {
    #[command(subcommand)]
    word: nouns::Mission,
}

pub(super) async fn run(line: &CommandLine, mission: MissionCommand) -> Result<u8, Failure> {
    mission.word.run(&line.client()?, line.output).await
}

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
