//! `import`: imports a board from a file into an empty one.

use std::path::PathBuf;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use api::command::Command;
use api::{Call, Verb, blocking, verb};
use base::failure::Failure;
use base::invocation::Invocation;
use base::terminal::Screen;
use upkeep::transfer::{self, AllowedDirectories, ImportReport, ImportSource, Importer};

/// Import a board into an empty one
#[derive(Clone, Debug, clap::Args, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[command(after_help = "\
The import is all or nothing. The board is created if it does not exist. A database
of `hermes kanban` is read from a copy and never written to; its attached files are
copied. What is converted or left out is reported. Tasks that would run under a wider
policy than `worker.policy` are refused until you accept that policy, and tasks that
work in directories of this host until you accept those.

Examples:
  supervisor --board copy import board.jsonl
  supervisor --board old import --from-hermes ~/.hermes/kanban.db")]
pub struct Import {
    /// A file written by `supervisor export`; `-` is standard input
    #[arg(required_unless_present = "from_hermes")]
    pub file: Option<PathBuf>,
    /// Import a database of `hermes kanban`
    #[arg(long, value_name = "FILE", conflicts_with = "file")]
    #[serde(default)]
    pub(crate) from_hermes: Option<PathBuf>,
    /// Import tasks that would run under this policy, which is wider than the default; repeatable
    #[arg(long, value_name = "POLICY")]
    #[serde(default)]
    pub(crate) accept_policy: Vec<String>,
    /// Import tasks that work in directories and repositories of this host, for the users that the file names
    #[arg(long)]
    #[serde(default)]
    pub(crate) accept_workspaces: bool,
}

impl Verb for Import {
    verb! {
        "import": Operator, Write,
        on(None),
        // The request names a file of the host.
        no_sessions
        => ImportReport
    }

    fn answered_within(&self) -> Duration {
        Duration::from_hours(24)
    }

    async fn run(self, call: Call) -> Result<ImportReport, Failure> {
        for file in self.file.iter().chain(&self.from_hermes) {
            if !file.is_absolute() {
                return Err(Failure::usage(format!("{} is not an absolute path", file.display())));
            }
        }
        blocking("the import did not finish", move || {
            let source = match (&self.from_hermes, &self.file) {
                (Some(database), None) => ImportSource::peer(database, call.service.root().dir())?,
                (None, Some(file)) => ImportSource::lines(file)?,
                _ => return Err(Failure::usage("an import is of one file: `file` or `from_hermes`")),
            };
            let board = call.service.create_board(call.board_name())?;
            let accepted = self.accept_policy.iter().cloned().collect();
            let places =
                if self.accept_workspaces { AllowedDirectories::Named } else { AllowedDirectories::None };
            transfer::read(source, &call.service, &board, Importer { actor: call.actor, accepted, places })
        })
        .await?
    }
}

impl Command for Import {
    fn localize(&mut self, _here: &Invocation) -> Result<(), Failure> {
        for file in self.file.iter_mut().chain(&mut self.from_hermes) {
            *file = std::path::absolute(&file).map_err(|e| Failure::file("resolve the path of", file, &e))?;
        }
        Ok(())
    }

    fn show(reply: &ImportReport, screen: &mut Screen) {
        screen.line(format!("Imported into board {}:", reply.board));
        for (table, count) in reply.rows.iter().filter(|(_, count)| **count > 0) {
            screen.line(format!("  {count} {table}"));
        }
        if reply.files > 0 {
            screen.line(format!("  {} attached files", reply.files));
        }
        for (head, lines) in [("changed", &reply.changed), ("not taken", &reply.left)] {
            for line in lines {
                screen.line(format!("{head}: {line}"));
            }
        }
    }
}
