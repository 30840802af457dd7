//! `daemon` at the command line: runs the daemon in the foreground.

use std::path::PathBuf;

use super::CommandLine;
use crate::mcp;
use crate::output::{LogFormat, start_log};
use crate::resources::surface;
use base::failure::Failure;
use base::terminal::complain;
use bridges::a2a;
use bridges::chat;
use bridges::dashboard;
use daemon::DaemonMode;
use setup::config::Tuning;

/// Run the daemon in the foreground
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "\
SIGTERM or Ctrl-C drains: no task is started, and workers get up to worker.drain to
finish before they are ended. A second signal ends them now, a third kills them.
SIGHUP reloads the configuration.

Examples:
  supervisor daemon
  supervisor --root /srv/fleet daemon
  supervisor daemon --max 4 --pidfile /run/fleet.pid
  supervisor daemon --log-format json
  RUST_LOG=debug supervisor daemon")]
pub(super) struct Daemon {
    /// Run at most this many workers at once, whatever the configuration allows
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(super) max: Option<u32>,
    /// Block a task after this many counted failures in a row [default: `worker.failure_limit`]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(super) failure_limit: Option<u32>,
    /// Write the daemon's pid to a file while it serves
    #[arg(long, value_name = "FILE")]
    pub(super) pidfile: Option<PathBuf>,
    /// Format of the log
    #[arg(long, value_enum, value_name = "FORMAT", default_value_t)]
    pub(super) log_format: LogFormat,
    /// Log more details
    #[arg(long, short)]
    pub(super) verbose: bool,
    /// Ignored: tasks that are ready start at once
    #[arg(long, value_name = "SECONDS", hide = true)]
    pub(super) interval: Option<f64>,
    /// Ignored: a daemon in the foreground is the normal case
    #[arg(long, hide = true)]
    pub(super) force: bool,
}

pub(super) async fn run(line: &CommandLine, verb: Daemon) -> Result<u8, Failure> {
    let root = line.root()?;
    start_log(line.output, if verb.verbose { "debug" } else { "info" }, verb.log_format);
    let place = root.dir().to_owned();
    let tuning = Tuning {
        max_running: verb.max.and_then(|max| usize::try_from(max).ok()),
        failure_limit: verb.failure_limit,
    };
    tracing::debug!(?tuning, "command_line");
    let pidfile = verb.pidfile.clone();
    let announce = move || {
        complain(&format!(
            "supervisor {} serves {} (pid {}); stop it with Ctrl-C",
            env!("CARGO_PKG_VERSION"),
            place.display(),
            std::process::id()
        ));
        if let Some(path) = &pidfile
            && let Err(e) = std::fs::write(path, format!("{}\n", std::process::id()))
        {
            complain(&format!("warning: {}", Failure::file("write", path, &e)));
        }
    };
    let surface = dashboard::mount(a2a::mount(chat::mount(mcp::mount(surface()))));
    let ended = daemon::run(root, DaemonMode::Forever, tuning, surface, announce).await;
    if let Some(path) = &verb.pidfile {
        // The file is removed because its readers take its existence as a sign that the daemon runs.
        drop(std::fs::remove_file(path));
    }
    ended.map(|_| 0)
}
