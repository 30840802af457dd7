//! What the command line understands.

use std::path::PathBuf;

use kernel::BoardName;

use crate::demo::Demo;
use crate::paths::RootChoice;
use crate::terminal::Colour;
use crate::verbs;

use super::boards::Boards;
use super::doctor::Doctor;
use super::follow::{Tail, Watch};
use super::restore::Restore;
use super::stop::StopAndWait;
use super::transfer::{Export, Import};

/// Runs fleets of confined workers from a durable task board
#[derive(Debug, clap::Parser)]
#[command(
    name = "supervisor",
    version,
    after_help = "\
A first tour:
  supervisor demo                    see it all happen, on real processes
  supervisor create 'say hello' --assignee shell --body 'echo hello'
  supervisor dispatch                run what is ready, and wait for it
  supervisor daemon                  run what comes, as it comes
  supervisor status --watch          see it running

Exit codes:
  0 ok          2 usage       4 conflict             75 try again
  1 failed      3 not found   69 daemon unreachable  77 not permitted"
)]
pub(super) struct Cli {
    #[command(flatten)]
    pub(super) global: Global,
    #[command(subcommand)]
    pub(super) command: Command,
}

#[derive(Debug, clap::Args)]
pub(super) struct Global {
    #[command(flatten)]
    pub(super) root: RootChoice,
    /// The board to work on
    #[arg(
        long,
        global = true,
        value_name = "NAME",
        env = "SUPERVISOR_BOARD",
        help_heading = "Global options"
    )]
    pub(super) board: Option<BoardName>,
    /// Print JSON, errors included
    #[arg(long, global = true, help_heading = "Global options")]
    pub(super) json: bool,
    /// When to colour
    #[arg(
        long,
        global = true,
        value_enum,
        value_name = "WHEN",
        default_value_t,
        help_heading = "Global options"
    )]
    pub(super) color: Colour,
}

/// Run the daemon in the foreground
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "\
SIGTERM or Ctrl-C drains: nothing more is started, workers are waited for up to
worker.drain, then ended. A second one ends them now, a third one kills. SIGHUP
reads the configuration again.

Examples:
  supervisor daemon
  supervisor --root /srv/fleet daemon
  supervisor daemon --max 4 --pidfile /run/fleet.pid
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
    /// Log more
    #[arg(long, short)]
    pub(super) verbose: bool,
    /// Not needed: what is ready starts at once
    #[arg(long, value_name = "SECONDS", hide = true)]
    pub(super) interval: Option<f64>,
    /// Not needed: a daemon of one's own is the ordinary case
    #[arg(long, hide = true)]
    pub(super) force: bool,
}

#[derive(Debug, clap::Subcommand)]
pub(super) enum Command {
    Demo(Demo),
    Daemon(Daemon),
    Status(verbs::Status),
    Create(Box<verbs::Create>),
    Swarm(Box<verbs::Swarm>),
    List(verbs::List),
    Show(verbs::Show),
    Dispatch(verbs::Dispatch),
    Watch(Watch),
    Tail(Tail),
    Log(verbs::Log),
    Runs(verbs::Runs),
    Context(verbs::Context),
    Stats(verbs::Stats),
    Events(verbs::Events),
    Assign(verbs::Assign),
    Reassign(verbs::Reassign),
    Edit(Box<verbs::Edit>),
    Promote(verbs::Promote),
    Schedule(verbs::Schedule),
    Diagnostics(verbs::Diagnostics),
    Hold(verbs::Hold),
    Release(verbs::Release),
    Holds(verbs::Holds),
    Assignees(verbs::Assignees),
    Link(verbs::Link),
    Unlink(verbs::Unlink),
    Comment(verbs::Comment),
    Attach(verbs::Attach),
    Attachments(verbs::Attachments),
    AttachRm(verbs::AttachRm),
    Claim(verbs::Claim),
    Heartbeat(verbs::Heartbeat),
    Complete(verbs::Complete),
    RequestReview(verbs::RequestReview),
    Approve(verbs::Approve),
    Deny(verbs::Deny),
    RequestChanges(verbs::RequestChanges),
    Block(verbs::Block),
    Unblock(verbs::Unblock),
    Answer(verbs::Answer),
    Reclaim(verbs::Reclaim),
    Reopen(verbs::Reopen),
    Archive(verbs::Archive),
    Unarchive(verbs::Unarchive),
    Gc(verbs::Gc),
    NotifySubscribe(verbs::NotifySubscribe),
    NotifyList(verbs::NotifyList),
    NotifyUnsubscribe(verbs::NotifyUnsubscribe),
    Init(verbs::Init),
    Backup(verbs::Backup),
    Restore(Restore),
    Boards(Boards),
    Doctor(Doctor),
    Export(Export),
    Import(Import),
    Stop(StopAndWait),
    /// Print completions for a shell
    #[command(after_help = "\
Examples:
  supervisor completions bash > /etc/bash_completion.d/supervisor
  supervisor completions zsh > ~/.zfunc/_supervisor
  supervisor completions fish > ~/.config/fish/completions/supervisor.fish")]
    Completions {
        /// bash, zsh, fish, elvish or powershell
        shell: clap_complete::Shell,
    },
    /// Write the manual pages, one per verb
    #[command(after_help = "\
Examples:
  supervisor man /usr/local/share/man/man1")]
    Man {
        /// Where to write them
        dir: PathBuf,
    },
}
