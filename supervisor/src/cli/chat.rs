//! `chat` at the command line: lists the chats, and checks whether they work.

use super::{CommandLine, nouns};
use base::failure::Failure;

/// List and check the chats that control the boards
#[derive(Debug, clap::Args)]
#[command(after_help = "\
A chat is a file `chat.d/NAME.toml` of the configuration: the channel that it belongs to,
and its senders with what each may do.

Examples:
  supervisor chat list
  supervisor chat check")]
pub(super) struct Chat {
    #[command(subcommand)]
    word: nouns::Chat,
}

pub(super) async fn run(line: &CommandLine, chat: Chat) -> Result<u8, Failure> {
    chat.word.run(&nouns::client(line)?, line.output).await
}
