//! `save-schedule`: writes the file of a schedule, and defines the schedule on its board.

use clap::{Args as _, FromArgMatches as _};
use kernel::{BoardName, Clock as _, ScheduleName, ScheduleSpec, SystemClock, Timestamp};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::DispatchFleet;
use crate::notify::default_subscriber::known;
use api::command::Command;
use api::{Call, Verb, blocking, verb};
use base::exit::Code;
use base::failure::Failure;
use base::terminal::Screen;
use base::time::timestamp;
use daemon::check_workspace;
use service::Service;
use setup::automation::schedules::{
    PlannedText, ScheduleText, file_of, path_of, saved_text, text_of, to_save, write,
};
use setup::config::notify::NOBODY;

/// Limit on the schedules of a root.
const MOST: usize = 1000;

/// Save a schedule: when it ticks, and the tasks that a tick makes
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SaveSchedule {
    /// Its name, which is also the name of its file
    pub name: ScheduleName,
    /// The content of its file, as an object
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schedule: Option<ScheduleText>,
    /// The text of its file, instead of `schedule`
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// Replace a schedule of that name
    #[serde(default)]
    pub replace: bool,
}

/// A schedule that was saved.
#[derive(Debug, Serialize, Deserialize)]
pub struct Saved {
    pub name: ScheduleName,
    pub path: std::path::PathBuf,
    pub board: BoardName,
    pub paused: bool,
    /// Its next tick.
    pub next: Option<Timestamp>,
    /// Obstacles that currently keep it from ticking.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}

impl Verb for SaveSchedule {
    verb! {
        "save-schedule": Operator, Write,
        on(None),
        tool(Operator, "It has `cron`, `every` or `at`, and `task`, or `tasks` with names and parents.")
        => Saved
    }

    async fn run(self, call: Call) -> Result<Saved, Failure> {
        let service = call.service.clone();
        let text = match (self.text, self.schedule) {
            (Some(text), None) => text,
            (None, Some(schedule)) => schedule.to_toml()?,
            (Some(_), Some(_)) | (None, None) => {
                return Err(Failure::usage("a schedule is saved from `schedule` or from `text`")
                    .hint("give one of them"));
            }
        };
        let (name, replace, author) = (self.name, self.replace, call.actor.uid);
        let path = path_of(service.root(), &name);
        let file = to_save(&name, text, &path)?;
        call.require_policies(&file.planned.spec.tasks)?;
        let saved = blocking("the schedule was not saved", move || {
            save(&service, &name, &saved_text(&name, file, &path, author)?, replace)
        });
        let mut saved = saved.await??;
        saved.warnings.extend(unusable(&call, &saved.name).await);
        Ok(saved)
    }
}

/// Saves a schedule. Its text names the user who saved it. The file and the board are synced to disk when this returns.
/// Blocking.
pub(super) fn save(
    service: &Service,
    name: &ScheduleName,
    file: &PlannedText,
    replace: bool,
) -> Result<Saved, Failure> {
    let (root, path) = (service.root(), path_of(service.root(), name));
    let before = file_of(root, name);
    // A repeated request finds its own text in the file.
    let is_repeat = || text_of(root, name).ok().flatten().is_some_and(|before| before == file.text);
    if let Some(before) = before.as_ref().filter(|_| !replace && !is_repeat()) {
        return Err(Failure::new(Code::Conflict, format!("{} exists already", before.display()))
            .hint(format!("change it with `supervisor schedules edit {name}`, or replace it with --force")));
    }
    if before.is_none() && service.schedules().names().count() >= MOST {
        return Err(Failure::new(Code::Exhausted, format!("there are {MOST} schedules already"))
            .hint("remove one with `supervisor schedules rm`"));
    }
    let planned = &file.planned;
    let dispatch = check_command(&planned.spec)?;
    // A missing board is refused before anything is written.
    let board = service.board(&planned.board)?;
    write(root, name, file)?;
    service.read_schedules();
    // The board runs its jobs in order, so it has the new definition when it runs this one.
    let defined = name.clone();
    let known = board.writer()?.call(move |board| board.find_schedule(&defined))?;
    let next = known.and_then(|schedule| schedule.next);
    Ok(Saved {
        name: name.clone(),
        path,
        board: planned.board.clone(),
        paused: planned.spec.paused,
        next,
        warnings: {
            let mut warnings = warnings(service, &planned.text);
            warnings.extend(dispatch.iter().flat_map(|dispatch| unready(service, dispatch)));
            warnings.extend(late(name, &planned.spec));
            if next.is_none() && !planned.spec.paused {
                warnings.push("there is no further tick: all its times are over".to_owned());
            }
            warnings
        },
    })
}

/// Returns why tasks of a schedule cannot use their workspaces, by the rule of `create`.
async fn unusable(call: &Call, name: &ScheduleName) -> Vec<String> {
    let schedules = call.service.schedules();
    let Some(planned) = schedules.get(name) else { return Vec::new() };
    let mut warnings = Vec::new();
    for template in &planned.spec.tasks {
        let Some(place) = template.task.workspace.spec() else { continue };
        if let Err(failure) = check_workspace(&call.service, place, planned.spec.creator_uid).await {
            warnings.push(format!("each tick will fail: {}", failure.message));
        }
    }
    warnings
}

/// Parses the command of a schedule, and refuses a command that fails at every tick.
fn check_command(spec: &ScheduleSpec) -> Result<Option<DispatchFleet>, Failure> {
    let Some(words) = &spec.command else { return Ok(None) };
    let at_a_tick = words.iter().map(|word| word.replace("{tick}", "2026-11-23T08:00"));
    let parser = DispatchFleet::augment_args(clap::Command::new(DispatchFleet::NAME)).disable_help_flag(true);
    let matches = parser.color(clap::ColorChoice::Never).term_width(0).try_get_matches_from(at_a_tick);
    let dispatch = matches.and_then(|matches| DispatchFleet::from_arg_matches(&matches)).map_err(|e| {
        let text = e.to_string();
        let why = text.lines().next().unwrap_or_default().trim_start_matches("error: ");
        Failure::usage(format!("command: {why}"))
            .hint("`supervisor help dispatch-fleet` lists the arguments; nothing was written")
    })?;
    if dispatch.root.is_absolute() {
        return Ok(Some(dispatch));
    }
    Err(Failure::usage(format!("command: {} is a relative path", dispatch.root.display()))
        .hint("use an absolute path, or one that begins with ~/; nothing was written"))
}

/// Obstacles that currently keep a command from making tasks, or their workers from starting.
fn unready(service: &Service, dispatch: &DispatchFleet) -> Vec<String> {
    let unknown = service.roster().resolve(&dispatch.profile, None, &service.config()).err();
    let mut warnings: Vec<String> = unknown.map(|why| why.warning()).into_iter().collect();
    if !dispatch.root.is_dir() {
        warnings.push(format!(
            "there is no directory {}: each tick fails until there is",
            dispatch.root.display()
        ));
    }
    warnings
}

/// Warns of a jitter that lets tasks of a tick start after the next tick.
fn late(name: &ScheduleName, spec: &ScheduleSpec) -> Option<String> {
    let jitter = spec.jitter?;
    let ahead = kernel::ticks_ahead(name, spec, SystemClock.now(), 2).ok()?;
    let [first, second] = ahead.as_slice() else { return None };
    let gap = second.since(*first);
    (jitter > gap).then(|| {
        let (jitter, gap) = (kernel::brief(jitter), kernel::brief(gap));
        format!("a jitter of {jitter} is longer than the {gap} between two ticks: tasks may start after the next tick")
    })
}

/// Obstacles that currently keep the tasks of a schedule from running.
fn warnings(service: &Service, schedule: &ScheduleText) -> Vec<String> {
    let mut warnings = Vec::new();
    if service.daemon().is_none() {
        warnings.push("no daemon is running, so nothing ticks: supervisor daemon".to_owned());
    }
    let titles = schedule.task.iter().chain(&schedule.tasks).map(|task| &task.title);
    for text in titles.chain(&schedule.command) {
        for word in kernel::unknown_placeholders(text) {
            warnings.push(format!(
                "{{{word}}} is not replaced by a tick: only {{date}}, {{time}}, {{tick}} and {{schedule}} are"
            ));
        }
    }
    let (roster, config) = (service.roster(), service.config());
    let classes = config.quotas().approvals;
    if let Some(channel) = schedule.channel.as_deref().filter(|channel| *channel != NOBODY)
        && let Err(failure) = known(channel, &config.notify)
    {
        warnings.push(format!("nobody is notified: {}", failure.message));
    }
    for task in schedule.task.iter().chain(&schedule.tasks) {
        let unknown = task.approval_class.as_ref().and_then(|class| classes.rule_for(class).err());
        warnings.extend(unknown.map(|error| format!("each tick will fail: {error}")));
        match &task.assignee {
            None => warnings.push(format!("nobody is assigned to `{}`, so nothing runs it", task.title)),
            Some(assignee) => {
                if let Err(why) = roster.resolve(assignee, task.policy.as_deref(), &config) {
                    warnings.push(why.warning());
                }
            }
        }
    }
    warnings
}

impl Command for SaveSchedule {
    fn show(reply: &Saved, screen: &mut Screen) {
        let next = match reply.next {
            Some(at) => format!("next tick {}", timestamp::local(at)),
            None if reply.paused => "paused".to_owned(),
            None => "there is no further tick".to_owned(),
        };
        screen.line(format!("Saved {}  {next}", reply.name));
    }

    fn warnings(reply: &Saved) -> &[String] {
        &reply.warnings
    }
}
