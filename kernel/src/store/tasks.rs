//! Queries of tasks.

use std::collections::BTreeMap;

use rusqlite::types::Type;
use rusqlite::{Row, ToSql, params};

use super::columns::{self, Group, columns};
use super::convert::{Columns, StoredTenant, to_json};
use super::statement::Statement as _;
use super::tx::Tx;
use super::unread::unread;
use crate::model::clock::Timestamp;
use crate::model::commits::Commits;
use crate::model::error::Error;
use crate::model::id::{RunId, TaskId, Tenant};
use crate::model::missing::Missing;
use crate::model::outcome::{ApprovalState, BlockKind};
use crate::model::state::State;
use crate::model::status::{Status, WasDone};
use crate::model::task::{Approval, Check, Client, Goal, Limits, Lineage, NewTask, Origin, Task};
use crate::model::verdict::{Blocking, Question, Verdict};
use crate::model::workspace::Workspace;

/// Declares the columns of a task: those with rules of their own, then the plain fields.
macro_rules! task_columns {
    ({} $($(#[$doc:meta])* $group:ident: $Group:ident { $(
        $(#[$attribute:meta])* $name:ident: $kind:ident ($column:ident $(as $form:ident)?) $change:ident $fork:ident
        request($($request:tt)*) form($($label:tt)*)
        $($who:ident($at:ident))*;
    )* })*) => {
        columns! {
            COLUMNS, read_columns -> Task from "t.";
            "t.": workspace, title, body, assignee, reviewer, work_by, status, priority, tenant as optional, workspace_path,
                branch_name, branch_note, created_by, created_at, started_at, completed_at, result, skills as list, pools as list, block_kind,
                block_reason, cancelled, question as json, consecutive_failures, last_failure_error, current_run_id, failed_checks,
                unchecked_run, goal_turns;
            "r.": claim_lock, claim_expires, worker_pid, last_heartbeat_at;
            "t.": not_before, idempotency_key, updated_at, policy, creator_uid, worker_uid, creator_task, notes,
                artifacts as list;
            check: Check { command = check_command, max_checks }
            commits: Commits { mode = commit_mode }
            approval: Approval { state = approval, class = approval_class, approver }
            goal: Goal { mode = goal_mode, max_turns = goal_max_turns }
            lineage: Lineage { mission, depth, consult }
            origin: Origin { schedule, tick, channel, forked_from, forked_run, forked_session }
            $($group: $Group { $($name = $column $(as $form)?),* })*;
            workspace_kind: String::new(), why: None, status_since: None, attempts: None, last_run_ended_at: None
        }
    };
}

crate::task_fields! { task_columns {} }

/// Tables of the columns.
pub(super) const FROM: &str = "FROM tasks t LEFT JOIN task_runs r ON r.id = t.current_run_id";

/// Reads a row that begins with the columns of a task.
pub(super) fn read(row: &Row<'_>) -> rusqlite::Result<Task> {
    let mut task = read_columns(row)?;
    task.workspace_kind = task.workspace.kind().to_owned();
    task.workspace_path = task.workspace_path.or_else(|| named_directory(task.workspace.as_str()));
    Ok(task)
}

/// Returns the directory that a workspace itself names, which is known before the first run.
fn named_directory(workspace: &str) -> Option<String> {
    workspace.strip_prefix("dir:").map(str::to_owned)
}

/// Fields of a task that the state machine and the rules need.
pub(crate) struct StateRow {
    pub(crate) state: State,
    pub(crate) tenant: Option<Tenant>,
    pub(crate) not_before: Option<Timestamp>,
    pub(crate) failures: u32,
    pub(crate) max_retries: Option<u32>,
    pub(crate) last_block_kind: Option<BlockKind>,
    pub(crate) block_recurrences: u32,
    pub(crate) check: Check,
    pub(crate) failed_checks: u32,
    pub(crate) goal: Goal,
    pub(crate) goal_turns: u32,
}

/// Columns that determine a state.
const STATE: &str =
    "t.status, t.not_before, t.completed_at, t.current_run_id, t.block_kind, t.unchecked_run, r.verdict";
/// Columns of a state row beside its state.
const STANDING: &str = "t.tenant, t.consecutive_failures, t.max_retries, t.last_block_kind, t.block_recurrences, \
    t.check_command, t.max_checks, t.failed_checks, t.goal_mode, t.goal_max_turns, t.goal_turns";

/// Fields of a new task that the board determines.
pub(crate) struct Birth<'a> {
    pub(crate) id: &'a TaskId,
    pub(crate) state: State,
    pub(crate) tenant: Option<&'a Tenant>,
    pub(crate) created_by: &'a str,
    pub(crate) creator_uid: Option<u32>,
    pub(crate) creator_task: Option<&'a TaskId>,
    pub(crate) creator_run: Option<RunId>,
    pub(crate) now: Timestamp,
}

/// State of a task as an import finds it, with the times and texts that belong to it.
pub(crate) struct ImportedState<'a> {
    pub(crate) state: State,
    pub(crate) why: Option<&'a str>,
    pub(crate) completed_at: Option<Timestamp>,
    pub(crate) work_by: Option<&'a str>,
}

impl Tx<'_> {
    pub(crate) fn find_task(&self, id: &TaskId) -> Result<Option<Task>, Error> {
        self.conn.find("read the task", &format!("SELECT {COLUMNS} {FROM} WHERE t.id = ?1"), [id], read)
    }

    pub(crate) fn find_task_by_key(&self, tenant: Option<&Tenant>, key: &str) -> Result<Option<Task>, Error> {
        self.conn.find(
            "look up the idempotency key",
            &format!("SELECT {COLUMNS} {FROM} WHERE t.tenant = ?1 AND t.idempotency_key = ?2"),
            params![StoredTenant(tenant), key],
            read,
        )
    }

    /// Returns the state row of a task.
    pub(crate) fn state_row(&self, id: &TaskId) -> Result<Option<StateRow>, Error> {
        self.conn.find(
            "read where the task stands",
            &format!("SELECT {STATE}, {STANDING} {FROM} WHERE t.id = ?1"),
            [id],
            |row| read_state_row(&Columns::new(row)),
        )
    }

    /// Returns a task and its state row.
    pub(crate) fn find_task_with_state(&self, id: &TaskId) -> Result<Option<(Task, StateRow)>, Error> {
        self.conn.find(
            "read the task",
            &format!("SELECT {COLUMNS}, {STATE}, {STANDING} {FROM} WHERE t.id = ?1"),
            [id],
            |row| Ok((read(row)?, read_state_row(&Columns::after(row, COLUMNS))?)),
        )
    }

    pub(super) fn unread_tasks(&self) -> Result<Vec<String>, Error> {
        unread(self.conn, "tasks", &format!("SELECT {COLUMNS} {FROM}"), read)
    }

    /// Calls `each` for the state of every task.
    pub(crate) fn each_task_state(
        &self,
        mut each: impl FnMut(TaskId, State) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let sql = format!("SELECT t.id, {STATE} {FROM}");
        let read = |row: &Row<'_>| {
            let columns = Columns::new(row);
            Ok((columns.get("id")?, StateColumns::read(&columns)?.state()?))
        };
        self.conn.scan("read all states", &sql, [], read, |(task, state)| each(task, state))
    }

    pub(crate) fn reserve_task_id(&self, id: &TaskId) -> Result<bool, Error> {
        self.conn.alter("reserve the id", "INSERT OR IGNORE INTO task_ids (id) VALUES (?1)", [id])
    }

    pub(crate) fn is_task_id_reserved(&self, id: &TaskId) -> Result<bool, Error> {
        self.conn
            .find("look for the id", "SELECT 1 FROM task_ids WHERE id = ?1", [id], |_| Ok(()))
            .map(|found| found.is_some())
    }

    pub(crate) fn insert_task(&self, task: &NewTask, birth: &Birth<'_>) -> Result<(), Error> {
        let (kind, until) = columns_of(birth.state);
        let (skills, artifacts) = (to_json(&task.skills)?, to_json(&task.artifacts)?);
        let pools = to_json(&task.pools)?;
        let plain: &[(&str, &dyn ToSql)] = &[
            ("id", birth.id),
            ("title", &task.title),
            ("body", &task.body),
            ("assignee", &task.assignee),
            ("status", &birth.state.status()),
            ("priority", &task.priority),
            ("tenant", &StoredTenant(birth.tenant)),
            ("workspace", &task.workspace),
            ("branch_name", &task.branch),
            ("created_by", &birth.created_by),
            ("creator_uid", &birth.creator_uid),
            ("creator_task", &birth.creator_task),
            ("creator_run", &birth.creator_run),
            ("created_at", &birth.now),
            ("updated_at", &birth.now),
            ("skills", &skills),
            ("pools", &pools),
            ("idempotency_key", &task.idempotency_key),
            ("notes", &task.notes),
            ("artifacts", &artifacts),
            ("policy", &task.policy),
            // A scheduled state has its time; in other states the requested time is kept for later.
            ("not_before", &until.or(task.not_before)),
            ("block_kind", &kind),
            ("block_reason", &kind.map(|_| "held at creation")),
        ];
        let NewTask { limits, check, commits, approval, goal, lineage, client, origin, .. } = task;
        let groups: [&dyn Group; 8] = [limits, check, commits, approval, goal, lineage, client, origin];
        let groups = groups.map(|group| group.cells());
        let grouped = groups.iter().flatten().map(|(column, value)| (*column, value as &dyn ToSql));
        let row: Vec<_> = plain.iter().copied().chain(grouped).collect();
        columns::insert(self.conn, "tasks", &row, "store the task").map(drop)
    }

    /// Sets the state of an imported task.
    pub(crate) fn place_task(&self, id: &TaskId, place: &ImportedState<'_>) -> Result<(), Error> {
        let (kind, _) = columns_of(place.state);
        self.conn.run("place the task", "UPDATE tasks SET status = ?2, block_kind = ?3, block_reason = ?4, completed_at = ?5, work_by = ?6 \
                 WHERE id = ?1", params![id, place.state.status(), kind, place.why, place.completed_at, place.work_by])
    }

    /// Moves a task to a new state. The condition on its status and run is a fence: returns false if the task has
    /// changed.
    pub(crate) fn set_task_state(
        &self,
        id: &TaskId,
        from: State,
        to: State,
        blocking: Option<&Blocking>,
        now: Timestamp,
    ) -> Result<bool, Error> {
        let (kind, until) = columns_of(to);
        let run = |state: State| if let State::Running { run, .. } = state { Some(run) } else { None };
        let blocking = blocking.filter(|_| kind.is_some());
        let question = blocking.and_then(|blocking| blocking.question.as_ref()).map(to_json).transpose()?;
        self.conn.alter("move the task", "UPDATE tasks SET status = ?3, current_run_id = ?4, block_kind = ?5, block_reason = ?6, question = ?7, cancelled = ?13, \
           not_before = coalesce(?8, not_before), updated_at = ?9, \
           completed_at = CASE WHEN ?10 THEN coalesce(completed_at, ?9) END, \
           started_at = CASE WHEN ?3 = 'running' AND status <> 'running' THEN ?9 ELSE started_at END, \
           nonspawnable = CASE WHEN ?3 = 'ready' THEN nonspawnable END, \
           work_by = CASE WHEN ?3 IN ('review', 'running', 'blocked') THEN work_by END, \
           unchecked_run = CASE WHEN ?3 = 'review' THEN ?12 WHEN ?3 IN ('running', 'blocked') THEN unchecked_run END \
         WHERE id = ?1 AND status = ?2 AND current_run_id IS ?11", params![
            id,
            from.status(),
            to.status(),
            run(to),
            kind,
            blocking.and_then(|blocking| blocking.reason.as_deref()),
            question,
            until,
            now,
            to.is_finished(),
            run(from),
            if let State::Checking { of } = to { Some(of) } else { None },
            blocking.is_some_and(|blocking| blocking.is_cancel),
        ])
    }

    /// Removes the handed-over work of a task that is to be done again.
    pub(crate) fn forget_unchecked_work(&self, id: &TaskId) -> Result<(), Error> {
        let sql = "UPDATE tasks SET unchecked_run = NULL, work_by = NULL WHERE id = ?1";
        self.conn.run("forget the unchecked work", sql, [id])
    }

    /// Replaces the block reason and the question of a blocked task.
    pub(crate) fn set_request(&self, id: &TaskId, reason: &str, question: &Question) -> Result<(), Error> {
        let sql = "UPDATE tasks SET block_reason = ?2, question = ?3 WHERE id = ?1";
        self.conn.run("store the request", sql, params![id, reason, to_json(question)?])
    }

    /// Returns the state of a task's approval; none for a task that needs no approval.
    pub(crate) fn approval_of(&self, id: &TaskId) -> Result<Option<ApprovalState>, Error> {
        self.conn.value("read the task", "SELECT approval FROM tasks WHERE id = ?1", [id])
    }

    pub(crate) fn nonspawnable(&self, id: &TaskId) -> Result<Option<String>, Error> {
        self.conn.value("read the task", "SELECT nonspawnable FROM tasks WHERE id = ?1", [id])
    }

    /// Returns the first tasks, at most `limit`, whose ids begin with this id, which is included; of one tenant only, if one
    /// is named.
    pub(crate) fn ids_from(
        &self,
        beginning: &TaskId,
        tenant: Option<&Tenant>,
        limit: u32,
    ) -> Result<Vec<TaskId>, Error> {
        // `~` sorts after every character of an id.
        let end = format!("{beginning}~");
        let sql = match tenant {
            None => "SELECT id FROM tasks WHERE id >= ?1 AND id < ?2 AND ?3 IS NULL ORDER BY id LIMIT ?4",
            Some(_) => {
                "SELECT id FROM tasks WHERE id >= ?1 AND id < ?2 AND +tenant = ?3 ORDER BY id LIMIT ?4"
            }
        };
        let tenant = tenant.map(Tenant::as_str);
        self.conn.list("read the ids", sql, params![beginning, end, tenant, limit], |row| row.get(0))
    }

    /// Returns the tasks among these that nothing can spawn, with the reasons.
    pub(crate) fn nonspawnable_of(&self, ids: &[&TaskId]) -> Result<BTreeMap<TaskId, String>, Error> {
        self.conn.list(
            "read the tasks",
            "SELECT t.id, t.nonspawnable FROM json_each(?1) j JOIN tasks t ON t.id = j.value \
             WHERE t.nonspawnable IS NOT NULL",
            [to_json(&ids)?],
            |row| Ok((row.get(0)?, row.get(1)?)),
        )
    }

    /// Returns the workspaces other than scratch that unarchived tasks name, each once. The query steps through the index
    /// from value to value.
    pub(crate) fn workspaces_in_use(&self) -> Result<Vec<Workspace>, Error> {
        self.conn.list(
            "list the workspaces in use",
            "WITH RECURSIVE place (name) AS ( \
           SELECT min(workspace) FROM tasks WHERE workspace <> 'scratch' AND status <> 'archived' \
           UNION ALL \
           SELECT (SELECT min(workspace) FROM tasks \
                   WHERE workspace <> 'scratch' AND status <> 'archived' AND workspace > place.name) \
           FROM place WHERE place.name IS NOT NULL) \
         SELECT name FROM place WHERE name IS NOT NULL",
            [],
            |row| row.get(0),
        )
    }

    pub(crate) fn archived_worktrees(&self, after: &str, limit: u32) -> Result<Vec<Task>, Error> {
        self.conn.list("list the worktrees of archived tasks", &format!(
        "SELECT {COLUMNS} {} WHERE t.status = 'archived' AND t.workspace GLOB 'worktree:*' AND t.id > ?1 ORDER BY t.id LIMIT ?2",
        FROM.replacen("tasks t", "tasks t INDEXED BY tasks_archived_worktrees", 1)
    ), params![after, limit], read)
    }

    /// Returns the user id of a task's workers, if it has one.
    ///
    /// # Errors
    /// For a task that does not exist, and for a failure of the store.
    pub(crate) fn worker_uid_of(&self, id: &TaskId) -> Result<Option<u32>, Error> {
        let sql = "SELECT worker_uid FROM tasks WHERE id = ?1";
        self.conn
            .find("read the user of the task", sql, [id], |row| row.get(0))?
            .ok_or_else(|| Error::missing(Missing::Task, id))
    }

    pub(crate) fn is_uid_taken(&self, uid: u32) -> Result<bool, Error> {
        self.conn
            .find("look for the uid", "SELECT 1 FROM tasks WHERE worker_uid = ?1", [uid], |_| Ok(()))
            .map(|found| found.is_some())
    }

    pub(crate) fn delete_task(&self, id: &TaskId) -> Result<bool, Error> {
        self.conn.run("delete its holds", "DELETE FROM holds WHERE scope = 'task' AND name = ?1", [id])?;
        self.conn.alter("delete the task", "DELETE FROM tasks WHERE id = ?1", [id])
    }
}

fn read_state_row(row: &Columns<'_, '_>) -> rusqlite::Result<StateRow> {
    let columns = StateColumns::read(row)?;
    let not_before = columns.not_before;
    Ok(StateRow {
        state: columns.state()?,
        not_before,
        tenant: row.optional("tenant")?,
        failures: row.get("consecutive_failures")?,
        max_retries: row.get("max_retries")?,
        last_block_kind: row.get("last_block_kind")?,
        block_recurrences: row.get("block_recurrences")?,
        check: Check { command: row.get("check_command")?, max_checks: row.get("max_checks")? },
        failed_checks: row.get("failed_checks")?,
        goal: Goal { mode: row.get("goal_mode")?, max_turns: row.get("goal_max_turns")? },
        goal_turns: row.get("goal_turns")?,
    })
}

/// Columns in which the state of a task is stored.
struct StateColumns {
    status: Status,
    not_before: Option<Timestamp>,
    completed_at: Option<Timestamp>,
    current_run: Option<RunId>,
    block_kind: Option<BlockKind>,
    unchecked_run: Option<RunId>,
    verdict: Option<Verdict>,
}

impl StateColumns {
    fn read(row: &Columns<'_, '_>) -> rusqlite::Result<Self> {
        Ok(StateColumns {
            status: row.get("status")?,
            not_before: row.get("not_before")?,
            completed_at: row.get("completed_at")?,
            current_run: row.get("current_run_id")?,
            block_kind: row.get("block_kind")?,
            unchecked_run: row.get("unchecked_run")?,
            verdict: row.json("verdict")?,
        })
    }

    fn state(self) -> rusqlite::Result<State> {
        Ok(match self.status {
            Status::Triage => State::Triage,
            Status::Todo => State::Todo,
            Status::Scheduled => State::Scheduled { until: known(self.not_before, "not_before")? },
            Status::Ready => State::Ready,
            Status::Running => State::Running {
                run: known(self.current_run, "current_run_id")?,
                verdict: self.verdict.map(|verdict| verdict.kind()),
            },
            Status::Review => self.unchecked_run.map_or(State::Review, |of| State::Checking { of }),
            Status::Blocked => State::Blocked { kind: known(self.block_kind, "block_kind")? },
            Status::Done => State::Done,
            Status::Archived => State::Archived {
                finished: if self.completed_at.is_some() { WasDone::Yes } else { WasDone::No },
            },
        })
    }
}

/// Returns a value that the task's status requires, or an error if the column has none.
fn known<T>(value: Option<T>, column: &str) -> rusqlite::Result<T> {
    value.ok_or_else(|| rusqlite::Error::InvalidColumnType(0, column.to_owned(), Type::Null))
}

fn columns_of(state: State) -> (Option<BlockKind>, Option<Timestamp>) {
    let kind = if let State::Blocked { kind } = state { Some(kind) } else { None };
    let until = if let State::Scheduled { until } = state { Some(until) } else { None };
    (kind, until)
}
