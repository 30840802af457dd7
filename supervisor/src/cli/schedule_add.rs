//! `schedules add`: creates a schedule from arguments or a file.

use std::path::PathBuf;

use kernel::{CommitMode, Missed, Overlap, Pool, Profile, ScheduleName, Tenant};

use super::call;
use crate::client::Client;
use crate::output::Output;
use base::failure::Failure;
use base::time::duration::WrittenDuration;
use setup::automation::schedules::{ScheduleText, TaskText, TimesText};
use verbs::{SaveSchedule, local_workspace, read_text};

/// Flags that define the schedule's ticks.
const OF_A_SCHEDULE: [&str; 13] = [
    "description",
    "cron",
    "every",
    "at",
    "time_zone",
    "jitter",
    "start",
    "end",
    "missed",
    "overlap",
    "paused",
    "channel",
    "command",
];
/// Flags that define the schedule's task, without its plain fields.
const OF_A_TASK: [&str; 12] = [
    "title",
    "body",
    "body_file",
    "assignee",
    "tenant",
    "workspace",
    "priority",
    "check",
    "commit",
    "policy",
    "skills",
    "pools",
];

/// Returns the flags that define the schedule's task, with the plain fields.
fn of_a_task() -> impl Iterator<Item = &'static str> {
    let plain = kernel::TASK_FIELDS.iter().filter(|field| field.is_in("add")).map(|field| field.request);
    OF_A_TASK.into_iter().chain(plain)
}

kernel::task_request! { add
/// Add a schedule of one task, or of the tasks of a file
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "\
Examples:
  supervisor schedules add brief --cron '0 9 * * mon-fri' \\
      --time-zone Europe/Berlin --title 'AI-funding brief {date}' \\
      --assignee scout --workspace dir:~/Obsidian/AI-Funding
  supervisor schedules add inbox --every 1h --title 'triage the inbox' \\
      --assignee inbox-triage --overlap skip
  supervisor schedules add pipeline --file pipeline.toml")]
pub(super) struct Add {
    /// Its name
    name: ScheduleName,
    /// Take all of it from a file, or from standard input with `-`
    #[arg(long, value_name = "FILE", conflicts_with_all = OF_A_SCHEDULE, conflicts_with_all = of_a_task())]
    file: Option<PathBuf>,
    /// Its purpose, in one line
    #[arg(long, value_name = "TEXT")]
    description: Option<String>,
    #[command(flatten)]
    times: TimesText,
    /// Start the tasks up to this much later than the tick
    #[arg(long, value_name = "DURATION")]
    jitter: Option<WrittenDuration>,
    /// No tick before: '2026-12-01 00:00' or an RFC 3339 time
    #[arg(long, value_name = "TIME")]
    start: Option<String>,
    /// No tick after
    #[arg(long, value_name = "TIME")]
    end: Option<String>,
    /// Ticks that were missed: skip, once or all [default: once]
    #[arg(long, value_name = "RULE")]
    missed: Option<Missed>,
    /// A tick while an earlier task is open: skip, queue or replace [default: skip]
    #[arg(long, value_name = "RULE")]
    overlap: Option<Overlap>,
    /// Add it paused
    #[arg(long)]
    paused: bool,
    /// Recipient of notifications about its tasks: a channel, as with `create --notify`; `none` for no notifications
    #[arg(long, value_name = "CHANNEL")]
    channel: Option<String>,
    /// Replace a schedule of that name
    #[arg(long)]
    force: bool,
    /// The title of its task; {date}, {time}, {tick} and {schedule} are replaced at each tick
    #[arg(long, value_name = "TEXT", required_unless_present_any = ["file", "command"])]
    title: Option<String>,
    /// The body
    #[arg(long, value_name = "TEXT")]
    body: Option<String>,
    /// Read the body from a file, or from standard input with `-`
    #[arg(long, value_name = "FILE", conflicts_with = "body")]
    body_file: Option<PathBuf>,
    /// The assignee: a profile or a lane
    #[arg(long, value_name = "NAME")]
    assignee: Option<Profile>,
    /// Its tenant
    #[arg(long, value_name = "NAME")]
    tenant: Option<Tenant>,
    /// The worker's directory: scratch, <dir:/path> or <worktree:/repository>
    #[arg(long, value_name = "WHERE")]
    workspace: Option<String>,
    /// Priority: tasks with a higher number start first
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    priority: Option<i64>,
    @first;
    /// The check that proves the task done: a command for `sh -c`
    #[arg(long, value_name = "COMMAND")]
    check: Option<String>,
    /// Handling of uncommitted changes in a worktree: auto, require or no
    #[arg(long, value_name = "MODE")]
    commit: Option<CommitMode>,
    /// Name of the policy that limits the worker's access
    #[arg(long, value_name = "NAME")]
    policy: Option<String>,
    /// A skill for the worker to load (repeatable)
    #[arg(long = "skill", value_name = "NAME")]
    skills: Vec<String>,
    /// A pool of which each run takes a place (repeatable)
    #[arg(long = "pool", value_name = "NAME")]
    pools: Vec<Pool>,
    @last;
    /// Carry out `dispatch-fleet PROFILE DIRECTORY` at a tick instead
    #[arg(long, value_name = "COMMAND", conflicts_with_all = of_a_task())]
    command: Option<String>,
}
}

pub(super) async fn run(client: &Client, add: Add, output: Output) -> Result<u8, Failure> {
    let (name, replace) = (add.name.clone(), add.force);
    let save = match &add.file {
        Some(file) => SaveSchedule { name, schedule: None, text: Some(read_text(file)?), replace },
        None => SaveSchedule { name, schedule: Some(add.into_text(client)?), text: None, replace },
    };
    call(client, save, output).await
}

impl Add {
    fn into_text(self, client: &Client) -> Result<ScheduleText, Failure> {
        let body = match self.body_file {
            Some(file) => Some(read_text(&file)?),
            None => self.body,
        };
        let workspace = self.workspace.as_deref().map(local_workspace).transpose()?;
        let plain = kernel::passed_fields! { add self => TaskText };
        let task = self.title.map(|title| TaskText {
            title,
            body,
            assignee: self.assignee,
            tenant: self.tenant,
            workspace,
            priority: self.priority.unwrap_or_default(),
            check: self.check,
            commit: self.commit,
            policy: self.policy,
            skills: self.skills,
            pools: self.pools,
            ..plain
        });
        Ok(ScheduleText {
            description: self.description,
            cron: self.times.cron,
            every: self.times.every,
            at: self.times.at,
            time_zone: self.times.time_zone,
            jitter: self.jitter,
            start: self.start,
            end: self.end,
            missed: self.missed.unwrap_or_default(),
            overlap: self.overlap.unwrap_or_default(),
            paused: self.paused,
            board: Some(client.board().clone()).filter(|board| *board != kernel::BoardName::default()),
            channel: self.channel,
            command: self.command,
            task,
            tasks: Vec::new(),
            saved_by: None,
        })
    }
}
