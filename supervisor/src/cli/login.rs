//! `login` at the command line: a person logs in the program of a profile or a lane.

use std::io::IsTerminal as _;
use std::path::PathBuf;

use kernel::{Profile, Tenant};
use serde::Serialize;

use super::CommandLine;
use super::forget::{Forgotten, forget};
use super::restore::refuse_worker;
use crate::client::Client;
use crate::login::{LoggedIn, Login as Order};
use crate::output::Output;
use base::exit::Code;
use base::failure::Failure;
use base::terminal::printable;
use verbs::{HoldTarget, NewLogin, Release};

/// Log in the program of a profile or a lane
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "\
login runs the login command of a lane's program at this terminal, under the policy
of the profile, in an empty home. The files of the login are kept for the profile,
and each of its runs gets a copy. The login of a lane is that of all its profiles.
Nothing that a run does changes what is kept, unless the profile permits it.

A hold for a login that was not accepted is released.

Examples:
  supervisor login claude
  supervisor login reviewer
  supervisor login backend --tenant acme
  supervisor login backend --forget")]
pub(super) struct Login {
    /// The profile or the lane
    name: Profile,
    /// The tenant whose tasks the login is for [default: tasks without a tenant]
    #[arg(long, value_name = "NAME")]
    tenant: Option<Tenant>,
    /// Remove all kept files of its homes, including the login
    #[arg(long)]
    forget: bool,
}

#[derive(Debug, Serialize)]
struct LoginReport {
    name: Profile,
    tenant: Option<Tenant>,
    kept: Vec<PathBuf>,
    released: Vec<String>,
}

pub(super) async fn run(line: &CommandLine, verb: Login) -> Result<u8, Failure> {
    let (client, output) = (&line.client()?, line.output);
    refuse_worker(client)?;
    if verb.forget {
        return forget_kept(client, &verb, output).await;
    }
    if !std::io::stdin().is_terminal() || !std::io::stderr().is_terminal() {
        return Err(Failure::usage("`login` is for a person at a terminal, and this is none").hint(
            "a key needs no terminal: `supervisor help docs/lanes.md` says where each lane looks for one",
        ));
    }
    let Login { name, tenant, forget: _ } = verb;
    let order = Order { root: client.root(), assignee: &name, tenant: tenant.as_ref() };
    let LoggedIn { kept, left_out, account } = order.run().await?;
    output.warn(&left_out);
    let released = release(client, &name, account.as_deref(), tenant.as_ref()).await?;
    if output.json() {
        output.value(&LoginReport { name, tenant, kept, released })?;
        return Ok(0);
    }
    let of_tenant = tenant.map(|tenant| format!(" (tenant {tenant})")).unwrap_or_default();
    let files: Vec<String> = kept.iter().map(|path| printable(&path.display().to_string())).collect();
    output.text(&format!("Kept the login of {name}{of_tenant}: {}\n", files.join(" ")))?;
    for hold in released {
        output.text(&format!("Released {}\n", printable(&hold)))?;
    }
    Ok(0)
}

async fn forget_kept(client: &Client, verb: &Login, output: Output) -> Result<u8, Failure> {
    let Login { name, tenant, forget: _ } = verb;
    let of_tenant = tenant.as_ref().map(|tenant| format!(" (tenant {tenant})")).unwrap_or_default();
    let Forgotten { was_kept, left } = forget(client, name, tenant.as_ref()).await?;
    output.warn(&left);
    if !was_kept {
        return Err(Failure::new(Code::NotFound, format!("nothing is kept for {name}{of_tenant}"))
            .hint(format!("look into {}", client.root().retained_homes().display())));
    }
    if output.json() {
        output.value(&serde_json::json!({ "name": name, "tenant": tenant, "forgotten": true }))?;
    } else {
        output.text(&format!("Removed all that was kept for {name}{of_tenant}, its login as well\n"))?;
    }
    Ok(0)
}

/// Releases, on all boards, the holds of a tenant that followed a rejected login of an assignee or its account.
async fn release(
    client: &Client,
    name: &Profile,
    account: Option<&str>,
    tenant: Option<&Tenant>,
) -> Result<Vec<String>, Failure> {
    let mut released = Vec::new();
    for board in client.root().board_names()? {
        let release = Release {
            on: HoldTarget {
                profile: Some(name.clone()),
                account: account.map(str::to_owned),
                ..HoldTarget::default()
            },
            reason: Some(format!("`supervisor login {name}`")),
            logged_in: Some(NewLogin { tenant: tenant.cloned() }),
            ..Release::default()
        };
        let client = Client::new(client.root().clone(), board, None);
        released.extend(client.call(&release).await?.into_iter().map(|hold| hold.on().to_string()));
    }
    Ok(released)
}
