//! `edit`: changes the text and the settings of a task.

use std::path::PathBuf;

use kernel::{CommitMode, Pool, Task, TaskId, Tenant};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{create, obstacles};
use crate::views::parse;
use api::command::Command;
use api::{Call, Verb, not_for_members, require_own, verb};
use base::failure::Failure;
use base::invocation::Invocation;
use base::terminal::Screen;
use base::time::duration::WrittenDuration;

kernel::task_request! { edit
/// Change a task: its text, limits, policy or workspace
#[derive(Clone, Debug, Default, PartialEq, clap::Args, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[command(after_help = "\
Fields that are not named keep their values. Without any field, the title and the body
open in $VISUAL or $EDITOR.

Examples:
  supervisor edit t_0123abcd --result 'shipped in 2.1'
  supervisor edit t_0123abcd --title 'fix the parser' --priority 5
  supervisor edit t_0123abcd --body-file task.md
  supervisor edit t_0123abcd --check 'make test' --max-checks 5
  supervisor edit t_0123abcd --max-runtime 2h --policy strict --skill git
  supervisor edit t_0123abcd --pool gpu --remove-pool licence
  supervisor edit t_0123abcd                    (in an editor)")]
pub struct Edit {
    /// The task
    #[serde(default)]
    pub task_id: Option<TaskId>,
    /// The title: the work in one line
    #[arg(long, value_name = "TEXT")]
    #[serde(default)]
    pub title: Option<String>,
    /// The body
    #[arg(long, value_name = "TEXT")]
    #[serde(default)]
    pub body: Option<String>,
    /// Read the body from a file, or from standard input with `-`
    #[arg(long, value_name = "FILE", conflicts_with = "body")]
    #[serde(skip)]
    pub body_file: Option<PathBuf>,
    /// Priority: tasks with a higher number start first
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = parse::priority)]
    #[serde(default)]
    pub priority: Option<i64>,
    @first;
    /// The result of a done task
    #[arg(long, value_name = "TEXT")]
    #[serde(default)]
    pub result: Option<String>,
    /// The summary of the last completed run
    #[arg(long, value_name = "TEXT")]
    #[serde(default)]
    pub summary: Option<String>,
    /// The metadata of the last completed run: a JSON object
    #[arg(long, value_name = "JSON", value_parser = parse::json_object)]
    #[serde(default)]
    pub metadata: Option<serde_json::Value>,
    /// The tenant of the task; only before the first run, and only without links
    #[arg(long, value_name = "NAME")]
    #[serde(default)]
    pub tenant: Option<Tenant>,
    @second;
    /// The command that verifies the work, run with `sh -c`; an empty command removes the check
    #[arg(long, value_name = "COMMAND")]
    #[serde(default)]
    pub check: Option<String>,
    /// Block the task after this many failed checks in a row
    #[arg(long, value_name = "N")]
    #[serde(default)]
    pub max_checks: Option<u32>,
    /// Handling of uncommitted changes, as in `create`: auto, require or no
    #[arg(long, value_name = "MODE")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<CommitMode>,
    /// Name of the policy that limits the worker's access
    #[arg(long, value_name = "NAME")]
    #[serde(default)]
    pub policy: Option<String>,
    /// The worker's directory, as in `create`; only before the first run
    #[arg(long, value_name = "WHERE")]
    #[serde(default)]
    pub workspace: Option<String>,
    /// A skill for the worker to load, replacing the present ones (repeatable)
    #[arg(long = "skill", value_name = "NAME")]
    #[serde(default)]
    pub skills: Option<Vec<String>>,
    /// A configured pool in which each run also takes a place (repeatable)
    #[arg(long = "pool", value_name = "NAME")]
    #[serde(default)]
    pub pools: Vec<Pool>,
    /// A pool in which runs of the task no longer take a place (repeatable)
    #[arg(long = "remove-pool", value_name = "NAME")]
    #[serde(default)]
    pub removed_pools: Vec<Pool>,
    /// Remove all pools of the task
    #[arg(long, conflicts_with = "removed_pools")]
    #[serde(default)]
    pub clear_pools: bool,
    @last;
}
}

/// Reply: the changed task, with warnings for the person who changed it.
#[derive(Debug, Serialize, Deserialize)]
pub struct Edited {
    #[serde(flatten)]
    pub task: Task,
    /// Warnings about changes that have no effect at present.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}

impl Edit {
    /// Returns warnings about changes that are stored but have no effect at present: unknown skills and pools.
    pub(super) fn warnings(&self, call: &Call) -> Vec<String> {
        let mut warnings = obstacles::missing_skills(self.skills.as_deref().unwrap_or_default(), call);
        warnings.extend(obstacles::missing_pools(&self.pools.iter().cloned().collect(), None, call));
        warnings
    }

    /// Returns true if no change is named.
    pub fn is_empty(&self) -> bool {
        Edit { task_id: self.task_id.clone(), ..Edit::default() } == *self
    }

    /// Returns the requested change.
    ///
    /// # Errors
    /// The policy does not exist, or the caller may not use the workspace, as in `create`.
    pub(super) async fn change(self, call: &Call) -> Result<kernel::Edit, Failure> {
        let edit = kernel::filled_task! { edit self => kernel::Edit };
        let workspace = match self.workspace {
            Some(workspace) => Some(create::place(call, &workspace).await?.into()),
            None => None,
        };
        if let Some(policy) = &self.policy {
            call.service.roster().policies().find(policy)?;
        }
        Ok(kernel::Edit {
            title: self.title,
            body: self.body,
            priority: self.priority,
            result: self.result,
            summary: self.summary,
            metadata: self.metadata,
            tenant: self.tenant,
            policy: self.policy,
            workspace,
            skills: self.skills,
            check: self.check,
            max_checks: self.max_checks,
            commit: self.commit,
            pools: kernel::PoolChange {
                added: self.pools.into_iter().collect(),
                removed: self.removed_pools.into_iter().collect(),
                cleared: self.clear_pools,
            },
            ..edit
        })
    }
}

impl Verb for Edit {
    verb! { "edit": Operator, Write, members => Edited }

    fn policy(&self) -> Option<&str> {
        self.policy.as_deref()
    }

    fn confine(&mut self, tenant: &Tenant) -> Result<(), Failure> {
        if self.tenant.is_some() {
            return Err(not_for_members("another tenant for a task"));
        }
        if self.workspace.is_some() {
            return Err(not_for_members("another workspace for a task"));
        }
        require_own(tenant, self.tenant.as_ref())
    }

    async fn run(self, call: Call) -> Result<Edited, Failure> {
        let id = parse::named(self.task_id.clone())?;
        parse::require_skill_names(self.skills.as_deref().unwrap_or_default())?;
        let warnings = self.warnings(&call);
        let edit = self.change(&call).await?;
        call.write(move |board, actor| Ok(Edited { task: board.edit(&id, &edit, actor)?, warnings })).await
    }
}

impl Command for Edit {
    fn localize(&mut self, here: &Invocation) -> Result<(), Failure> {
        parse::default_to_own_task(&mut self.task_id, here)?;
        if let Some(path) = self.body_file.take() {
            self.body = Some(parse::read_text(&path)?);
        }
        if let Some(text) = &self.workspace {
            self.workspace = Some(create::localized(here, text)?);
        }
        Ok(())
    }

    fn show(reply: &Edited, screen: &mut Screen) {
        screen.line(format!("Edited {} ({})", reply.task.id, reply.task.status));
    }

    fn warnings(reply: &Edited) -> &[String] {
        &reply.warnings
    }
}
