//! `tenant` at the command line: the file, the directory, the user and the usage of a tenant. This process writes the
//! files with the rights of its user.

use std::path::PathBuf;

use kernel::{Counted, Finding, Status, TaskId, Tenant};
use serde::Serialize;

use super::pages;
use super::tenant_directory::{self, TenantDirectory};
use super::tenant_file::{self, TenantChanges};
use super::tenant_settings::TenantSettings;
use crate::client::Client;
use crate::output::Output;
use base::exit::Code;
use base::failure::Failure;
use base::terminal::printable;
use setup::config::Config;
use setup::config::tenants::TenantConfig;
use setup::roster::Roster;
use verbs::{Cancel, List, ListTenants, OnTasks as _, Reload, Stats, TenantLine, is_open, show_tenant};

/// Limit on the tasks of a request, which is one transaction that delays others.
const PART: usize = 500;

/// Create a tenant
#[derive(Debug, clap::Args)]
#[command(after_help = "\
The directory of --dir is created where it is missing. As root it is given to
--unix-user.
Quotas: creates, comments, attachments, attachment_bytes, links, holds, notes,
text_bytes, tenant_entries, tenant_bytes, tenant_events. Amounts of a day: requests,
bytes, tokens, cost_usd.

Examples:
  supervisor tenant create acme --dir /srv/acme --max-running 4
  supervisor tenant create acme --dir /srv/acme --unix-user acme --create-user \\
      --member ann --policy strict --assignee claude --max-runtime 1h \\
      --quota creates=20 --budget cost_usd=5 --pool gpu=1")]
pub(super) struct Create {
    /// Its name, which tasks have as their tenant
    name: Tenant,
    #[command(flatten)]
    settings: Box<TenantSettings>,
    /// Create the user of --unix-user with useradd; as root alone
    #[arg(long = "create-user", requires_all = ["unix_user", "dir"])]
    with_user: bool,
}

/// Show a tenant
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  supervisor tenant show acme")]
pub(super) struct Show {
    /// The tenant
    name: Tenant,
}

/// Change the settings of a tenant
#[derive(Debug, clap::Args)]
#[command(after_help = "\
The file is written anew, without its comments. What is not named stays as it is.

Examples:
  supervisor tenant edit acme --max-running 8 --member ann --member bob
  supervisor tenant edit acme --unset max_runtime --unset quotas")]
pub(super) struct Edit {
    /// The tenant
    name: Tenant,
    #[command(flatten)]
    settings: Box<TenantSettings>,
    /// Remove a key of its file (repeatable)
    #[arg(long, value_name = "KEY")]
    unset: Vec<String>,
}

/// Remove the file of a tenant; its tasks, its directory and its user stay
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  supervisor tenant rm acme
  supervisor tenant rm acme --cancel")]
pub(super) struct Rm {
    /// The tenant
    name: Tenant,
    /// Cancel its open tasks first
    #[arg(long)]
    cancel: bool,
}

/// Result of a change of a tenant's file.
#[derive(Debug, Serialize)]
struct ChangedTenant {
    name: Tenant,
    path: PathBuf,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    cancelled: Vec<TaskId>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    warnings: Vec<String>,
}

pub(super) async fn edit(client: &Client, edit: Edit, output: Output) -> Result<u8, Failure> {
    let Edit { name, settings, unset } = edit;
    let text = tenant_file::text_of(client.root(), &name)?;
    let (read, text) =
        TenantChanges { settings: &settings, unset: &unset }.apply(client.root(), &name, &text)?;
    if settings.dir.is_some() || settings.unix_user.is_some() {
        tenant_directory::prepare(client.root(), TenantDirectory::from_config(&read))?;
    }
    let warnings = obstacles(client, &name, &read);
    written(client, NewFile { done: "Changed", name, text: &text }, warnings, output).await
}

pub(super) async fn create(client: &Client, create: Create, output: Output) -> Result<u8, Failure> {
    let Create { name, settings, with_user } = create;
    let path = tenant_file::path_of(client.root(), &name);
    if path.symlink_metadata().is_ok() {
        return Err(Failure::new(Code::Conflict, format!("{} exists already", path.display()))
            .hint(format!("change it with `supervisor tenant edit {name}`")));
    }
    let (read, text) = TenantChanges { settings: &settings, unset: &[] }.apply(client.root(), &name, "")?;
    if with_user {
        tenant_directory::create_user(&read)?;
    }
    tenant_directory::prepare(client.root(), TenantDirectory::from_config(&read))?;
    let warnings = obstacles(client, &name, &read);
    written(client, NewFile { done: "Created", name, text: &text }, warnings, output).await
}

/// Returns the defects of a tenant, with its undefined assignees and policies.
fn obstacles(client: &Client, name: &Tenant, tenant: &TenantConfig) -> Vec<String> {
    let (root, config) = (client.root(), Config::to_read_with(client.root()).0);
    let mut found = tenant_directory::obstacles(root, name, tenant, &config.tenants);
    let (roster, policy) = (Roster::load(root), tenant.policy.as_deref());
    if let Some(assignee) = &tenant.assignee {
        found.extend(roster.resolve(assignee, policy, &config).err().map(|why| why.warning()));
    }
    found
}

pub(super) async fn show(client: &Client, Show { name }: Show, output: Output) -> Result<u8, Failure> {
    let lines = client.call(&ListTenants { name: Some(name) }).await?;
    let Some(found) = lines.first() else { return Ok(0) };
    tell(found, output)
}

fn tell(line: &TenantLine, output: Output) -> Result<u8, Failure> {
    if output.json() {
        output.value(line)?;
    } else {
        let mut screen = output.screen();
        show_tenant(line, &mut screen);
        output.text(&screen.into_text())?;
    }
    Ok(0)
}

/// A tenant's new file, and the word for the change.
struct NewFile<'a> {
    done: &'a str,
    name: Tenant,
    text: &'a str,
}

/// Writes the file, makes the daemon read it, and reports obstacles of the tenant.
async fn written(
    client: &Client,
    NewFile { done, name, text }: NewFile<'_>,
    mut warnings: Vec<String>,
    output: Output,
) -> Result<u8, Failure> {
    let path = tenant_file::write(client.root(), &name, text)?;
    let reloaded = client.call(&Reload::default()).await?;
    warnings.extend(reloaded.problems.iter().filter(|problem| problem.is_error()).map(Finding::line));
    print_change(done, &ChangedTenant { name, path, cancelled: Vec::new(), warnings }, output)
}

fn print_change(done: &str, changed: &ChangedTenant, output: Output) -> Result<u8, Failure> {
    if output.json() {
        output.value(changed)?;
    } else {
        output.text(&format!(
            "{done} {}  {}\n",
            changed.name,
            printable(&changed.path.display().to_string())
        ))?;
        if !changed.cancelled.is_empty() {
            output.text(&format!("Cancelled {}\n", Counted(changed.cancelled.len() as u64, "task")))?;
        }
        output.warn(&changed.warnings);
    }
    Ok(0)
}

/// Removes the file of a tenant that has no open task on any board.
pub(super) async fn rm(client: &Client, Rm { name, cancel }: Rm, output: Output) -> Result<u8, Failure> {
    let text = tenant_file::text_of(client.root(), &name)?;
    let mut cancelled = Vec::new();
    for board in client.root().board_names()? {
        let client = Client::new(client.root().clone(), board.clone(), None);
        let stats = client.call(&Stats { tenant: Some(name.clone()) }).await?;
        let open: i64 =
            stats.by_status.iter().filter(|(status, _)| is_open(**status)).map(|(_, count)| count).sum();
        if open == 0 {
            continue;
        }
        if !cancel {
            return Err(Failure::new(
                Code::Conflict,
                format!("the tenant {name} has {} on the board {board}", Counted(open.unsigned_abs(), "open task")),
            )
            .hint(format!(
                "see them with `supervisor --board {board} list --tenant {name}`; --cancel cancels them. Nothing was removed"
            )));
        }
        cancelled.extend(cancel_all(&client, &name).await?);
    }
    let path = tenant_file::remove(client.root(), &name)?;
    client.call(&Reload::default()).await?;
    let mut warnings = vec![format!(
        "its tasks, their history and their files stay on the board: `supervisor export --tenant {name}`"
    )];
    warnings.extend(tenant_file::remaining_parts(client.root(), &name, &text));
    print_change("Removed", &ChangedTenant { name, path, cancelled, warnings }, output)
}

/// Cancels the tasks of a tenant that may still start or that run. A blocked task keeps waiting for a person.
async fn cancel_all(client: &Client, name: &Tenant) -> Result<Vec<TaskId>, Failure> {
    use Status as S;
    let list = List {
        tenant: Some(name.clone()),
        status: vec![S::Triage, S::Todo, S::Scheduled, S::Ready, S::Running, S::Review],
        ..List::default()
    };
    let (tasks, _) = pages::all(client, &list).await?;
    let ids: Vec<TaskId> = tasks.into_iter().map(|task| task.id).collect();
    let verb = Cancel { reason: Some(format!("the tenant {name} is removed")), ..Cancel::default() };
    for part in ids.chunks(PART) {
        let done = client.call(&verb.about(part.to_vec())).await?;
        if let Some(failed) = done.results.iter().find(|one| !one.ok) {
            let why = failed.error.clone().unwrap_or_default();
            return Err(Failure::new(failed.code.unwrap_or(Code::Failed), format!("{}: {why}", failed.id))
                .hint("the tenant was not removed; some of its tasks are cancelled"));
        }
    }
    Ok(ids)
}
