//! `service` at the command line: installs the units of the service, and runs their reload and stop commands.

mod ending;
mod installation;
mod units;

use self::ending::{after_stop, at_stop};
use self::installation::{StartMode, install, print, status, uninstall};
use super::CommandLine;
use super::restore::refuse_worker;
use crate::client::Client;
use crate::output::Output;
use base::exit::Code;
use base::failure::Failure;
use base::paths::RootChoice;
use base::terminal::complain;
use host::service_manager::Manager;
use kernel::Finding;
use verbs::Reload;

/// Install, remove, show and reload the service
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "\
The host's service is meant as root, and your own otherwise; --system and --user
choose. `install` writes the units for this program where it is now, has systemd read
them, and starts the service; it replaces no unit that it has not written. `uninstall`
stops the service and removes the units; boards and configuration stay.

`reload` has the daemon read the configuration again and fails if a file cannot be
used: the daemon goes on with what it had of that file before. `systemctl reload`
runs it.

Exit code of `status`: 0 if the service is active, 3 if it is not, 1 if no service
manager runs here.

Examples:
  supervisor service install --print
  sudo supervisor service install
  supervisor --user service install
  supervisor service status
  supervisor service reload")]
pub(super) struct Service {
    #[command(subcommand)]
    subcommand: Subcommand,
}

#[derive(Clone, Debug, clap::Subcommand)]
enum Subcommand {
    /// Write the units, and start the service
    #[command(after_help = "\
Examples:
  supervisor service install
  supervisor --user service install --print")]
    Install {
        /// Print the units and change nothing
        #[arg(long)]
        print: bool,
        /// Do not start it now; it starts with the host
        #[arg(long, conflicts_with = "print")]
        no_start: bool,
    },
    /// Stop the service and remove its units
    #[command(after_help = "\
Examples:
  supervisor service uninstall")]
    Uninstall,
    /// Show the status of the service
    #[command(after_help = "\
Examples:
  supervisor service status")]
    Status,
    /// Tell the daemon to reload its configuration
    #[command(after_help = "\
Examples:
  supervisor service reload")]
    Reload,
    /// Stop the daemon of a unit, as its `ExecStop=`
    #[command(hide = true)]
    AtStop {
        /// The unit
        unit: String,
    },
    /// End what a dead daemon has left if its unit is being stopped, as its `ExecStopPost=`
    #[command(hide = true)]
    AfterStop {
        /// The unit
        unit: String,
    },
}

pub(super) async fn run(line: &CommandLine, service: Service) -> Result<u8, Failure> {
    let choice = &line.global.root;
    let of_host = choice.system || (!choice.user && nix::unistd::geteuid().is_root());
    let manager = if of_host { Manager::System } else { Manager::User };
    match service.subcommand {
        Subcommand::Install { print: printed, no_start } => {
            require_no_root(choice)?;
            match (printed, no_start) {
                (true, _) => print(manager, line.output),
                (false, true) => install(manager, StartMode::Later, line.output),
                (false, false) => install(manager, StartMode::Now, line.output),
            }
        }
        Subcommand::Uninstall => {
            require_no_root(choice)?;
            uninstall(manager, line.output)
        }
        Subcommand::Status => {
            require_no_root(choice)?;
            status(manager, line.output)
        }
        Subcommand::Reload => reload(&client(line)?, line.output).await,
        Subcommand::AtStop { unit } => at_stop(&client(line)?, manager, &unit).await,
        Subcommand::AfterStop { unit } => {
            client(line)?;
            after_stop(line, manager, &unit).await
        }
    }
}

/// Returns a client for a command of a person.
fn client(line: &CommandLine) -> Result<Client, Failure> {
    let client = line.client()?;
    refuse_worker(&client)?;
    Ok(client)
}

/// Refuses a root other than the service's own, as the paths in the units are fixed.
fn require_no_root(choice: &RootChoice) -> Result<(), Failure> {
    let Some(root) = &choice.root else { return Ok(()) };
    Err(Failure::usage(format!("a service keeps its boards in a place of its own, not in {}", root.display()))
        .hint("leave --root and SUPERVISOR_ROOT out, or run `supervisor --root DIR daemon` under a unit of your own"))
}

async fn reload(client: &Client, output: Output) -> Result<u8, Failure> {
    let reloaded = client.call(&Reload::default()).await?;
    if !reloaded.by_daemon {
        return Err(Failure::new(Code::Unreachable, "no daemon has read the configuration: none runs")
            .hint("start one with: supervisor daemon"));
    }
    let (errors, warnings): (Vec<&Finding>, Vec<&Finding>) =
        reloaded.problems.iter().partition(|problem| problem.is_error());
    for warning in warnings {
        complain(&format!("warning: {warning}"));
    }
    let Some((first, rest)) = errors.split_first() else {
        if output.json() {
            output.value(&reloaded)?;
        } else {
            output.text("The daemon has reloaded its configuration.\n")?;
        }
        return Ok(0);
    };
    for defect in rest {
        complain(&format!("error: {}", defect.line()));
    }
    Err(Failure::usage(first.line()).hint(format!("the daemon continues: {}", first.detail)))
}
