//! `mcp` at the command line: serves the board as tools over standard input and output.

use super::CommandLine;
use crate::mcp;
use crate::output::{LogFormat, start_log};
use base::environment;
use base::failure::Failure;
use base::invocation::WorkerSelf;
use setup::lanes::{Form, Launch, ToolServers};

/// Serve the board as tools to an agent program, over standard input and output
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "\
The server speaks the Model Context Protocol and ends when its input does. Inside a run
it has the tools of that run's worker, outside those of an operator. Messages go to
standard output, and the log to standard error.

Examples:
  supervisor mcp                          (started by the agent program)
  supervisor mcp --config claude          (what its --mcp-config is)
  claude --mcp-config \"$(supervisor mcp --config claude)\"")]
pub(super) struct Mcp {
    /// Print the configuration that names this server to an agent program, and exit
    #[arg(long, value_name = "PROGRAM", value_enum)]
    pub(super) config: Option<Form>,
}

pub(super) async fn run(line: &CommandLine, verb: Mcp) -> Result<u8, Failure> {
    if let Some(form) = verb.config {
        line.output.text(&format!("{}\n", form.write(&launch(line)?, &ToolServers::new())))?;
        return Ok(0);
    }
    start_log(line.output, "warn", LogFormat::Text);
    mcp::serve(line.client()?).await?;
    Ok(0)
}

/// Returns the command by which an agent program starts this server, for this root and board.
fn launch(line: &CommandLine) -> Result<Launch, Failure> {
    let program = std::env::current_exe()
        .map_err(|e| Failure::failed(format!("failed to find the path of this program: {e}")))?;
    let program = program.to_string_lossy().into_owned();
    if WorkerSelf::from_env(environment::text)?.is_some() {
        return Ok(Launch::in_a_run(program));
    }
    let mut options = line.global.root.options();
    if let Some(board) = &line.global.board {
        options.extend(["--board".to_owned(), board.to_string()]);
    }
    Ok(Launch::of_an_operator(program, options))
}
