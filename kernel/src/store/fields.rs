//! Single columns of a task that a rule sets.

use std::time::Duration;

use rusqlite::params;
use rusqlite::types::Value as Sql;

use super::convert::{micros, to_json};
use super::statement::Statement as _;
use super::tx::Tx;
use crate::model::clock::Timestamp;
use crate::model::error::Error;
use crate::model::id::{Profile, TaskId, Tenant};
use crate::model::outcome::{ApprovalState, BlockKind};

/// A single column of a task that a rule sets by itself.
pub(crate) enum Field<'a> {
    Result(Option<&'a str>),
    Artifacts(&'a [String]),
    Assignee(Option<&'a Profile>),
    Priority(i64),
    Title(&'a str),
    Body(Option<&'a str>),
    NotBefore(Option<Timestamp>),
    Failures(u32),
    LastError(Option<&'a str>),
    Recurrence(Option<BlockKind>, u32),
    WorkspacePath(&'a str),
    Branch(&'a str),
    WorkerUid(u32),
    Nonspawnable(Option<&'a str>),
    MaxRetries(Option<u32>),
    Reviewer(Option<&'a Profile>),
    WorkBy(&'a str),
    Approval(ApprovalState),
    Tenant(&'a Tenant),
    MaxRuntime(Duration),
    Policy(&'a str),
    Workspace(&'a str),
    Skills(&'a [String]),
}

impl Tx<'_> {
    /// Sets one of them.
    pub(crate) fn set_task_field(&self, id: &TaskId, field: &Field<'_>, now: Timestamp) -> Result<(), Error> {
        let (column, value, extra): (&str, Sql, Option<u32>) = match field {
            Field::Result(text) => ("result", text.map(str::to_owned).into(), None),
            Field::Artifacts(list) => ("artifacts", to_json(list)?.into(), None),
            Field::Assignee(profile) => {
                ("assignee", profile.map(|profile| profile.as_str().to_owned()).into(), None)
            }
            Field::Priority(priority) => ("priority", (*priority).into(), None),
            Field::Title(text) => ("title", (*text).to_owned().into(), None),
            Field::Body(text) => ("body", text.map(str::to_owned).into(), None),
            Field::NotBefore(time) => ("not_before", time.map(Timestamp::as_micros).into(), None),
            Field::Failures(count) => ("consecutive_failures", i64::from(*count).into(), None),
            Field::LastError(text) => ("last_failure_error", text.map(str::to_owned).into(), None),
            Field::Recurrence(kind, count) => {
                ("last_block_kind", kind.map(|kind| kind.as_str().to_owned()).into(), Some(*count))
            }
            Field::WorkspacePath(path) => ("workspace_path", (*path).to_owned().into(), None),
            Field::Branch(branch) => ("branch_name", (*branch).to_owned().into(), None),
            Field::WorkerUid(uid) => ("worker_uid", i64::from(*uid).into(), None),
            Field::Nonspawnable(why) => ("nonspawnable", why.map(str::to_owned).into(), None),
            Field::Reviewer(profile) => {
                ("reviewer", profile.map(|profile| profile.as_str().to_owned()).into(), None)
            }
            Field::Approval(approval) => ("approval", approval.as_str().to_owned().into(), None),
            Field::WorkBy(label) => ("work_by", (*label).to_owned().into(), None),
            Field::Tenant(tenant) => ("tenant", tenant.as_str().to_owned().into(), None),
            Field::MaxRuntime(limit) => ("max_runtime_us", micros(*limit).into(), None),
            Field::Policy(name) => ("policy", (*name).to_owned().into(), None),
            Field::Workspace(text) => ("workspace", (*text).to_owned().into(), None),
            Field::Skills(list) => ("skills", to_json(list)?.into(), None),
            Field::MaxRetries(limit) => ("max_retries", limit.map(i64::from).into(), None),
        };
        let sql = format!(
            "UPDATE tasks SET {column} = ?2, updated_at = ?3, \
         block_recurrences = coalesce(?4, block_recurrences) WHERE id = ?1"
        );
        self.conn.run("change the task", &sql, params![id, value, now, extra])
    }
}
