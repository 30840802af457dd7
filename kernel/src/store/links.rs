//! Queries of links between parents and children.

use rusqlite::{Connection, Row, params};

use super::convert::to_json;
use super::statement::Statement as _;
use super::tx::Tx;
use crate::model::error::Error;
use crate::model::id::TaskId;
use crate::model::status::Status;

/// Link to a parent that is not done.
pub(crate) struct OpenParent {
    pub(crate) child: TaskId,
    pub(crate) parent: TaskId,
    pub(crate) status: Status,
    pub(crate) title: String,
}

impl Tx<'_> {
    pub(crate) fn insert_link(&self, parent: &TaskId, child: &TaskId) -> Result<bool, Error> {
        self.conn.alter(
            "store the link",
            "INSERT OR IGNORE INTO task_links (parent_id, child_id) VALUES (?1, ?2)",
            params![parent, child],
        )
    }

    pub(crate) fn delete_link(&self, parent: &TaskId, child: &TaskId) -> Result<bool, Error> {
        self.conn.alter(
            "remove the link",
            "DELETE FROM task_links WHERE parent_id = ?1 AND child_id = ?2",
            params![parent, child],
        )
    }

    pub(crate) fn parents(&self, child: &TaskId) -> Result<Vec<TaskId>, Error> {
        list(self.conn, "SELECT parent_id FROM task_links WHERE child_id = ?1 ORDER BY parent_id", child)
    }

    pub(crate) fn children(&self, parent: &TaskId) -> Result<Vec<TaskId>, Error> {
        list(self.conn, "SELECT child_id FROM task_links WHERE parent_id = ?1 ORDER BY child_id", parent)
    }

    /// Returns true if a task has at least `count` parents; a count of 0 is taken as 1.
    pub(crate) fn has_parents(&self, child: &TaskId, count: usize) -> Result<bool, Error> {
        has(self.conn, "SELECT 1 FROM task_links WHERE child_id = ?1 LIMIT 1 OFFSET ?2", child, count)
    }

    /// Returns true if a task has at least `count` children; a count of 0 is taken as 1.
    pub(crate) fn has_children(&self, parent: &TaskId, count: usize) -> Result<bool, Error> {
        has(self.conn, "SELECT 1 FROM task_links WHERE parent_id = ?1 LIMIT 1 OFFSET ?2", parent, count)
    }

    /// Returns the parents that are not done, by id. A task that was archived after it was done counts as done.
    pub(crate) fn open_parents(&self, child: &TaskId) -> Result<Vec<TaskId>, Error> {
        list(
            self.conn,
            "SELECT l.parent_id FROM task_links l JOIN tasks p ON p.id = l.parent_id \
         WHERE l.child_id = ?1 AND p.completed_at IS NULL ORDER BY l.parent_id",
            child,
        )
    }

    /// Returns up to `limit` tasks: first the unfinished tasks that any run of this task has made, archived ones excluded;
    /// then the finished tasks that its open run has made. Each part is sorted oldest first.
    pub(crate) fn parts(&self, task: &TaskId, limit: usize) -> Result<Vec<TaskId>, Error> {
        self.conn.list(
            "list what the task's runs have made",
            "SELECT id FROM tasks WHERE creator_run IN (SELECT id FROM task_runs WHERE task_id = ?1) \
               AND CASE WHEN completed_at IS NULL THEN status <> 'archived' \
                   ELSE creator_run = (SELECT current_run_id FROM tasks WHERE id = ?1) END \
             ORDER BY completed_at IS NOT NULL, created_at, id LIMIT ?2",
            params![task, i64::try_from(limit).unwrap_or(i64::MAX)],
            |row| row.get(0),
        )
    }

    /// Returns the children that are neither done nor archived, by id.
    pub(crate) fn open_children(&self, parent: &TaskId) -> Result<Vec<TaskId>, Error> {
        list(
            self.conn,
            "SELECT l.child_id FROM task_links l JOIN tasks c ON c.id = l.child_id \
         WHERE l.parent_id = ?1 AND c.status NOT IN ('done', 'archived') ORDER BY l.child_id",
            parent,
        )
    }

    /// Calls `each` for every link of these children to a parent that is not done, sorted by child and parent. Runs one
    /// query.
    pub(crate) fn each_open_parent(
        &self,
        children: &[&TaskId],
        mut each: impl FnMut(OpenParent),
    ) -> Result<(), Error> {
        let read = |row: &Row<'_>| {
            let (child, parent, status, title) = (row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?);
            Ok(OpenParent { child, parent, status, title })
        };
        self.conn.scan(
            "read the links",
            "SELECT l.child_id, p.id, p.status, p.title FROM json_each(?1) j \
               JOIN task_links l ON l.child_id = j.value JOIN tasks p ON p.id = l.parent_id \
             WHERE p.completed_at IS NULL ORDER BY l.child_id, l.parent_id",
            [to_json(&children)?],
            read,
            |open| {
                each(open);
                Ok(())
            },
        )
    }

    /// Returns true if `ancestor` is `task` itself or one of its ancestors. A new link from `task` to `ancestor` would then
    /// close a cycle.
    pub(crate) fn is_above(&self, ancestor: &TaskId, task: &TaskId) -> Result<bool, Error> {
        self.conn
            .find(
                "look for a cycle",
                "WITH RECURSIVE above (id) AS (\
           SELECT ?2 UNION SELECT l.parent_id FROM task_links l JOIN above a ON l.child_id = a.id\
         ) SELECT 1 FROM above WHERE id = ?1 LIMIT 1",
                params![ancestor, task],
                |_| Ok(()),
            )
            .map(|found| found.is_some())
    }
}

fn has(conn: &Connection, sql: &str, id: &TaskId, count: usize) -> Result<bool, Error> {
    let before = i64::try_from(count).unwrap_or(i64::MAX).saturating_sub(1);
    conn.with("count the links", sql, |statement| statement.exists(params![id, before]))
}

fn list(conn: &Connection, sql: &str, id: &TaskId) -> Result<Vec<TaskId>, Error> {
    conn.list("read the links", sql, [id], |row| row.get(0))
}

/// Inserts `count` tasks of the tenant `acme` in triage as children of a task, in one batch. For tests of limits.
#[cfg(test)]
pub(crate) fn fill(board: &std::path::Path, parent: &TaskId, count: usize) {
    Connection::open(board)
        .unwrap()
        .execute_batch(&format!(
            "INSERT INTO tasks (id, title, status, tenant, created_at, updated_at) \
               WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {count}) \
               SELECT printf('t_%08x', i), 'more', 'triage', 'acme', 0, 0 FROM n; \
             INSERT INTO task_links (parent_id, child_id) SELECT '{parent}', id FROM tasks WHERE title = 'more';"
        ))
        .unwrap();
}
