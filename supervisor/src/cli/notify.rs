//! `notify` at the command line: tests a channel, and handles undeliverable messages.

use kernel::TaskId;

use super::restore::refuse_worker;
use super::{CommandLine, call};
use base::failure::Failure;
use verbs::{NotifyDrop, NotifyList, NotifyOutbox, NotifyRetry, NotifyTest, WhichLetters};

/// Test channels, and manage messages that were not delivered
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "\
The channels are tables of supervisor.toml: [notify.channels.NAME]. A message is tried again
until its channel takes it, or gives it up after three days; `retry` tries at once, and
`drop` removes what could not be delivered.

Examples:
  supervisor notify test ops
  supervisor notify outbox --dead
  supervisor notify retry --channel ops")]
pub(super) struct Notify {
    #[command(subcommand)]
    subcommand: Subcommand,
}

#[derive(Clone, Debug, clap::Subcommand)]
enum Subcommand {
    /// Send a test message, and show the result of each step
    #[command(after_help = "\
Exit code: 0 if the channel has taken the message, else 1.

Examples:
  supervisor notify test ops
  supervisor notify test ops --json")]
    Test {
        /// The channel
        channel: String,
    },
    /// List who is notified about which task
    #[command(after_help = "\
Examples:
  supervisor notify list
  supervisor notify list t_0123abcd --json")]
    List {
        /// Only subscriptions of this task
        task_id: Option<TaskId>,
    },
    /// List messages that wait, and those that could not be delivered
    #[command(after_help = "\
Examples:
  supervisor notify outbox
  supervisor notify outbox --channel ops --dead --json")]
    Outbox {
        /// Only those to this channel
        #[arg(long, value_name = "NAME")]
        channel: Option<String>,
        /// Only those that could not be delivered
        #[arg(long)]
        dead: bool,
    },
    /// Try messages again at once
    #[command(after_help = "\
Examples:
  supervisor notify retry
  supervisor notify retry 17
  supervisor notify retry --channel ops")]
    Retry {
        #[command(flatten)]
        which: WhichLetters,
    },
    /// Drop messages that could not be delivered, or one that waits
    #[command(after_help = "\
Examples:
  supervisor notify drop 17
  supervisor notify drop --channel ops")]
    Drop {
        #[command(flatten)]
        which: WhichLetters,
    },
}

pub(super) async fn run(line: &CommandLine, notify: Notify) -> Result<u8, Failure> {
    let (client, output) = (&line.client()?, line.output);
    refuse_worker(client)?;
    match notify.subcommand {
        Subcommand::Test { channel } => call(client, NotifyTest { channel }, output).await,
        Subcommand::List { task_id } => call(client, NotifyList { task_id }, output).await,
        Subcommand::Outbox { channel, dead } => call(client, NotifyOutbox { channel, dead }, output).await,
        Subcommand::Retry { which } => call(client, NotifyRetry { which }, output).await,
        Subcommand::Drop { which } => call(client, NotifyDrop { which }, output).await,
    }
}
