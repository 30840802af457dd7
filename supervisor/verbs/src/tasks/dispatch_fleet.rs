//! `dispatch-fleet`: creates a task for each subdirectory of a directory, once per tick.

use std::path::{Component, Path, PathBuf};
use std::time::Duration;

use kernel::{
    Board, Clock as _, FLEET_BATCH, FleetId, NewFleetTask, NewTask, Profile, SystemClock, TaskId, Tenant,
    Tick, WorkspaceSpec, spread,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::fleet_root::ParentDirectory;
use super::{obstacles, tenant_defaults};
use crate::notify::default_subscriber;
use crate::views::parse;
use api::command::Command;
use api::{Call, Verb, blocking, confine_to, verb};
use base::exit::Code;
use base::failure::Failure;
use base::invocation::Invocation;
use base::terminal::{Cell, Ink, Screen};
use base::time::duration::WrittenDuration;
use base::time::timestamp::today;
use daemon::check_workspace;

/// The title of a task where none is given.
const TITLE: &str = "engage {directory}";

kernel::task_request! { fleet
/// Create a task for each subdirectory of a directory, once per tick
#[derive(Clone, Debug, clap::Args, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[command(after_help = "\
Each task works in its directory, and its tenant is the directory's name. Hidden
directories are left out, symbolic links are not followed, and a directory that another
user has put there is refused. A second call at the same tick creates nothing and lists
what exists.

{directory}, {tenant}, {tick}, {profile} and {path} in --title and --body stand for their
values.

Examples:
  supervisor dispatch-fleet insta-manager ~/insta
  supervisor dispatch-fleet insta-manager ~/insta --tick 2026-11-23T08:00
  supervisor dispatch-fleet insta-manager ~/insta --match 'acct-1*' --dry-run
  supervisor dispatch-fleet shell ~/insta --title 'check {directory}' \\
      --body './check {tick}' --json")]
pub struct DispatchFleet {
    /// The assignee: a profile or a lane
    pub profile: Profile,
    /// The directory above the directories of the fleet
    // `root` is the id of the global option.
    #[arg(id = "fleet_root", value_name = "ROOT")]
    pub root: PathBuf,
    /// The names of the directories
    #[arg(skip)]
    #[serde(default)]
    pub directories: Vec<String>,
    /// Only directories whose names match: * stands for any text, ? for one character
    #[arg(long = "match", value_name = "GLOB")]
    #[serde(skip)]
    pub matching: Option<String>,
    /// The tenant of each task is the name of its directory; this is the default
    #[arg(long)]
    #[serde(skip)]
    pub tenant_from_directory: bool,
    /// The tenant of all tasks
    #[arg(long, value_name = "NAME", conflicts_with = "tenant_from_directory")]
    #[serde(default)]
    pub tenant: Option<Tenant>,
    /// The tick: each directory gets one task per tick [default: today's date]
    #[arg(long, value_name = "TICK")]
    #[serde(default)]
    pub tick: Option<Tick>,
    /// The title of each task [default: 'engage {directory}']
    #[arg(long, value_name = "TEXT")]
    #[serde(default)]
    pub title: Option<String>,
    /// The body of each task [default: its title]
    #[arg(long, value_name = "TEXT")]
    #[serde(default)]
    pub body: Option<String>,
    /// Read the body from a file, or from standard input with `-`
    #[arg(long, value_name = "FILE", conflicts_with = "body")]
    #[serde(skip)]
    pub body_file: Option<PathBuf>,
    /// Priority: tasks with a higher number start first
    #[arg(long, value_name = "N", allow_negative_numbers = true, default_value = "0", value_parser = parse::priority)]
    #[serde(default)]
    pub priority: i64,
    @first;
    /// Let each task start at a time of its own, up to this long from now
    #[arg(long, value_name = "DURATION")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub jitter: Option<WrittenDuration>,
    /// The policy of the workers, by name [default: the configured one]
    #[arg(long, value_name = "NAME")]
    #[serde(default)]
    pub policy: Option<String>,
    /// Refuse a root with more directories than this
    #[arg(long, value_name = "N", default_value = "1000", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    #[serde(skip)]
    pub limit: u32,
    /// The uid for which the tasks are created; only root names another than its own [default: the caller]
    #[arg(long, value_name = "UID")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub creator: Option<u32>,
    /// Print what would be created, and create nothing
    #[arg(long)]
    #[serde(default)]
    pub dry_run: bool,
    /// Recipient of notifications: a channel, as with `create --notify`; `none` for no notifications
    #[arg(long, value_name = "CHANNEL", env = "SUPERVISOR_CHANNEL")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub notify: Option<String>,
    @last;
}
}

/// Result for a directory.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct FleetLine {
    directory: String,
    tenant: Option<Tenant>,
    /// Its task; none where it is refused, and where it would be created.
    task_id: Option<TaskId>,
    status: Option<kernel::Status>,
    /// True if the task existed before.
    existing: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    hint: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    code: Option<Code>,
}

/// Results for the directories of a fleet at a tick.
#[derive(Debug, Serialize, Deserialize)]
pub struct FleetDispatched {
    profile: Profile,
    root: PathBuf,
    tick: Tick,
    dry_run: bool,
    created: u64,
    existing: u64,
    refused: u64,
    directories: Vec<FleetLine>,
    /// Obstacles that currently keep the tasks from running, and the directories left out.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}

impl FleetDispatched {
    /// Returns a reply without directories.
    pub fn none(profile: Profile, root: PathBuf, tick: Tick, dry_run: bool) -> Self {
        let (directories, warnings) = (Vec::new(), Vec::new());
        FleetDispatched {
            profile,
            root,
            tick,
            dry_run,
            created: 0,
            existing: 0,
            refused: 0,
            directories,
            warnings,
        }
    }

    fn add(&mut self, line: FleetLine) {
        let count = match &line {
            FleetLine { error: Some(_), .. } => &mut self.refused,
            FleetLine { existing: true, .. } => &mut self.existing,
            FleetLine { .. } => &mut self.created,
        };
        *count += 1;
        self.directories.push(line);
    }

    /// Adds a directory with the error that kept it from getting a task.
    pub fn refuse(&mut self, directory: String, failure: Failure) {
        self.add(FleetLine {
            directory,
            tenant: None,
            task_id: None,
            status: None,
            existing: false,
            error: Some(failure.message),
            hint: failure.hint,
            code: Some(failure.code),
        });
    }

    /// Adds the results of more directories.
    pub fn extend(&mut self, more: Self) {
        more.directories.into_iter().for_each(|line| self.add(line));
        for warning in more.warnings {
            if !self.warnings.contains(&warning) {
                self.warnings.push(warning);
            }
        }
    }

    /// Lists the directories by their names.
    pub fn sort(&mut self) {
        self.directories.sort_by(|a, b| a.directory.cmp(&b.directory));
    }
}

impl DispatchFleet {
    /// Fills a directory's values into a template.
    fn filled(&self, template: &str, directory: &str, tenant: &Tenant, tick: &Tick) -> String {
        let path = self.root.join(directory).display().to_string();
        let words = [
            ("{directory}", directory),
            ("{tenant}", tenant.as_str()),
            ("{tick}", tick.as_str()),
            ("{profile}", self.profile.as_str()),
            ("{path}", &path),
        ];
        // One pass from left to right: placeholders inside of a value are not filled in.
        let (mut text, mut rest) = (String::new(), template);
        while let Some(at) = rest.find('{') {
            let (before, from) = rest.split_at(at);
            text.push_str(before);
            let word = words.iter().find(|(word, _)| from.starts_with(word));
            let (value, length) = word.map_or(("{", 1), |(word, value)| (*value, word.len()));
            text.push_str(value);
            rest = &from[length..];
        }
        text + rest
    }

    fn task(&self, directory: &str, tick: &Tick) -> Result<NewFleetTask, Failure> {
        let parts: Vec<_> = Path::new(directory).components().collect();
        if !matches!(parts.as_slice(), [Component::Normal(only)] if *only == directory) {
            return Err(Failure::usage(format!("{directory:?} is not the name of a directory"))
                .hint("name each directory by one part of its path, as `ls` lists it"));
        }
        let named: Tenant = directory.parse().map_err(|e: kernel::ParseError| {
            Failure::usage(format!("the directory's name: {e}"))
                .hint("rename it, or leave it out with --match")
        })?;
        let tenant = self.tenant.clone().unwrap_or(named);
        let title = self.filled(self.title.as_deref().unwrap_or(TITLE), directory, &tenant, tick);
        let body = self.body.as_ref().map(|body| self.filled(body, directory, &tenant, tick));
        let place = WorkspaceSpec::Directory(self.root.join(directory));
        let delay =
            self.jitter.map(|most| spread(most.duration(), &format!("{directory}\0{}", tick.as_str())));
        let said = self.clone();
        let new = kernel::filled_task! { fleet said => NewTask };
        let task = NewTask {
            not_before: delay.filter(|delay| !delay.is_zero()).map(|delay| SystemClock.now().after(delay)),
            body: Some(body.unwrap_or_else(|| title.clone())),
            title,
            assignee: Some(self.profile.clone()),
            tenant: Some(tenant),
            priority: self.priority,
            workspace: place.into(),
            policy: self.policy.clone(),
            ..new
        };
        Ok(NewFleetTask { directory: directory.to_owned(), task })
    }

    /// Returns the task of a directory, checked by its name and path only, without a look at the host.
    fn judged(&self, directory: &str, tick: &Tick, call: &Call) -> Result<NewFleetTask, Failure> {
        let mut task = self.task(directory, tick)?;
        let tenant = task.task.tenant.clone();
        let fields = &mut task.task;
        tenant_defaults::fill_in(call, tenant.as_ref(), &mut fields.assignee, &mut fields.policy)?;
        let place = WorkspaceSpec::Directory(self.root.join(directory));
        tenant_defaults::require_workspace(call, tenant.as_ref(), &place)?;
        Ok(task)
    }

    /// Returns the task of each directory, or the error if it cannot have one.
    async fn tasks(
        &self,
        tick: &Tick,
        call: &Call,
    ) -> Result<Vec<(String, Result<NewFleetTask, Failure>)>, Failure> {
        // Each name is checked before it is joined to the root and the directory examined.
        let judged = self.directories.iter().map(|name| (name.clone(), self.judged(name, tick, call)));
        let (judged, root): (Vec<_>, _) = (judged.collect(), self.root.clone());
        let looked = blocking("the directories were not looked at", move || {
            let above = ParentDirectory::examine(&root)?;
            let look = |(name, task): (String, Result<NewFleetTask, Failure>)| {
                let task = task.and_then(|task| above.require(&root.join(&name)).map(|()| task));
                (name, task)
            };
            Ok::<_, Failure>(judged.into_iter().map(look).collect::<Vec<_>>())
        });
        let mut tasks = Vec::new();
        for (name, task) in looked.await?? {
            let task = match task {
                Ok(task) => {
                    let place = WorkspaceSpec::Directory(self.root.join(&name));
                    check_workspace(&call.service, &place, call.actor.uid).await.map(|_| task)
                }
                Err(failure) => Err(failure),
            };
            tasks.push((name, task));
        }
        Ok(tasks)
    }
}

impl Verb for DispatchFleet {
    verb! { "dispatch-fleet": Operator, Write, members => FleetDispatched }

    fn answered_within(&self) -> Duration {
        // A separate process examines each directory.
        Duration::from_mins(10)
    }

    fn policy(&self) -> Option<&str> {
        self.policy.as_deref()
    }

    fn confine(&mut self, tenant: &Tenant) -> Result<(), Failure> {
        confine_to(tenant, &mut self.tenant)
    }

    async fn run(self, mut call: Call) -> Result<FleetDispatched, Failure> {
        let root = self
            .root
            .to_str()
            .filter(|root| root.starts_with('/') && !root.split('/').any(|part| part == ".."));
        let Some(root) = root.map(str::to_owned) else {
            return Err(Failure::usage(format!("{} is not an absolute path in UTF-8", self.root.display()))
                .hint("name the directory from / on, without `..`"));
        };
        if self.directories.is_empty() || self.directories.len() > FLEET_BATCH {
            let count = self.directories.len();
            return Err(Failure::usage(format!(
                "directories: one request has 1 to {FLEET_BATCH} of them, not {count}"
            ))
            .hint("send the others with further requests"));
        }
        if let Some(tenant) = call.confined() {
            // This check comes first: a tenant's user must not learn which directories exist outside of its own place.
            tenant_defaults::require_workspace(
                &call,
                Some(tenant),
                &WorkspaceSpec::Directory(self.root.clone()),
            )?;
        }
        call.actor.uid = tenant_defaults::acting_uid(&call);
        if let Some(creator) = self.creator {
            let is_root = call.actor.uid == Some(0) && call.confined().is_none();
            if !is_root && call.actor.uid != Some(creator) {
                return Err(Failure::new(Code::NotPermitted, "only root creates tasks for another user")
                    .hint("leave --creator out"));
            }
            call.actor.uid = Some(creator);
        }
        if let Some(policy) = &self.policy {
            call.service.roster().policies().find(policy)?;
        }
        let tick = self.tick.clone().unwrap_or_else(today);
        let mut reply =
            FleetDispatched::none(self.profile.clone(), self.root.clone(), tick.clone(), self.dry_run);
        reply.warnings.extend(obstacles::obstacle(&self.profile, self.policy.as_deref(), None, &call).await?);
        let channel = default_subscriber::channel(&call, self.notify.as_deref())?;
        let mut tasks = Vec::new();
        for (directory, task) in self.tasks(&tick, &call).await? {
            match task {
                Ok(mut task) => {
                    task.task.origin.channel.clone_from(&channel);
                    tasks.push(task);
                }
                Err(failure) => reply.refuse(directory, failure),
            }
        }
        let (fleet, dry_run) = (FleetId { profile: self.profile.clone(), root }, self.dry_run);
        call.write(move |board, actor| {
            let names: Vec<_> =
                tasks.iter().map(|new| (new.directory.clone(), new.task.tenant.clone())).collect();
            let dispatch = |board: &mut Board<'_>| board.dispatch_fleet(&fleet, &tick, tasks, actor);
            let made = if dry_run { board.rehearse(dispatch)? } else { dispatch(board)? };
            for ((directory, tenant), made) in names.into_iter().zip(made) {
                match made {
                    Err(error) => reply.refuse(directory, Failure::from(error)),
                    Ok(created) => reply.add(FleetLine {
                        directory,
                        tenant,
                        task_id: (created.existing || !dry_run).then_some(created.task.id),
                        status: Some(created.task.status),
                        existing: created.existing,
                        error: None,
                        hint: None,
                        code: None,
                    }),
                }
            }
            reply.sort();
            Ok(reply)
        })
        .await
    }
}

impl Command for DispatchFleet {
    fn localize(&mut self, _here: &Invocation) -> Result<(), Failure> {
        if let Some(path) = self.body_file.take() {
            self.body = Some(parse::read_text(&path)?);
        }
        let root = parse::expanded(&self.root);
        self.root = std::path::absolute(&root).map_err(|e| Failure::file("resolve", &root, &e))?;
        self.tick = Some(self.tick.take().unwrap_or_else(today));
        Ok(())
    }

    fn show(reply: &FleetDispatched, screen: &mut Screen) {
        let FleetDispatched { profile, root, tick, created, existing, refused, .. } = reply;
        let word = if reply.dry_run { "would be created" } else { "created" };
        screen.line(format!(
            "{profile} in {} at {tick}: {created} {word}, {existing} existed, {refused} refused",
            root.display()
        ));
        let rows = reply.directories.iter().filter(|line| line.error.is_none()).map(|line| {
            let status = line.status.map(|status| status.to_string());
            let what = if line.existing { "exists" } else { word };
            [
                Cell::from(line.directory.clone()),
                Cell::or_dash(line.task_id.as_ref()),
                Cell::or_dash(status),
                Cell::from(what.to_owned()),
            ]
        });
        let rows: Vec<_> = rows.collect();
        if !rows.is_empty() {
            screen.table(["DIRECTORY", "TASK", "STATUS", ""], rows);
        }
        for line in &reply.directories {
            let Some(error) = &line.error else { continue };
            let label = screen.paint(Ink::Red, "refused:");
            screen.line(format!("{label} {}: {error}", line.directory));
            if let Some(hint) = &line.hint {
                screen.line(format!("         hint: {hint}"));
            }
        }
    }

    fn warnings(reply: &FleetDispatched) -> &[String] {
        &reply.warnings
    }

    fn verdict(reply: &FleetDispatched) -> u8 {
        reply.directories.iter().find_map(|line| line.code).map_or(0, Code::exit)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fleet(title: &str) -> DispatchFleet {
        let json = serde_json::json!({"profile": "insta", "root": "/srv/insta", "title": title});
        serde_json::from_value(json).unwrap()
    }

    #[test]
    fn a_template_is_filled_in_once_and_other_braces_stay() {
        let verb = fleet("{tenant}: ${x} {tick} {path} {other} {");
        let task = verb.task("acct-1", &"7".parse().unwrap()).unwrap().task;
        assert_eq!(task.title, "acct-1: ${x} 7 /srv/insta/acct-1 {other} {");
        assert_eq!(task.body, Some(task.title));
        assert_eq!(task.workspace.as_str(), "dir:/srv/insta/acct-1");
    }

    #[test]
    fn a_directory_whose_name_no_tenant_can_have_is_refused() {
        for name in ["a b", "..", ".", "a/b", "a/", "/root/.ssh", "$(id)", ""] {
            assert!(fleet("x").task(name, &"7".parse().unwrap()).is_err(), "{name}");
        }
    }
}
