//! `names`: returns names that begin with a text, for the completions of shells.

use std::cmp::Reverse;

use kernel::{Filter, Sort, Task, TaskId, Tenant};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::missions::list::is_over;
use api::{Call, Verb, verb};
use base::failure::Failure;

/// Limit on the returned names, from which a person chooses.
const MOST: u32 = 100;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum NameKind {
    #[default]
    Task,
    Assignee,
    Tenant,
    Policy,
    Board,
    Plugin,
    Schedule,
    Channel,
    /// An account that profiles share.
    Account,
    /// The first task of a mission.
    Mission,
    /// An attached file, by its number.
    Attachment,
    Run,
}

/// Return names of tasks, assignees, tenants, policies, boards, plugins, schedules, channels, accounts, missions, attachments or runs that begin with a text
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Names {
    /// Kind of the names
    pub of: NameKind,
    /// Beginning of the names; empty for all
    pub begins: String,
    /// For runs and attachments: only names of this task
    #[serde(skip_serializing_if = "Option::is_none")]
    pub task: Option<TaskId>,
}

/// Name with a description.
#[derive(Debug, Serialize, Deserialize)]
pub struct NameLine {
    pub name: String,
    /// Description. Of a task: its status and title; of a mission: its state and title; of a file: its name and task;
    /// of a run: its outcome and its worker.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub about: Option<String>,
}

/// The reply: at most 100 names.
#[derive(Debug, Serialize, Deserialize)]
pub struct NamesFound {
    pub names: Vec<NameLine>,
}

impl Verb for Names {
    verb! { "names": Operator, Read, members => NamesFound }

    async fn run(self, call: Call) -> Result<NamesFound, Failure> {
        let begins = self.begins;
        if let (Some(tenant), false) = (call.confined(), matches!(self.of, NameKind::Task | NameKind::Run)) {
            let names = of_member(&call, tenant, self.of);
            return Ok(NamesFound::beginning(names, &begins));
        }
        let names = match self.of {
            NameKind::Task => return tasks(&call, begins).await,
            NameKind::Mission => return missions(&call, begins).await,
            NameKind::Attachment => return attachments(&call, begins, self.task).await,
            NameKind::Run => return runs(&call, begins, self.task).await,
            NameKind::Account => {
                let accounts = call.service.roster().accounts(&call.service.config());
                accounts.into_values().collect()
            }
            NameKind::Assignee => {
                let mut names = call.service.roster().names();
                let from = begins.clone();
                let known = call.read(move |view| view.assignees(&from, MOST as usize)).await?;
                names.extend(known.into_iter().map(|assignee| assignee.name));
                names
            }
            NameKind::Tenant => {
                let from = begins.clone();
                let mut names = call.read(move |view| view.tenants_from(&from, MOST)).await?;
                names.extend(call.service.config().tenants.tenant_names().map(|name| name.to_string()));
                names
            }
            NameKind::Policy => call.service.roster().policies().names().map(str::to_owned).collect(),
            NameKind::Board => {
                call.service.root().board_names()?.into_iter().map(|name| name.to_string()).collect()
            }
            NameKind::Plugin => call.service.plugins().names().map(str::to_owned).collect(),
            NameKind::Schedule => call.service.schedules().names().map(str::to_owned).collect(),
            NameKind::Channel => {
                call.service.config().notify.channels.keys().map(ToString::to_string).collect()
            }
        };
        Ok(NamesFound::beginning(names, &begins))
    }
}

impl NamesFound {
    /// Returns the first names that begin with a text, sorted.
    fn beginning(names: Vec<String>, begins: &str) -> Self {
        let mut names: Vec<String> = names.into_iter().filter(|name| name.starts_with(begins)).collect();
        names.sort_unstable();
        names.dedup();
        names.truncate(MOST as usize);
        NamesFound { names: names.into_iter().map(|name| NameLine { name, about: None }).collect() }
    }
}

/// Returns the names that a tenant's user may see, except names of tasks and runs.
fn of_member(call: &Call, tenant: &Tenant, of: NameKind) -> Vec<String> {
    match of {
        NameKind::Task
        | NameKind::Policy
        | NameKind::Plugin
        | NameKind::Schedule
        | NameKind::Channel
        | NameKind::Account
        | NameKind::Mission
        | NameKind::Attachment
        | NameKind::Run => Vec::new(),
        NameKind::Assignee => call.service.roster().names(),
        NameKind::Tenant => vec![tenant.to_string()],
        NameKind::Board => {
            let config = call.service.config();
            let boards = config.tenants.get(tenant).and_then(|own| own.boards.clone());
            let boards = boards.unwrap_or_else(|| [kernel::BoardName::default()].into());
            boards.iter().map(ToString::to_string).collect()
        }
    }
}

/// Returns the tasks whose ids begin with a text. If no id can begin with the text, returns the tasks that changed
/// last.
async fn tasks(call: &Call, begins: String) -> Result<NamesFound, Failure> {
    let tenant = call.confined().cloned();
    let names = call.read(move |view| {
        let tasks = if let Ok(id) = begins.parse::<TaskId>() {
            let ids = view.tasks_beginning(&id, tenant.as_ref(), MOST)?;
            ids.iter().filter_map(|id| view.task(id).transpose()).collect::<Result<Vec<_>, _>>()?
        } else {
            let filter = Filter { sort: Sort::Updated, limit: MOST, tenant, ..Filter::default() };
            view.tasks(&filter)?.tasks
        };
        // An id typed without `t_` is completed without it: a shell offers only words that begin with the typed text.
        let written = |id: &TaskId| {
            let whole = id.as_str();
            let names = [Some(whole), whole.strip_prefix("t_")];
            names.into_iter().flatten().find(|name| name.starts_with(&begins)).map(str::to_owned)
        };
        let name = |task: Task| {
            let about = Some(format!("{}  {}", task.status, task.title));
            Some(NameLine { name: written(&task.id)?, about })
        };
        Ok(tasks.into_iter().filter_map(name).collect::<Vec<_>>())
    });
    Ok(NamesFound { names: names.await? })
}

/// Returns the missions that are not over.
async fn missions(call: &Call, begins: String) -> Result<NamesFound, Failure> {
    let (limits, actor) = (call.service.config().mission_limits(), call.actor.clone());
    let (missions, _) = call.read(move |view| view.missions(None, &limits, &actor)).await?;
    let named = |id: &TaskId| id.as_str().starts_with(&begins);
    let missions = missions.into_iter().filter(|mission| named(&mission.id) && !is_over(mission.state));
    let name = |mission: kernel::Mission| NameLine {
        name: mission.id.to_string(),
        about: Some(format!("{}  {}", mission.state, mission.title)),
    };
    Ok(NamesFound { names: missions.map(name).take(MOST as usize).collect() })
}

/// Returns the files of a task, or of all tasks if none is named, newest first.
async fn attachments(call: &Call, begins: String, task: Option<TaskId>) -> Result<NamesFound, Failure> {
    let mut files = call
        .read(move |view| match &task {
            Some(task) => view.attachments(task),
            None => view.all_attachments(),
        })
        .await?;
    files.sort_unstable_by_key(|file| Reverse(file.id));
    let names = files.into_iter().map(|file| NameLine {
        name: file.id.to_string(),
        about: Some(format!("{}  {}", file.filename, file.task_id)),
    });
    let names = names.filter(|file| file.name.starts_with(&begins)).take(MOST as usize);
    Ok(NamesFound { names: names.collect() })
}

/// Returns the runs of a task, latest first; none if the request names no task.
async fn runs(call: &Call, begins: String, task: Option<TaskId>) -> Result<NamesFound, Failure> {
    let Some(task) = task else { return Ok(NamesFound { names: Vec::new() }) };
    let actor = call.actor.clone();
    let tenant = call.confined().cloned();
    let runs = call.read(move |view| {
        let is_own = view.task(&task)?.is_some_and(|task| tenant.is_none() || task.tenant == tenant);
        if is_own { Ok(view.history(&task, &actor)?.rows) } else { Ok(Vec::new()) }
    });
    let name = |run: kernel::Run| {
        let outcome = run.outcome.map_or_else(|| "open".to_owned(), |outcome| outcome.to_string());
        let profile = run.profile.map(|profile| format!("  {profile}")).unwrap_or_default();
        NameLine { name: run.id.to_string(), about: Some(format!("{outcome}{profile}")) }
    };
    let names = runs.await?.into_iter().rev().map(name).filter(|run| run.name.starts_with(&begins));
    Ok(NamesFound { names: names.take(MOST as usize).collect() })
}
