//! `fork`: creates a task that continues the session of another task's run.

use kernel::{RunId, Task, TaskId, WorkspaceSpec};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use workspace::{Name, Worktree};

use super::create::{CreateReply, place_of};
use api::command::Command;
use api::{Call, Verb, verb};
use base::exit::Code;
use base::failure::Failure;
use base::terminal::{Ink, Screen, printable};

/// Limit on the characters of a title made from the instructions.
const TITLE: usize = 80;

/// Start a new task from the session of another
#[derive(Clone, Debug, clap::Args, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[command(after_help = "\
The agent of the new task knows all that the agent of the other one knew when its run
ended. The other task stays as it is. The new one has its assignee, tenant, policy
and place: a worktree of its own that begins at the last commit of the other task.

Exit code: 4 if there is no session, a run goes on, or the lane cannot fork one.

Examples:
  supervisor fork t_0123abcd 'now try it with SQLite'
  supervisor fork t_0123abcd 'write the docs' --run 7 --title 'the docs'")]
pub struct Fork {
    /// The task whose session it is
    pub task_id: TaskId,
    /// The instructions for the agent of the new task
    pub body: String,
    /// The run to continue [default: the last run with a session]
    #[arg(long, value_name = "RUN")]
    #[serde(default)]
    pub run: Option<RunId>,
    /// The title of the new task [default: the first line of the instructions]
    #[arg(long, value_name = "TEXT")]
    #[serde(default)]
    pub title: Option<String>,
}

impl Fork {
    fn title(&self) -> String {
        let first = self.body.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default();
        self.title.clone().unwrap_or_else(|| first.chars().take(TITLE).collect())
    }
}

/// The branch from which a fork of a task begins: the branch of the task's own worktree.
fn branch(task: &Task) -> Option<String> {
    match task.workspace.spec()? {
        WorkspaceSpec::Worktree { repository: Some(repository) } => {
            Some(Worktree::new(repository.clone(), Name::new(task.id.as_str()).ok()?).branch())
        }
        WorkspaceSpec::Worktree { repository: None }
        | WorkspaceSpec::Scratch
        | WorkspaceSpec::Directory(_) => None,
    }
}

impl Verb for Fork {
    verb! { "fork": Operator, Write, members => CreateReply }

    async fn run(self, mut call: Call) -> Result<CreateReply, Failure> {
        if self.body.trim().is_empty() {
            return Err(Failure::usage("the fork has nothing to do")
                .hint("say what: supervisor fork TASK 'now try …'"));
        }
        let (id, of, actor) = (self.task_id.clone(), self.run, call.actor.clone());
        let (task, from) =
            call.read(move |view| Ok((view.task_for(&id, &actor)?, view.to_fork(&id, of, &actor)?))).await?;
        let (roster, config) = (call.service.roster(), call.service.config());
        if let Some(profile) = &from.run.profile {
            let resolved = roster.resolve(profile, task.policy.as_deref(), &config)?;
            if !resolved.lane.forks() {
                let name = resolved.lane_name;
                return Err(Failure::new(
                    Code::Conflict,
                    format!("the session of {} cannot be forked: the lane `{name}` does not say how", self.task_id),
                )
                .hint(format!(
                    "`fork` in its file says it, where its program can (`supervisor help docs/lanes.md`); else begin anew: supervisor create … --assignee {profile}"
                )));
            }
        }
        // The same check as for `create`: who may not create a task in this place may not fork one.
        place_of(&mut call, task.tenant.as_ref(), task.workspace.as_str()).await?;
        let order = kernel::Fork {
            run: Some(from.run.id),
            title: self.title(),
            branch: branch(&task),
            body: self.body,
        };
        let id = self.task_id;
        let created = call
            .write(move |board, actor| {
                let created = board.fork(&id, order, actor)?;
                Ok(CreateReply { task: created.task, existing: created.existing, warnings: Vec::new() })
            })
            .await?;
        Ok(created.warned(&call).await)
    }
}

impl Command for Fork {
    fn show(reply: &CreateReply, screen: &mut Screen) {
        let id = screen.paint(Ink::Bold, reply.task.id.as_str());
        let title = printable(&reply.task.title);
        screen.line(format!(
            "Created {id}  {title} ({}){}",
            reply.task.status,
            super::show::forked(&reply.task).map(|from| format!(", forked from {from}")).unwrap_or_default()
        ));
    }

    fn warnings(reply: &CreateReply) -> &[String] {
        &reply.warnings
    }
}
