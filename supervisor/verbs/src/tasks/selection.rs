//! Selection of tasks by common properties instead of ids.

use clap::builder::NonEmptyStringValueParser;
use kernel::{Profile, Status, Task, TaskId, Tenant};

use super::list::List;
use crate::views::parse;
use api::command::Command;
use base::time::since::Since;

/// Filter of tasks, without their tenant.
#[derive(Clone, Debug, Default, clap::Args)]
#[command(next_help_heading = "Select tasks instead of naming ids")]
pub(crate) struct TaskFilter {
    /// All tasks in these statuses, separated by commas
    #[arg(
        long,
        value_name = "STATUS",
        value_delimiter = ',',
        value_parser = parse::TypedStatus
    )]
    status: Vec<Status>,
    /// All tasks of this assignee
    #[arg(long, value_name = "NAME")]
    assignee: Option<Profile>,
    /// All tasks with this text in the title or the body
    #[arg(long, value_name = "TEXT", value_parser = NonEmptyStringValueParser::new())]
    search: Option<String>,
    /// All tasks that have changed since: 10m, 2h, 'yesterday', '2026-11-23 09:00'
    #[arg(long, value_name = "WHEN")]
    since: Option<Since>,
    /// All tasks whose last attempt failed
    #[arg(long)]
    failed: bool,
}

/// Filter of the tasks, and the use of the answer.
#[derive(Clone, Debug, Default, clap::Args)]
#[command(next_help_heading = "Select tasks instead of naming ids")]
pub struct Matching {
    #[command(flatten)]
    common: TaskFilter,
    /// All tasks of this tenant
    #[arg(long, value_name = "NAME")]
    tenant: Option<Tenant>,
    /// Only tasks that are held themselves
    #[arg(skip)]
    pub held: bool,
    /// List the selected tasks, and change nothing
    #[arg(long)]
    pub dry_run: bool,
    /// Do not ask for confirmation
    #[arg(long, short)]
    pub yes: bool,
}

/// The flags that select tasks by common properties.
pub(crate) const FLAGS: [&str; 6] = ["status", "assignee", "tenant", "search", "since", "failed"];
/// These flags without `--tenant`, which some verbs use for more than a filter.
pub(crate) const COMMON_FLAGS: [&str; 5] = ["status", "assignee", "search", "since", "failed"];

impl TaskFilter {
    /// Returns true if any filter is set.
    fn is_given(&self) -> bool {
        let TaskFilter { status, assignee, search, since, failed } = self;
        !status.is_empty() || assignee.is_some() || search.is_some() || since.is_some() || *failed
    }

    /// Adds the tenant and the handling of the result. A tenant alone is no filter.
    pub(crate) fn for_tenant(&self, tenant: Option<&Tenant>, dry_run: bool, yes: bool) -> Matching {
        Matching::new(self.clone(), tenant.filter(|_| self.is_given()).cloned(), dry_run, yes)
    }
}

impl Matching {
    /// Filter of tasks, and the use of the answer.
    pub(crate) fn new(common: TaskFilter, tenant: Option<Tenant>, dry_run: bool, yes: bool) -> Self {
        Matching { common, tenant, held: false, dry_run, yes }
    }

    /// Returns the filter as a request of `list`; none if nothing is set. Without a status it selects the tasks in
    /// `of`; an empty `of` selects all tasks that are not archived.
    pub fn list(&self, of: &[Status]) -> Option<List> {
        let is_said = self.common.is_given() || self.tenant.is_some();
        let Matching { common, tenant, .. } = self.clone();
        let TaskFilter { status, assignee, search, since, .. } = common;
        let status = if status.is_empty() { of.to_vec() } else { status };
        is_said.then(|| List { assignee, status, search, since, tenant, ..List::default() })
    }

    /// Returns true if the filter names statuses.
    pub fn names_status(&self) -> bool {
        !self.common.status.is_empty()
    }

    /// Returns true if a task of the list passes.
    pub fn takes(&self, task: &Task) -> bool {
        !self.common.failed || task.consecutive_failures > 0
    }
}

/// Results of tasks, one row each.
pub trait Rows {
    /// Returns an empty reply.
    fn none() -> Self;

    /// Adds the rows of another reply.
    fn add(&mut self, more: Self);
}

impl<T> Rows for Vec<T> {
    fn none() -> Self {
        Vec::new()
    }

    fn add(&mut self, more: Self) {
        self.extend(more);
    }
}

/// A verb whose tasks can be selected by common properties.
pub trait OnTasks: Command<Reply: Rows> + Clone {
    /// Default statuses of a filter: those in which the verb has a useful effect.
    fn default_statuses(&self) -> &'static [Status];

    /// Filter of the tasks.
    fn matching(&self) -> Matching;

    /// Returns the request with these tasks.
    #[must_use]
    fn about(&self, tasks: Vec<TaskId>) -> Self;
}

/// Implements [`OnTasks`] for a verb with the fields `task_ids` and `matching`. The statuses are the default of its
/// filter.
macro_rules! on_tasks {
    ($verb:ident $(, $status:ident)*) => {
        impl crate::tasks::selection::OnTasks for $verb {
            fn default_statuses(&self) -> &'static [kernel::Status] {
                &[$(kernel::Status::$status),*]
            }

            fn matching(&self) -> crate::tasks::selection::Matching {
                self.matching.clone()
            }

            fn about(&self, task_ids: Vec<kernel::TaskId>) -> Self {
                $verb { task_ids, ..self.clone() }
            }
        }
    };
}

pub(crate) use on_tasks;
