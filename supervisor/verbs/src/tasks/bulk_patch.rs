//! Applies the same change to many tasks through the API: one row for each, and a failure affects only its own task.

use std::collections::BTreeSet;

use kernel::{CommitMode, Status, TaskId, Tenant};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::bulk::Bulk;
use super::patch::{Patch, nobody};
use api::{Call, Verb, verb};
use base::failure::Failure;

/// Limit on the tasks of one change, as one transaction changes them all.
const MOST: usize = 500;

kernel::task_request! { bulk
/// Change many tasks in the same way
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct BulkPatch {
    /// The tasks, up to 500.
    pub ids: Vec<TaskId>,
    /// `done`, `blocked`, `ready`, `todo`, `triage` or `archived`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<Status>,
    /// The same as the status `archived`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub archive: Option<bool>,
    /// The profile; an empty text or null removes it.
    #[serde(deserialize_with = "nobody", skip_serializing_if = "Option::is_none")]
    pub assignee: Option<String>,
    /// Priority: tasks with a higher number start first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub priority: Option<i64>,
    /// Handling of the changes that a run in a worktree leaves uncommitted: `auto`, `require` or `no`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub commit: Option<CommitMode>,
    /// With `blocked`, `ready` or `todo`: why.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// With `done`: the result of the work.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub result: Option<String>,
    /// With `done`: the result of the work.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub summary: Option<String>,
    @all;
}
}

impl BulkPatch {
    /// Returns the change to apply to each task.
    fn patch(self) -> Result<Patch, Failure> {
        let patch = kernel::passed_fields! { bulk self => Patch };
        let status = match (self.status, self.archive) {
            (status, None | Some(false)) => status,
            (None | Some(Status::Archived), Some(true)) => Some(Status::Archived),
            (Some(status), Some(true)) => {
                return Err(Failure::usage(format!(
                    "`archive` and the status `{status}` exclude each other"
                ))
                .hint("send one of the two"));
            }
        };
        let BulkPatch { assignee, priority, commit, reason, result, summary, .. } = self;
        Ok(Patch { status, assignee, result, summary, reason, priority, commit, ..patch })
    }
}

impl Verb for BulkPatch {
    verb! { "bulk-patch": Operator, Write, members, rows => Bulk }

    fn confine(&mut self, tenant: &Tenant) -> Result<(), Failure> {
        self.clone().patch()?.confine(tenant)
    }

    async fn run(mut self, call: Call) -> Result<Bulk, Failure> {
        let ids = std::mem::take(&mut self.ids);
        if !(1..=MOST).contains(&ids.len()) {
            return Err(Failure::usage(format!("{} tasks are named", ids.len()))
                .hint(format!("name 1 to {MOST} tasks in `ids`")));
        }
        // A task that is named twice gets one row.
        let mut seen = BTreeSet::new();
        let ids: Vec<TaskId> = ids.into_iter().filter(|id| seen.insert(id.clone())).collect();
        let plan = self.patch()?.plan(&call).await?;
        plan.require_daemon(&call, &ids).await?;
        call.write(move |board, actor| {
            Ok(Bulk::rows(board, ids, |board, id| {
                // A task of another tenant gives the same error as an unknown task, in its own row.
                board.task_for(id, actor)?;
                plan.apply(board, id, actor).map(|task| (task.status, None))
            }))
        })
        .await
    }
}
