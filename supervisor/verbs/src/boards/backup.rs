//! `backup`: a consistent copy of a board that may be in use.

use std::path::PathBuf;
use std::time::Duration;

use kernel::{Counted, Existing};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use api::command::Command;
use api::{Call, Verb, blocking, verb};
use base::failure::Failure;
use base::invocation::Invocation;
use base::terminal::{Screen, printable};
use service::details::Details;

/// Limit on the missing files that the reply names.
const LISTED: usize = 10;

/// Back up the board to a file, even while it is in use
#[derive(Clone, Debug, Default, clap::Args, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[command(after_help = "\
The backup is one SQLite file: the board as of one moment, the attached files, and
the board's title and other details. It is checked and durable before it gets its
name. `supervisor restore` restores all of it. A missing or altered attachment is
reported and left out.

Examples:
  supervisor backup /var/backups/board.db
  supervisor --board releases backup --force releases.db")]
pub struct Backup {
    /// The file to write
    pub file: PathBuf,
    /// Replace the file if it exists
    #[arg(long)]
    #[serde(default)]
    pub force: bool,
}

/// The backup that is there now.
#[derive(Debug, Serialize, Deserialize)]
pub struct BackupReport {
    pub board: kernel::BoardName,
    pub file: PathBuf,
    pub bytes: u64,
    /// Number of attached files in it.
    pub files: u64,
    /// The attached files that are not, each with the reason.
    pub missing: Vec<String>,
}

impl Verb for Backup {
    verb! {
        "backup": Operator, Read,
        // The request contains a path of the host.
        no_sessions
        => BackupReport
    }

    fn answered_within(&self) -> Duration {
        Duration::from_hours(24)
    }

    async fn run(self, call: Call) -> Result<BackupReport, Failure> {
        let board = call.board()?.name().clone();
        let from = call.service.root().board(&board);
        let boards = call.service.root().boards();
        let Backup { file, force } = self;
        blocking("the backup did not finish", move || {
            refuse_place(&file, &boards)?;
            let existing = if force { Existing::Replace } else { Existing::Keep };
            let details = Details::read(from.parent().unwrap_or(&boards)).as_text()?;
            let made = kernel::backup_board(&from, &file, existing, &details).map_err(|error| {
                let exists = matches!(error, kernel::OpenError::Exists { .. });
                let failure = Failure::from(error);
                if exists { failure.hint("choose another name, or replace it with --force") } else { failure }
            })?;
            let missing = made.lacks.iter().map(ToString::to_string).collect();
            Ok(BackupReport { board, file, bytes: made.bytes, files: made.files, missing })
        })
        .await?
    }
}

impl Command for Backup {
    fn localize(&mut self, _here: &Invocation) -> Result<(), Failure> {
        self.file = std::path::absolute(&self.file)
            .map_err(|e| Failure::file("resolve the path of", &self.file, &e))?;
        Ok(())
    }

    fn show(reply: &BackupReport, screen: &mut Screen) {
        screen.line(format!(
            "Backed up board {} to {} ({}, {})",
            reply.board,
            printable(&reply.file.display().to_string()),
            Counted(reply.files, "attached file"),
            Counted(reply.bytes, "byte")
        ));
        for missing in reply.missing.iter().take(LISTED) {
            screen.line(format!("warning: without {missing}"));
        }
        if let Some(more) = reply.missing.len().checked_sub(LISTED).filter(|more| *more > 0) {
            screen.line(format!("warning: and without {more} more, which --json names"));
        }
    }
}

/// Refuses a destination in the directory of the boards: the backup could replace a board that is in use.
fn refuse_place(file: &std::path::Path, boards: &std::path::Path) -> Result<(), Failure> {
    let dir = file.parent().unwrap_or(file);
    let real = dir.canonicalize().map_err(|e| {
        Failure::named_file("find the directory", dir, &e, "a file in a directory that exists")
    })?;
    if boards.canonicalize().is_ok_and(|boards| real.starts_with(boards)) {
        return Err(Failure::usage(format!("{} lies in the boards directory of this root", file.display()))
            .hint("write the backup elsewhere, preferably to another disk"));
    }
    if file.is_dir() {
        return Err(Failure::usage(format!("{} is a directory", file.display())).hint("name a file in it"));
    }
    Ok(())
}
