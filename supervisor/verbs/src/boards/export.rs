//! `export`: the whole board as JSON Lines, in a file.

use std::path::PathBuf;
use std::time::Duration;

use kernel::{Counted, Existing, Tenant};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use api::command::Command;
use api::{Call, Verb, blocking, verb};
use base::failure::Failure;
use base::terminal::{Screen, printable};
use upkeep::transfer::attached;
use upkeep::transfer::{self, ExportReport};

/// Export the whole board as JSON Lines
#[derive(Clone, Debug, clap::Args, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[command(after_help = "\
The export holds every row as of one moment, the attached files and the board's
details; the board may be in use. `import` reads it into an empty board. A missing or
altered attachment is reported and left out. With --tenant it holds the complete history
of one tenant, and nothing of another one.

Examples:
  supervisor export > board.jsonl
  supervisor export --tenant acme > acme.jsonl
  supervisor --board releases export --file releases.jsonl")]
pub struct Export {
    /// Only the data of this tenant
    #[arg(long, value_name = "NAME")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tenant: Option<Tenant>,
    /// Write to this file instead of standard output
    #[arg(long, value_name = "FILE")]
    pub file: Option<PathBuf>,
    /// Replace the file if it exists
    #[arg(long, requires = "file")]
    #[serde(default)]
    pub force: bool,
}

impl Export {
    /// Returns true if an existing file is replaced.
    pub fn existing(&self) -> Existing {
        if self.force { Existing::Replace } else { Existing::Keep }
    }
}

impl Verb for Export {
    verb! {
        "export": Operator, Read,
        // The request names a file of the host.
        no_sessions
        => ExportReport
    }

    fn answered_within(&self) -> Duration {
        Duration::from_hours(24)
    }

    async fn run(self, call: Call) -> Result<ExportReport, Failure> {
        let existing = self.existing();
        let Some(file) = self.file.filter(|file| file.is_absolute()) else {
            return Err(Failure::usage("export needs the absolute path of a file")
                .hint("GET /api/v1/export sends the board itself"));
        };
        let board = call.board()?.name().clone();
        blocking("the export did not finish", move || {
            transfer::to_file(call.service.root(), &board, self.tenant.as_ref(), &file, existing)
        })
        .await?
    }
}

impl Command for Export {
    fn show(reply: &ExportReport, screen: &mut Screen) {
        let total: u64 = reply.rows.values().sum();
        let to = reply.file.as_deref().map(|file| printable(&file.display().to_string()));
        screen.line(format!(
            "Exported board {} to {} ({}, {})",
            reply.board,
            to.as_deref().unwrap_or("standard output"),
            Counted(total, "row"),
            Counted(reply.files, "attached file")
        ));
        if !reply.missing.is_empty() {
            screen.line(format!("warning: {}", attached::listed(&reply.missing)));
        }
    }
}
