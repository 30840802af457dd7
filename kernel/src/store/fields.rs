//! Updates of single columns of a task.

use std::collections::BTreeSet;

use rusqlite::params;
use rusqlite::types::{ToSql as _, ToSqlOutput};

use super::convert::{Step as _, micros, to_json};
use super::statement::Statement as _;
use super::tx::Tx;
use crate::model::clock::Timestamp;
use crate::model::commits::CommitMode;
use crate::model::error::Error;
use crate::model::id::{Pool, Profile, TaskId};
use crate::model::outcome::{ApprovalState, BlockKind};
use crate::model::task_fields::{PlainField, Value};
use crate::model::workspace::Workspace;

const STEP: &str = "change the task";

/// Declares the columns that rules set one by one: each with its type, its column, and its stored form if that differs.
macro_rules! fields {
    ($a:lifetime: $($name:ident($type:ty) => $column:literal $(as $how:ident)?,)+) => {
        /// Single column of a task, with its new value.
        pub(crate) enum Field<$a> {
            $($name($type),)+
            /// Plain field, as its declaration says.
            Plain(PlainField<$a>),
        }

        impl Field<'_> {
            fn stored(&self) -> Result<(&'static str, ToSqlOutput<'_>), Error> {
                Ok(match self {
                    $(Field::$name(value) => ($column, stored!(value $(, $how)?)),)+
                    Field::Plain(PlainField { column, value, .. }) => (column, match value {
                        Value::Word(word) => (*word).into(),
                        Value::Number(number) => (*number).into(),
                        Value::Amount(amount) => (*amount).into(),
                        Value::Span(time) => micros(*time).into(),
                    }),
                })
            }
        }
    };
}

macro_rules! stored {
    ($value:ident) => {
        $value.to_sql().step(STEP)?
    };
    ($value:ident, json) => {
        to_json($value)?.into()
    };
}

fields! { 'a:
    Result(Option<&'a str>) => "result",
    Artifacts(&'a [String]) => "artifacts" as json,
    Assignee(Option<&'a Profile>) => "assignee",
    Priority(i64) => "priority",
    Title(&'a str) => "title",
    Body(Option<&'a str>) => "body",
    NotBefore(Option<Timestamp>) => "not_before",
    Failures(u32) => "consecutive_failures",
    LastError(Option<&'a str>) => "last_failure_error",
    Nonspawnable(Option<&'a str>) => "nonspawnable",
    Check(Option<&'a str>) => "check_command",
    MaxChecks(u32) => "max_checks",
    Commit(Option<CommitMode>) => "commit_mode",
    FailedChecks(u32) => "failed_checks",
    GoalTurns(u32) => "goal_turns",
    Reviewer(Option<&'a Profile>) => "reviewer",
    WorkBy(&'a str) => "work_by",
    Approval(ApprovalState) => "approval",
    Tenant(&'a str) => "tenant",
    Policy(&'a str) => "policy",
    Workspace(&'a Workspace) => "workspace",
    Skills(&'a [String]) => "skills" as json,
    Pools(&'a BTreeSet<Pool>) => "pools" as json,
    Notes(&'a str) => "notes",
    BranchNote(Option<&'a str>) => "branch_note",
}

impl Tx<'_> {
    /// Stores the directory of a run with its task, unless the task names a branch already. `updated_at` does not change.
    pub(crate) fn set_task_place(&self, id: &TaskId, path: &str, branch: Option<&str>) -> Result<(), Error> {
        let sql =
            "UPDATE tasks SET workspace_path = ?2, branch_name = coalesce(branch_name, ?3) WHERE id = ?1";
        self.conn.run(STEP, sql, params![id, path, branch])
    }

    /// Stores the user id of a task's workers. `updated_at` does not change.
    pub(crate) fn set_worker_uid(&self, id: &TaskId, uid: u32) -> Result<(), Error> {
        self.conn.run(STEP, "UPDATE tasks SET worker_uid = ?2 WHERE id = ?1", params![id, uid])
    }

    pub(crate) fn set_task_field(&self, id: &TaskId, field: &Field<'_>, now: Timestamp) -> Result<(), Error> {
        let (column, value) = field.stored()?;
        let sql = format!("UPDATE tasks SET {column} = ?2, updated_at = ?3 WHERE id = ?1");
        self.conn.run(STEP, &sql, params![id, value, now])
    }

    /// Clears the error of a task's last failure.
    pub(crate) fn forget_error(&self, id: &TaskId, now: Timestamp) -> Result<(), Error> {
        let sql = "UPDATE tasks SET last_failure_error = NULL, updated_at = ?2 \
                   WHERE id = ?1 AND last_failure_error IS NOT NULL";
        self.conn.run(STEP, sql, params![id, now])
    }

    /// Stores the number of consecutive blocks of a task, and their kind.
    pub(crate) fn set_recurrence(
        &self,
        id: &TaskId,
        kind: Option<BlockKind>,
        count: u32,
        now: Timestamp,
    ) -> Result<(), Error> {
        let sql =
            "UPDATE tasks SET last_block_kind = ?2, block_recurrences = ?3, updated_at = ?4 WHERE id = ?1";
        self.conn.run(STEP, sql, params![id, kind, count, now])
    }
}
