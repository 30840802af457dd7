//! `init`: creates a board and suggests the next steps.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use api::command::Command;
use api::{Call, Verb, verb};
use base::failure::Failure;
use base::terminal::{Ink, Screen};

/// Create a board (the default board is created on first use)
#[derive(Clone, Debug, Default, clap::Args, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[command(after_help = "\
Examples:
  supervisor init
  supervisor --board releases init
  supervisor --root /srv/fleet init")]
pub struct Init {}

/// Reply: the board, which may have existed before.
#[derive(Debug, Serialize, Deserialize)]
pub struct Initialised {
    pub board: kernel::BoardName,
    pub board_id: kernel::BoardId,
    pub path: std::path::PathBuf,
    pub daemon: bool,
    /// True if `service install` can make a service for its root.
    #[serde(default)]
    pub(crate) installable: bool,
}

impl Verb for Init {
    verb! { "init": Operator, Write, on(Made) => Initialised }

    async fn run(self, call: Call) -> Result<Initialised, Failure> {
        let board_id = call.read(|view| view.board_id()).await?;
        let board = call.board()?.name().clone();
        let path = call.service.root().board(&board);
        let (daemon, root) = (call.service.daemon().is_some(), call.service.root());
        // A root that was named with `--root` has its configuration file beside its boards, and is no service's.
        let installable = root.config_file().parent() != Some(root.dir());
        Ok(Initialised { board, board_id, path, daemon, installable })
    }
}

impl Command for Init {
    fn show(reply: &Initialised, screen: &mut Screen) {
        let name = screen.paint(Ink::Bold, reply.board.as_str());
        screen.line(format!("Board {name} is ready: {}", reply.path.display()));
        if !reply.daemon {
            screen.line("No daemon is running. Start one with:");
            screen.line("  supervisor daemon             in a terminal");
            if reply.installable {
                screen.line("  supervisor service install    as a service of the host or of your user");
            }
        }
    }
}
