//! `notify` at the command line: tests a channel, and handles undeliverable messages.

use super::{CommandLine, nouns};
use base::failure::Failure;

/// Test channels, and manage messages that were not delivered
#[derive(Debug, clap::Args)]
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
    word: nouns::Notify,
}

pub(super) async fn run(line: &CommandLine, notify: Notify) -> Result<u8, Failure> {
    notify.word.run(&nouns::client(line)?, line.output).await
}
