//! `assign`: sets the assignee of a task.

use kernel::{Task, TaskId};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::obstacles;
use super::selection::{FLAGS, Matching};
use crate::views::parse;
use api::command::Command;
use api::{Call, Verb, verb};
use base::failure::Failure;
use base::terminal::Screen;

/// Assign a task to a profile, a lane or another worker; `none` removes the assignee
#[derive(Clone, Debug, clap::Args, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[command(after_help = "\
Examples:
  supervisor assign t_0123abcd reviewer
  supervisor assign t_0123abcd shell
  supervisor assign t_0123abcd none
  supervisor assign --assignee shell --tenant acme --to reviewer")]
pub struct Assign {
    /// The task
    #[arg(value_name = "TASK", required_unless_present_any = FLAGS, conflicts_with_all = FLAGS)]
    #[schemars(required)]
    pub task_id: Option<TaskId>,
    /// The assignee: a profile, or a lane such as `shell`; `none`, `-` or `null` removes the assignee
    #[arg(value_name = "ASSIGNEE", required_unless_present = "to", conflicts_with = "to")]
    #[schemars(required)]
    pub profile: Option<String>,
    /// The assignee, when tasks are selected by flags
    #[arg(long, value_name = "ASSIGNEE")]
    #[serde(skip)]
    pub to: Option<String>,
    #[command(flatten)]
    #[serde(skip)]
    pub matching: Matching,
}

/// Reply: the task, and the obstacles to its start.
#[derive(Debug, Serialize, Deserialize)]
pub struct Assigned {
    #[serde(flatten)]
    pub task: Task,
    /// Obstacles that currently keep the task from running.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}

impl Verb for Assign {
    verb! { "assign": Orchestrator, Write, members, tool(Orchestrator, "") => Assigned }

    async fn run(self, call: Call) -> Result<Assigned, Failure> {
        let profile = self.profile.ok_or_else(|| {
            Failure::usage("no assignee is named").hint("send a `profile`; `none` is nobody")
        })?;
        let (id, profile) = (parse::named(self.task_id)?, parse::profile_or_nobody(&profile)?);
        let task = call.write(move |board, actor| board.assign(&id, profile, actor)).await?;
        let mut warnings = Vec::new();
        if let Some(assignee) = &task.assignee {
            warnings
                .extend(obstacles::unrunnable(assignee, task.policy.as_deref(), Some(&task), &call).await?);
            warnings.extend(obstacles::without_board_skill(assignee, &call));
            warnings.extend(obstacles::without_body(&task, &call));
        }
        Ok(Assigned { task, warnings })
    }
}

impl Command for Assign {
    fn show(reply: &Assigned, screen: &mut Screen) {
        let task = &reply.task;
        let to = task.assignee.as_ref().map_or_else(|| "nobody".to_owned(), ToString::to_string);
        screen.line(format!("Assigned {} to {to} ({})", task.id, task.status));
    }

    fn warnings(reply: &Assigned) -> &[String] {
        &reply.warnings
    }
}
