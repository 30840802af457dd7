//! Control of missions by people: create, pause, resume and cancel.

use std::path::PathBuf;

use kernel::{MissionCaps, MissionEnds, Pause, Profile, TaskId, Tenant};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::tasks::create::{Create, CreateReply, localized};
use crate::views::{parse, usage_text};
use api::command::Command;
use api::{Call, Verb, verb};
use base::cli_context;
use base::failure::Failure;
use base::invocation::Invocation;
use base::terminal::Screen;
use base::time::duration::WrittenDuration;

/// Create a mission: its first task, with limits for all tasks below it
#[derive(Clone, Debug, Default, clap::Args, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[command(after_help = "\
The first task is one like any other: its assignee divides the goal into tasks. People add
tasks with `create --mission`. Limits that are left out are those of [missions] in
supervisor.toml. A mission at a limit is paused and asks: `supervisor answer TASK 1`.

Examples:
  supervisor mission create 'build a website' --assignee planner --max-tasks 12
  supervisor mission create 'book a flight' --max-cost 2.50 --max-runtime 2h")]
pub struct CreateMission {
    /// The goal, in one line
    pub title: String,
    /// The goal itself: the prompt of an agent, the script of the shell lane
    #[arg(long, value_name = "TEXT")]
    pub body: Option<String>,
    /// Read the body from a file, or from standard input with `-`
    #[arg(long, value_name = "FILE", conflicts_with = "body")]
    #[serde(skip)]
    pub body_file: Option<PathBuf>,
    /// The assignee, which divides it into tasks and does the rest itself
    #[arg(long, value_name = "NAME")]
    pub assignee: Option<Profile>,
    /// Its tenant
    #[arg(long, value_name = "NAME", env = "SUPERVISOR_TENANT")]
    pub tenant: Option<Tenant>,
    /// The workspace of its first task, as with `create`
    #[arg(long, value_name = "WHERE")]
    pub workspace: Option<String>,
    /// Key of the request: a second create with the same key returns the existing mission
    #[arg(long, value_name = "KEY")]
    pub idempotency_key: Option<String>,
    /// Limit on its tasks, the first one included
    #[arg(long, value_name = "N")]
    pub(crate) max_tasks: Option<u64>,
    /// Limit on the depth of tasks that workers create below the first one
    #[arg(long, value_name = "N")]
    pub max_depth: Option<u32>,
    /// Limit on the time of all its runs together: seconds, or 30m, 2h, 1d
    #[arg(long, value_name = "DURATION")]
    pub max_runtime: Option<WrittenDuration>,
    /// Limit on its cost in US dollars, as agents report it, such as 2.50
    #[arg(long = "max-cost", value_name = "USD", value_parser = usage_text::micros)]
    pub(crate) max_cost_micros: Option<u64>,
    /// Recipient of notifications: a channel, as with `create --notify`; `none` for no notifications
    #[arg(long, value_name = "CHANNEL", env = "SUPERVISOR_CHANNEL")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub notify: Option<String>,
    /// Print only the id of its first task
    #[arg(long, short, conflicts_with = "json")]
    #[serde(skip)]
    pub quiet: bool,
}

impl Verb for CreateMission {
    verb! { "mission-create": Operator, Write => CreateReply }

    async fn run(self, mut call: Call) -> Result<CreateReply, Failure> {
        let caps = MissionCaps {
            max_depth: self.max_depth,
            max_tasks: self.max_tasks,
            max_runtime: self.max_runtime.map(WrittenDuration::duration),
            max_cost_micros: self.max_cost_micros,
        };
        let create = Create {
            title: self.title,
            body: self.body,
            assignee: self.assignee,
            tenant: self.tenant,
            workspace: self.workspace,
            idempotency_key: self.idempotency_key,
            notify: self.notify,
            ..Create::default()
        };
        let (new, warnings) = create.prepare(&mut call).await?;
        let created = call.write(move |board, actor| {
            let created = board.create_mission(new, &caps, actor)?;
            Ok(CreateReply { task: created.task, existing: created.existing, warnings })
        });
        Ok(created.await?.warned(&call).await)
    }
}

impl Command for CreateMission {
    fn localize(&mut self, here: &Invocation) -> Result<(), Failure> {
        if let Some(path) = self.body_file.take() {
            self.body = Some(parse::read_text(&path)?);
        }
        if let Some(text) = &self.workspace {
            self.workspace = Some(localized(here, text)?);
        }
        Ok(())
    }

    fn show(reply: &CreateReply, screen: &mut Screen) {
        <Create as Command>::show(reply, screen);
    }

    fn warnings(reply: &CreateReply) -> &[String] {
        &reply.warnings
    }
}

/// Pause a mission: none of its tasks start until it is resumed
#[derive(Clone, Debug, clap::Args, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[command(after_help = "\
Examples:
  supervisor mission pause t_0123abcd
  supervisor mission pause t_0123abcd --now --reason 'wrong direction'")]
pub struct PauseMission {
    /// Any task of it
    #[arg(value_name = "TASK")]
    pub mission: TaskId,
    /// End its runs as well; their tasks are ready again
    #[arg(long)]
    #[serde(default)]
    pub now: bool,
    /// The reason; kept with the event
    #[arg(long, value_name = "TEXT")]
    #[serde(default)]
    pub reason: Option<String>,
}

/// Resume a paused mission
#[derive(Clone, Debug, clap::Args, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[command(after_help = "\
A mission that is at a limit may have as much again.

Examples:
  supervisor mission resume t_0123abcd
  supervisor mission resume t_0123abcd --reason 'it may cost twice as much'")]
pub struct ResumeMission {
    /// Any task of it
    #[arg(value_name = "TASK")]
    pub mission: TaskId,
    /// The reason; kept with the event
    #[arg(long, value_name = "TEXT")]
    #[serde(default)]
    pub reason: Option<String>,
}

/// Cancel a mission: end its runs, and archive its tasks that are not done
#[derive(Clone, Debug, clap::Args, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[command(after_help = "\
A worker gets SIGTERM, and SIGKILL after `worker.grace`; its task is archived when
nothing of it is left. A task that others outside of the mission wait for is blocked
instead of archived, so that they keep waiting.

Examples:
  supervisor mission cancel t_0123abcd --reason 'not needed any more'")]
pub struct CancelMission {
    /// Any task of it
    #[arg(value_name = "TASK")]
    pub mission: TaskId,
    /// The reason; kept as a comment on each task
    #[arg(long, value_name = "TEXT")]
    #[serde(default)]
    pub reason: Option<String>,
}

/// Result of a change of a mission.
#[derive(Debug, Serialize, Deserialize)]
pub struct Steered {
    /// The task that was named.
    pub mission: TaskId,
    /// The tasks that are over, or whose runs are being ended.
    pub ended: Vec<TaskId>,
    /// Tasks whose runs are being ended.
    pub ending: Vec<TaskId>,
    /// The mission was at a limit, and may have as much again.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_granted: bool,
}

impl Steered {
    fn from_ends(mission: TaskId, ends: MissionEnds) -> Self {
        Steered { mission, ended: ends.ended, ending: ends.ending, is_granted: false }
    }

    fn show(&self, done: &str, screen: &mut Screen) {
        screen.line(format!("{done} the mission of {}", self.mission));
        if !self.ending.is_empty() {
            let ids: Vec<&str> = self.ending.iter().map(TaskId::as_str).collect();
            screen.hanging("  being ended: ", &ids.join(" "));
        }
    }
}

/// Refuses to end runs that only a daemon can end.
async fn require_daemon(call: &Call, mission: &TaskId) -> Result<(), Failure> {
    let (id, actor) = (mission.clone(), call.actor.clone());
    let limits = call.service.config().mission_limits();
    let open = call
        .read(move |view| {
            let tree = view.mission(&id, &limits, &actor)?.tree.into_iter();
            Ok(tree.filter(|task| task.status == kernel::Status::Running).map(|task| task.id).collect())
        })
        .await?;
    let open: Vec<TaskId> = open;
    call.refuse_live_without_daemon(&open).await
}

impl Verb for PauseMission {
    verb! { "mission-pause": Operator, Write => Steered }

    async fn run(self, call: Call) -> Result<Steered, Failure> {
        if self.now {
            require_daemon(&call, &self.mission).await?;
        }
        let what = if self.now { Pause::Runs } else { Pause::Starts };
        call.write(move |board, actor| {
            let ends = board.pause_by_hand(&self.mission, what, self.reason.as_deref(), actor)?;
            Ok(Steered::from_ends(self.mission, ends))
        })
        .await
    }
}

impl Command for PauseMission {
    fn show(reply: &Steered, screen: &mut Screen) {
        reply.show("Paused", screen);
    }
}

impl Verb for ResumeMission {
    verb! { "mission-resume": Operator, Write => Steered }

    async fn run(self, call: Call) -> Result<Steered, Failure> {
        call.write(move |board, actor| {
            let is_granted = board.resume_mission(&self.mission, self.reason.as_deref(), actor)?;
            Ok(Steered { is_granted, ..Steered::from_ends(self.mission, MissionEnds::default()) })
        })
        .await
    }
}

impl Command for ResumeMission {
    fn show(reply: &Steered, screen: &mut Screen) {
        reply.show("Resumed", screen);
        if reply.is_granted {
            screen.line(cli_context::repeated(&format!(
                "It was at a limit, and may have as much again: supervisor mission show {}",
                reply.mission
            )));
        }
    }
}

impl Verb for CancelMission {
    verb! { "mission-cancel": Operator, Write => Steered }

    async fn run(self, call: Call) -> Result<Steered, Failure> {
        require_daemon(&call, &self.mission).await?;
        call.write(move |board, actor| {
            let ends = board.cancel_mission(&self.mission, self.reason.as_deref(), actor)?;
            Ok(Steered::from_ends(self.mission, ends))
        })
        .await
    }
}

impl Command for CancelMission {
    fn show(reply: &Steered, screen: &mut Screen) {
        reply.show("Cancelled", screen);
    }
}
