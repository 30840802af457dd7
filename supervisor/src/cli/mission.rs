//! `mission` at the command line: goals that are divided into tasks, with limits for all of these together.

use kernel::{TaskId, Tenant};

use super::{CommandLine, call};
use api::command::Command as _;
use base::failure::Failure;
use verbs::{
    CancelMission, CreateMission, ListMissions, PauseMission, PlanMission, ResumeMission, ReviewMission,
    ShowMission,
};

/// Create, list, show, plan, review, pause, resume and cancel missions
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "\
A mission is a task with all tasks that are made below it. Any task of it names it.

Examples:
  supervisor mission create 'build the website' --assignee planner --max-cost 5
  supervisor mission list
  supervisor mission show t_0123abcd
  supervisor mission cancel t_0123abcd")]
pub(super) struct MissionCommand {
    #[command(subcommand)]
    subcommand: Subcommand,
}

#[derive(Clone, Debug, clap::Subcommand)]
enum Subcommand {
    /// Create a mission: its first task, with limits for all tasks below it
    Create(Box<CreateMission>),
    /// List the missions that are not over
    #[command(
        visible_alias = "ls",
        after_help = "\
Examples:
  supervisor mission list
  supervisor mission list --all --tenant acme --json"
    )]
    List {
        /// Only those of this tenant
        #[arg(long, value_name = "NAME")]
        tenant: Option<Tenant>,
        /// Include missions that are done or cancelled
        #[arg(long)]
        all: bool,
    },
    /// Show a mission: progress, tasks, results, spend, and what waits for a person
    #[command(after_help = "\
Examples:
  supervisor mission show t_0123abcd
  supervisor mission show t_0123abcd --json")]
    Show {
        /// Any task of it
        #[arg(value_name = "TASK")]
        mission: TaskId,
    },
    /// Ask a profile to plan the tasks of a mission
    Plan(PlanMission),
    /// Ask a profile to review the progress of a mission
    Review(ReviewMission),
    /// Pause a mission: none of its tasks start until it is resumed
    Pause(PauseMission),
    /// Resume a paused mission
    Resume(ResumeMission),
    /// Cancel a mission: end its runs, and archive its tasks that are not done
    Cancel(CancelMission),
}

pub(super) async fn run(line: &CommandLine, command: MissionCommand) -> Result<u8, Failure> {
    let (client, output) = (&line.client()?, line.output);
    match command.subcommand {
        Subcommand::Create(create) if !create.quiet => call(client, *create, output).await,
        Subcommand::Create(mut create) => {
            create.localize(client.here())?;
            let created = client.call(create.as_ref()).await?;
            output.text(&format!("{}\n", created.task.id))?;
            output.warn(&created.warnings);
            Ok(0)
        }
        Subcommand::List { tenant, all } => call(client, ListMissions { tenant, all }, output).await,
        Subcommand::Show { mission } => call(client, ShowMission { mission }, output).await,
        Subcommand::Review(review) => call(client, review, output).await,
        Subcommand::Plan(plan) => call(client, plan, output).await,
        Subcommand::Pause(pause) => call(client, pause, output).await,
        Subcommand::Resume(resume) => call(client, resume, output).await,
        Subcommand::Cancel(cancel) => call(client, cancel, output).await,
    }
}
