//! `promote`: moves tasks out of triage, or ends their wait.

use kernel::{Board, Force, Status, TaskId, Tenant};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::bulk::{Bulk, TaskResult};
use super::obstacles;
use super::selection::{FLAGS, Matching, OnTasks, Rows, TaskFilter};
use crate::views::parse;
use api::command::Command;
use api::{Call, Verb, verb};
use base::exit::Code;
use base::failure::Failure;
use base::invocation::Invocation;
use base::terminal::Screen;

/// Move tasks out of triage, or end their wait
#[derive(Clone, Debug, Default, clap::Args, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[command(after_help = "\
A scheduled or blocked task becomes ready at once.

The flags that select tasks take only tasks in triage, unless --status is given.

Examples:
  supervisor promote t_0123abcd 'specified with the customer'
  supervisor promote t_0123abcd --ids t_4567cdef t_89abcdef
  supervisor promote t_0123abcd --force --dry-run
  supervisor promote --assignee claude --dry-run")]
pub struct Promote {
    /// The task
    #[arg(required_unless_present_any = FLAGS, conflicts_with_all = FLAGS)]
    pub task_id: Option<TaskId>,
    /// Reason for the promotion
    #[arg(value_name = "REASON", num_args = 0..)]
    pub reason: Vec<String>,
    /// More tasks
    #[arg(long, value_name = "TASK", num_args = 1.., conflicts_with_all = FLAGS)]
    pub ids: Vec<TaskId>,
    /// Unlink parents that are not done
    #[arg(long)]
    pub force: bool,
    /// Print the result, and change nothing
    #[arg(long)]
    pub dry_run: bool,
    #[command(flatten)]
    #[serde(skip)]
    pub matching: PromoteMatching,
}

/// Flags that select the tasks to promote. `--dry-run` is not among them, because the verb has its own.
#[derive(Clone, Debug, Default, clap::Args)]
#[command(next_help_heading = "Select tasks instead of naming ids")]
pub struct PromoteMatching {
    #[command(flatten)]
    common: TaskFilter,
    /// All tasks of this tenant
    #[arg(long, value_name = "NAME")]
    tenant: Option<Tenant>,
    /// Do not ask for confirmation
    #[arg(long, short)]
    yes: bool,
}

impl OnTasks for Promote {
    fn default_statuses(&self) -> &'static [Status] {
        &[Status::Triage]
    }

    fn matching(&self) -> Matching {
        let PromoteMatching { common, tenant, yes } = &self.matching;
        // With ids, the verb's own dry run shows the result.
        let dry_run = self.dry_run && self.task_id.is_none();
        Matching::new(common.clone(), tenant.clone(), dry_run, *yes)
    }

    fn about(&self, tasks: Vec<TaskId>) -> Self {
        let mut tasks = tasks.into_iter();
        Promote { task_id: tasks.next(), ids: tasks.collect(), ..self.clone() }
    }
}

/// Result for one task.
#[derive(Debug, Serialize, Deserialize)]
pub struct Promotion {
    task_id: TaskId,
    /// True if the task was promoted, or in a dry run would be.
    promoted: bool,
    dry_run: bool,
    forced: bool,
    /// The new status; in a dry run, the status that the task would get.
    #[serde(skip_serializing_if = "Option::is_none")]
    status: Option<kernel::Status>,
    reason: Option<String>,
    /// Obstacle that currently keeps the task from running.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    warning: Option<String>,
    error: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    hint: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    code: Option<Code>,
}

/// Reply: one entry if a single task was named, a list if `--ids` named more.
#[derive(Debug, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Promoted {
    One(Box<Promotion>),
    Many(Vec<Promotion>),
}

impl Rows for Promoted {
    fn none() -> Self {
        Promoted::Many(Vec::new())
    }

    fn add(&mut self, more: Self) {
        let mut all: Vec<Promotion> = Vec::new();
        for part in [std::mem::replace(self, Promoted::none()), more] {
            match part {
                Promoted::One(one) => all.push(*one),
                Promoted::Many(many) => all.extend(many),
            }
        }
        *self = Promoted::Many(all);
    }
}

impl Promoted {
    fn each(&self) -> &[Promotion] {
        match self {
            Promoted::One(one) => std::slice::from_ref(one),
            Promoted::Many(many) => many,
        }
    }

    fn each_mut(&mut self) -> &mut [Promotion] {
        match self {
            Promoted::One(one) => std::slice::from_mut(one),
            Promoted::Many(many) => many,
        }
    }
}

impl Verb for Promote {
    verb! { "promote": Operator, Write, members => Promoted }

    async fn run(self, call: Call) -> Result<Promoted, Failure> {
        let reason = parse::sentence(&self.reason);
        let force = if self.force { Force::Yes } else { Force::No };
        let single = self.ids.is_empty();
        let ids: Vec<TaskId> = self.task_id.into_iter().chain(self.ids).collect();
        let promoted = call.write(move |board, actor| {
            let bulk = Bulk::each(board, ids, |board, id| {
                let promote = |board: &mut Board<'_>| board.promote(id, reason.as_deref(), force, actor);
                let task = if self.dry_run { board.rehearse(promote)? } else { promote(board)? };
                Ok((task.status, None))
            })?;
            let mut promotions = bulk.results.into_iter().map(|one| Promotion {
                task_id: one.id,
                promoted: one.ok,
                dry_run: self.dry_run,
                forced: self.force,
                status: one.status,
                reason: reason.clone(),
                warning: None,
                error: one.error,
                hint: one.hint,
                code: one.code,
            });
            Ok(match promotions.next() {
                Some(only) if single => Promoted::One(Box::new(only)),
                first => Promoted::Many(first.into_iter().chain(promotions).collect()),
            })
        });
        let mut promoted = promoted.await?;
        // Only a task that is ready now can be kept from starting, so the warnings come after the write.
        for one in promoted.each_mut().iter_mut().filter(|one| one.status == Some(Status::Ready)) {
            let id = one.task_id.clone();
            let task = call.read(move |view| view.expect_task(&id)).await?;
            if let Some(assignee) = &task.assignee {
                one.warning =
                    obstacles::unrunnable(assignee, task.policy.as_deref(), Some(&task), &call).await?;
            }
        }
        Ok(promoted)
    }
}

impl Command for Promote {
    fn localize(&mut self, here: &Invocation) -> Result<(), Failure> {
        parse::default_to_own_task(&mut self.task_id, here)
    }

    fn show(reply: &Promoted, screen: &mut Screen) {
        let results = reply.each().iter().map(|one| TaskResult {
            id: one.task_id.clone(),
            ok: one.promoted,
            status: one.status,
            note: one.dry_run.then(|| "nothing was done".to_owned()).or_else(|| one.warning.clone()),
            error: one.error.clone(),
            hint: one.hint.clone(),
            code: one.code,
        });
        Bulk { results: results.collect() }.show("Promoted", screen);
    }

    fn verdict(reply: &Promoted) -> u8 {
        reply.each().iter().find_map(|one| one.code).map_or(0, Code::exit)
    }
}
