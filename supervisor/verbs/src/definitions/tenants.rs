//! `tenants` and `tenant-usage`: list the tenants, and show the usage of one tenant. `supervisor tenant` sends both verbs.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::time::Duration;

use kernel::{Budget, Budgets, Dollars, RunsUse, Status, TaskId, Tenant, TenantUse, brief};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::views::usage_text::bytes_brief;
use api::command::Command;
use api::{Call, Verb, blocking, confine_to, require_own, verb};
use base::cli_context;
use base::exit::Code;
use base::failure::Failure;
use base::terminal::{Cell, Screen};
use base::time::duration::processor;
use setup::config::tenants::TenantConfig;
use workspace::DiskUse;

/// Limit on the listed tenants that have tasks but no file.
const MOST: u32 = 1000;
/// Limit on the directory entries that a measurement of workspaces examines.
const ENTRIES: u64 = 200_000;
/// Number of days in the table for a person, the latest.
const DAYS: usize = 14;

/// List the tenants: configured ones, and names on tasks.
#[derive(Clone, Debug, Default, clap::Args, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[command(
    about = "List the tenants",
    after_help = "\
Examples:
  supervisor tenant list
  supervisor tenant list --json"
)]
pub struct ListTenants {
    /// Only this one.
    #[arg(skip)]
    pub name: Option<Tenant>,
}

/// Settings of a tenant, with the number of its tasks.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct TenantLine {
    pub name: String,
    /// Its file; none if the tenant exists only through its tasks.
    pub file: Option<PathBuf>,
    pub root: Option<PathBuf>,
    pub user: Option<String>,
    pub users: Vec<String>,
    pub groups: Vec<String>,
    /// The boards that its users may access.
    pub boards: Vec<String>,
    /// Limit on its concurrent workers.
    pub max_running: Option<usize>,
    pub pools: BTreeMap<String, usize>,
    pub max_runtime_seconds: Option<u64>,
    pub policy: Option<String>,
    pub assignee: Option<String>,
    /// Limits in its file, which replace the general limits.
    pub quotas: BTreeMap<String, u64>,
    /// Budget of all its runs for one day.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub budget: BTreeMap<String, String>,
    /// Number of its tasks in each status on the board of the request.
    pub tasks: BTreeMap<Status, i64>,
}

impl TenantLine {
    fn from_tasks(name: &Tenant, call: &Call, tasks: BTreeMap<Status, i64>) -> Self {
        let config = call.service.config();
        let line = TenantLine {
            name: name.to_string(),
            max_running: config.limits.of_tenant(name),
            max_runtime_seconds: config.runtime.most(name).map(|most| most.as_secs()),
            budget: daily(&config.quotas().budgets, name),
            tasks,
            ..TenantLine::default()
        };
        let Some(tenant) = config.tenants.get(name) else { return line };
        let TenantConfig { root, user, users, groups, boards, pools, policy, assignee, .. } = tenant.clone();
        let words = |names: BTreeSet<_>| names.iter().map(ToString::to_string).collect::<Vec<String>>();
        TenantLine {
            file: Some(call.service.root().tenants_dir().join(format!("{name}.toml"))),
            root,
            user: user.map(|user| user.to_string()),
            boards: match boards {
                Some(boards) => boards.iter().map(ToString::to_string).collect(),
                None => vec![kernel::BoardName::default().to_string()],
            },
            users: words(users),
            groups: words(groups),
            pools: pools.into_iter().map(|(pool, places)| (pool.to_string(), places)).collect(),
            policy,
            assignee: assignee.map(|name| name.to_string()),
            quotas: tenant.bounds().into_iter().map(|(bound, limit)| (bound.to_string(), limit)).collect(),
            ..line
        }
    }
}

/// Returns the budget of all runs of a tenant for one day, by the keys of `[budget]`.
fn daily(budgets: &Budgets, tenant: &Tenant) -> BTreeMap<String, String> {
    let Budget { requests, bytes, tokens, cost_micros } =
        *budgets.tenants.get(tenant).unwrap_or(&budgets.per_tenant);
    let counted = [("requests", requests), ("bytes", bytes), ("tokens", tokens)];
    let counted = counted.map(|(name, most)| (name, most.map(|most| most.to_string())));
    let cost = ("cost_usd", cost_micros.map(|micros| Dollars(micros).to_string()));
    let all = counted.into_iter().chain([cost]);
    all.filter_map(|(name, most)| Some((name.to_owned(), most?))).collect()
}

impl Verb for ListTenants {
    verb! { "tenants": Operator, Read, members => Vec<TenantLine> }

    fn confine(&mut self, tenant: &Tenant) -> Result<(), Failure> {
        confine_to(tenant, &mut self.name)
    }

    async fn run(self, call: Call) -> Result<Vec<TenantLine>, Failure> {
        let configured: Vec<Tenant> = call.service.config().tenants.tenant_names().collect();
        let asked = self.name.clone();
        let counted = call.read(move |view| {
            let mut names: BTreeSet<Tenant> = match &asked {
                Some(name) if configured.contains(name) || view.has_tenant(name)? => [name.clone()].into(),
                Some(_) => BTreeSet::new(),
                None => {
                    let known = view.tenants_from("", MOST)?;
                    configured.into_iter().chain(known.iter().filter_map(|name| name.parse().ok())).collect()
                }
            };
            let names = std::mem::take(&mut names).into_iter();
            names
                .map(|name| Ok((view.tasks_by_status(Some(&name), None)?, name)))
                .collect::<Result<Vec<_>, _>>()
        });
        let lines: Vec<TenantLine> = counted
            .await?
            .into_iter()
            .map(|(tasks, name)| TenantLine::from_tasks(&name, &call, tasks))
            .collect();
        match &self.name {
            Some(name) if lines.is_empty() => {
                Err(Failure::new(Code::NotFound, format!("there is no tenant `{name}`"))
                    .hint(format!("create it: supervisor tenant create {name}")))
            }
            Some(_) | None => Ok(lines),
        }
    }
}

impl Command for ListTenants {
    fn show(reply: &Vec<TenantLine>, screen: &mut Screen) {
        if reply.is_empty() {
            screen.line(cli_context::repeated("No tenants. Create one with: supervisor tenant create NAME"));
            return;
        }
        let rows = reply.iter().map(|line| {
            let open: i64 =
                line.tasks.iter().filter(|(status, _)| is_open(**status)).map(|(_, count)| count).sum();
            [
                Cell::from(line.name.clone()),
                Cell::from(open.to_string()),
                Cell::or_dash(line.max_running),
                Cell::or_dash(line.user.as_ref()),
                Cell::or_dash(line.root.as_ref().map(|root| root.display().to_string())),
            ]
        });
        screen.table(["TENANT", "OPEN TASKS", "WORKERS", "USER", "ROOT"], rows);
    }
}

/// Returns true if a task with this status is not over.
pub fn is_open(status: Status) -> bool {
    !matches!(status, Status::Done | Status::Archived)
}

pub fn show_tenant(line: &TenantLine, screen: &mut Screen) {
    let mut row = |label: &str, text: String| {
        if !text.is_empty() {
            screen.hanging(&format!("{label:<13}"), &text);
        }
    };
    let pairs = |pairs: &BTreeMap<String, u64>| {
        pairs.iter().map(|(name, count)| format!("{name} {count}")).collect::<Vec<_>>().join(", ")
    };
    let pools = line.pools.iter().map(|(name, count)| (name.clone(), *count as u64)).collect();
    let tasks = line.tasks.iter().map(|(status, count)| (status.to_string(), count.unsigned_abs())).collect();
    row("tenant", line.name.clone());
    row("file", line.file.as_ref().map(|file| file.display().to_string()).unwrap_or_default());
    row("directory", line.root.as_ref().map(|root| root.display().to_string()).unwrap_or_default());
    row("user", line.user.clone().unwrap_or_default());
    row("users", line.users.join(", "));
    row("groups", line.groups.join(", "));
    row("boards", line.boards.join(", "));
    row("workers", line.max_running.map(|most| most.to_string()).unwrap_or_default());
    row("pools", pairs(&pools));
    row("time limit", line.max_runtime_seconds.map(|s| brief(Duration::from_secs(s))).unwrap_or_default());
    row("policy", line.policy.clone().unwrap_or_default());
    row("assignee", line.assignee.clone().unwrap_or_default());
    row("quotas", pairs(&line.quotas));
    let budget = line.budget.iter().map(|(amount, most)| format!("{amount} {most}"));
    row("budget a day", budget.collect::<Vec<_>>().join(", "));
    row("tasks", pairs(&tasks));
}

/// Show the tasks, files and usage of a tenant.
#[derive(Clone, Debug, clap::Args, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[command(
    about = "Show the tasks, files and usage of a tenant, in total and by day",
    after_help = "\
Examples:
  supervisor tenant usage acme
  supervisor tenant usage acme --json"
)]
pub struct TenantUsage {
    /// The tenant.
    pub name: Tenant,
}

/// The tasks and the usage of a tenant.
#[derive(Debug, Serialize, Deserialize)]
pub struct UsageOfTenant {
    pub tenant: Tenant,
    #[serde(flatten)]
    pub used: TenantUse,
    /// Disk space of its scratch workspaces and its root, in bytes.
    pub(crate) workspace_bytes: u64,
    /// True if not all files were measured, because there are too many or some cannot be read.
    pub(crate) workspace_is_partial: bool,
}

impl Verb for TenantUsage {
    verb! { "tenant-usage": Operator, Read, members => UsageOfTenant }

    fn confine(&mut self, tenant: &Tenant) -> Result<(), Failure> {
        require_own(tenant, Some(&self.name))
    }

    async fn run(self, call: Call) -> Result<UsageOfTenant, Failure> {
        let name = self.name;
        let (config, is_configured) = {
            let config = call.service.config();
            let is_configured = config.tenants.tenant_names().any(|one| one == name);
            (config.tenants.get(&name).cloned(), is_configured)
        };
        let tenant = name.clone();
        let (is_known, used) =
            call.read(move |view| Ok((view.has_tenant(&tenant)?, view.tenant_use(&tenant)?))).await?;
        if !is_known && !is_configured {
            return Err(Failure::new(Code::NotFound, format!("there is no tenant `{name}`"))
                .hint("see `supervisor tenant list`"));
        }
        let scratch = call.service.root().workspaces(call.board()?.name());
        let ids = blocking("the workspaces were not listed", {
            let scratch = scratch.clone();
            move || {
                let entries =
                    std::fs::read_dir(&scratch).map(|entries| entries.flatten().collect::<Vec<_>>());
                let named = entries.unwrap_or_default().into_iter();
                named
                    .filter_map(|entry| TaskId::in_full(entry.file_name().to_str()?).ok())
                    .collect::<Vec<_>>()
            }
        });
        let (ids, tenant) = (ids.await?, name.clone());
        let own = call.read(move |view| {
            let mut own = Vec::new();
            for id in ids {
                if view.task(&id)?.is_some_and(|task| task.tenant.as_ref() == Some(&tenant)) {
                    own.push(id);
                }
            }
            Ok(own)
        });
        let mut places: Vec<PathBuf> = own.await?.iter().map(|id| scratch.join(id.as_str())).collect();
        places.extend(config.and_then(|config| config.root));
        let disk = blocking("the workspaces were not looked at", move || {
            let mut disk = DiskUse::default();
            for place in &places {
                disk.add(place, ENTRIES);
            }
            disk
        });
        let disk = disk.await?;
        Ok(UsageOfTenant {
            tenant: name,
            used,
            workspace_bytes: disk.size.bytes,
            workspace_is_partial: disk.is_partial,
        })
    }
}

impl Command for TenantUsage {
    fn show(reply: &UsageOfTenant, screen: &mut Screen) {
        let UsageOfTenant { tenant, used, .. } = reply;
        let tasks: Vec<String> =
            used.tasks.iter().map(|(status, count)| format!("{count} {status}")).collect();
        let tasks = if tasks.is_empty() { "none".to_owned() } else { tasks.join(", ") };
        screen.hanging("tasks        ", &tasks);
        let more = if reply.workspace_is_partial { " or more" } else { "" };
        screen.line(format!("workspaces   {}{more}", bytes_brief(reply.workspace_bytes)));
        screen.line(format!("attachments  {} in {}", bytes_brief(used.attachment_bytes), used.attachments));
        screen.line(format!(
            "kept         {} entries, {}, {} events",
            used.entries,
            bytes_brief(used.bytes),
            used.events
        ));
        screen.heading(&format!("Used by the runs of {tenant}"));
        let skipped = used.days.len().saturating_sub(DAYS);
        let days = used.days.iter().skip(skipped).map(|(day, used)| cells(day, used));
        screen.table(
            ["DAY", "RUNS", "CPU", "PEAK MEMORY", "READ", "WRITTEN", "TOKENS", "COST"],
            days.chain(std::iter::once(cells("total", &used.total))),
        );
    }
}

fn cells(day: &str, used: &RunsUse) -> [String; 8] {
    [
        day.to_owned(),
        used.runs.to_string(),
        processor(Duration::from_micros(used.cpu_us)).replace(' ', ""),
        bytes_brief(used.peak_memory_bytes),
        bytes_brief(used.read_bytes),
        bytes_brief(used.written_bytes),
        used.tokens.to_string(),
        Dollars(used.cost_micros).to_string(),
    ]
}
