//! `demo`: the main job on real input, with real processes, in a root that is gone afterwards.

use std::path::PathBuf;
use std::process::ExitCode;

use crate::cli::Output;
use crate::failure::Failure;

/// Show what the supervisor does, on a real repository and with real processes
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "\
Examples:
  supervisor demo
  supervisor demo --repo ~/src/project")]
pub(crate) struct Demo {
    /// The git repository to work on; a private clone is used [default: the one you stand in]
    #[arg(long, value_name = "DIR")]
    repo: Option<PathBuf>,
}

/// Runs the demo.
pub(crate) async fn run(demo: Demo, output: Output) -> Result<u8, Failure> {
    tokio::task::yield_now().await;
    Err(Failure::failed(format!("{demo:?} {output:?}")))
}

/// A probe inside a worker.
pub(crate) fn probe_main(_arguments: impl Iterator<Item = std::ffi::OsString>) -> ExitCode {
    ExitCode::FAILURE
}
