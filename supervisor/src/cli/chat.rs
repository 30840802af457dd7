//! `chat` at the command line: lists the chats, and checks whether they work.

use super::restore::refuse_worker;
use super::{CommandLine, call};
use base::failure::Failure;
use verbs::{CheckChat, ListChats};

/// List and check the chats that control the boards
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "\
A chat is a file `chat.d/NAME.toml` of the configuration: the channel that it belongs to,
and its senders with what each may do.

Examples:
  supervisor chat list
  supervisor chat check")]
pub(super) struct Chat {
    #[command(subcommand)]
    subcommand: Subcommand,
}

#[derive(Clone, Debug, clap::Subcommand)]
enum Subcommand {
    /// List the chats, and the state of their bridges
    #[command(
        visible_alias = "ls",
        after_help = "\
Examples:
  supervisor chat list
  supervisor chat list --json"
    )]
    List,
    /// Check whether the services of the chats respond
    #[command(after_help = "\
Exit code: 0 if all can be used, else 1.

Examples:
  supervisor chat check
  supervisor chat check team --json")]
    Check {
        /// Only this chat
        name: Option<String>,
    },
}

pub(super) async fn run(line: &CommandLine, chat: Chat) -> Result<u8, Failure> {
    let (client, output) = (&line.client()?, line.output);
    refuse_worker(client)?;
    match chat.subcommand {
        Subcommand::List => call(client, ListChats {}, output).await,
        Subcommand::Check { name } => call(client, CheckChat { name }, output).await,
    }
}
