//! Commands of the nouns whose words have functions of their own, such as `boards` with `boards create`.
//!
//! They stand above the words: a command holds the enum of its words, and the enum holds the arguments of each word.

use super::{CommandLine, nouns};
use base::failure::Failure;

/// List, create, rename, switch and remove boards
#[derive(Debug, clap::Args)]
#[command(after_help = "\
A command uses the board of --board, else of SUPERVISOR_BOARD or
HERMES_KANBAN_BOARD, else the one chosen with `switch`, else `default`.

Examples:
  supervisor boards list
  supervisor boards create releases --name 'Releases' --switch
  supervisor boards rm releases")]
pub(super) struct BoardsCommand {
    #[command(subcommand)]
    word: nouns::Boards,
}

pub(super) async fn boards(line: &CommandLine, boards: BoardsCommand) -> Result<u8, Failure> {
    boards.word.run(&nouns::client(line)?, line.output).await
}

/// List, show, check and test lanes
#[derive(Debug, clap::Args)]
#[command(after_help = "\
`check` looks for what a lane needs on this host, and says what is missing. `test`
runs a small task with the lane's real program in a root of its own that is gone
afterwards, and says how its ending was read.

Exit code of `check` and `test`: 0 if nothing is missing, else 1.

Examples:
  supervisor lane list
  supervisor lane show claude
  supervisor lane check codex
  supervisor lane test codex --timeout 2m")]
pub(super) struct LaneCommand {
    #[command(subcommand)]
    word: nouns::Lane,
}

pub(super) async fn lane(command: &CommandLine, lane: LaneCommand) -> Result<u8, Failure> {
    lane.word.run(&nouns::client(command)?, command.output).await
}

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

pub(super) async fn mission(line: &CommandLine, mission: MissionCommand) -> Result<u8, Failure> {
    mission.word.run(&line.client()?, line.output).await
}

/// List, create, check, install, resume and uninstall plugins
#[derive(Debug, clap::Args)]
#[command(after_help = "\
A plugin is a directory `plugins.d/NAME` of the configuration with a file `plugin.toml`
and a program. The program is run anew for each call, confined by a policy without a
network, with JSON on its standard input and output.

Examples:
  supervisor plugin create diary
  supervisor plugin check ./diary
  supervisor plugin install ./diary
  supervisor plugin list
  supervisor plugin uninstall diary")]
pub(super) struct PluginCommand {
    #[command(subcommand)]
    word: nouns::Plugin,
}

pub(super) async fn plugin(line: &CommandLine, plugin: PluginCommand) -> Result<u8, Failure> {
    plugin.word.run(&nouns::client(line)?, line.output).await
}

/// List, show, create, edit, export, install and remove profiles
#[derive(Debug, clap::Args)]
#[command(after_help = "\
A profile is a file `profiles.d/NAME.md` of the configuration: front matter with its
lane, model, policy, account and limits, and the text that its workers read before
their task. A task is assigned to it by its name. A running daemon reads the
profiles again after each change.

Examples:
  supervisor profile list
  supervisor profile create backend --lane claude --model opus \\
      --description 'Services in Go' --prompt-file role.md
  supervisor profile edit backend
  supervisor profile install ~/.claude/agents/code-reviewer.md
  supervisor profile export backend > backend.md")]
pub(super) struct ProfileCommand {
    #[command(subcommand)]
    word: nouns::Profile,
}

pub(super) async fn profile(line: &CommandLine, profile: ProfileCommand) -> Result<u8, Failure> {
    profile.word.run(&nouns::client(line)?, line.output).await
}

/// List, show, add, edit, pause, resume, run, check, import and remove schedules
#[derive(Debug, clap::Args)]
#[command(after_help = "\
A schedule is a file `schedules.d/NAME.toml` of the configuration: when it ticks, and
the tasks that a tick makes. The daemon makes each tick once, also where it was down or
the host slept; what becomes of missed ticks and of overlaps is a key of the file.

Examples:
  supervisor schedules add brief --cron '0 9 * * mon-fri' \\
      --title 'AI-funding brief {date}' --assignee scout
  supervisor schedules list
  supervisor schedules show brief
  supervisor schedules run brief
  supervisor schedules pause brief")]
pub(super) struct SchedulesCommand {
    #[command(subcommand)]
    word: nouns::Schedules,
}

pub(super) async fn schedules(line: &CommandLine, schedules: SchedulesCommand) -> Result<u8, Failure> {
    schedules.word.run(&nouns::client(line)?, line.output).await
}

/// List, show, create, edit and remove tenants, and show their usage
#[derive(Debug, clap::Args)]
#[command(after_help = "\
A tenant is a namespace of tasks. A file `tenants.d/NAME.toml` of the configuration says
where it works, whose it is, what it may use, and who may see it. A running daemon reads
the files again after each change.

Examples:
  supervisor tenant create acme --dir /srv/acme --max-running 4
  supervisor tenant show acme
  supervisor tenant usage acme --json
  supervisor tenant rm acme --cancel")]
pub(super) struct TenantCommand {
    #[command(subcommand)]
    word: nouns::Tenant,
}

pub(super) async fn tenant(line: &CommandLine, tenant: TenantCommand) -> Result<u8, Failure> {
    tenant.word.run(&nouns::client(line)?, line.output).await
}
