//! The links between parents and children.

use rusqlite::{Connection, OptionalExtension as _, params};

use super::convert::Step as _;
use crate::error::Error;
use crate::id::TaskId;

pub(crate) fn insert(conn: &Connection, parent: &TaskId, child: &TaskId) -> Result<bool, Error> {
    conn.prepare_cached("INSERT OR IGNORE INTO task_links (parent_id, child_id) VALUES (?1, ?2)")
        .and_then(|mut statement| statement.execute(params![parent, child]))
        .step("store the link")
        .map(|rows| rows == 1)
}

pub(crate) fn delete(conn: &Connection, parent: &TaskId, child: &TaskId) -> Result<bool, Error> {
    conn.prepare_cached("DELETE FROM task_links WHERE parent_id = ?1 AND child_id = ?2")
        .and_then(|mut statement| statement.execute(params![parent, child]))
        .step("remove the link")
        .map(|rows| rows == 1)
}

pub(crate) fn parents(conn: &Connection, child: &TaskId) -> Result<Vec<TaskId>, Error> {
    list(conn, "SELECT parent_id FROM task_links WHERE child_id = ?1 ORDER BY parent_id", child)
}

pub(crate) fn children(conn: &Connection, parent: &TaskId) -> Result<Vec<TaskId>, Error> {
    list(conn, "SELECT child_id FROM task_links WHERE parent_id = ?1 ORDER BY child_id", parent)
}

/// Lists the parents that are not done; an archived one that was done is done.
pub(crate) fn open_parents(conn: &Connection, child: &TaskId) -> Result<Vec<TaskId>, Error> {
    list(
        conn,
        "SELECT l.parent_id FROM task_links l JOIN tasks p ON p.id = l.parent_id \
         WHERE l.child_id = ?1 AND p.completed_at IS NULL ORDER BY l.parent_id",
        child,
    )
}

/// Lists the children that are neither done nor archived.
pub(crate) fn open_children(conn: &Connection, parent: &TaskId) -> Result<Vec<TaskId>, Error> {
    list(
        conn,
        "SELECT l.child_id FROM task_links l JOIN tasks c ON c.id = l.child_id \
         WHERE l.parent_id = ?1 AND c.status NOT IN ('done', 'archived') ORDER BY l.child_id",
        parent,
    )
}

fn list(conn: &Connection, sql: &str, id: &TaskId) -> Result<Vec<TaskId>, Error> {
    conn.prepare_cached(sql)
        .and_then(|mut statement| statement.query_map([id], |row| row.get(0))?.collect())
        .step("read the links")
}

/// Returns whether `ancestor` is `task` or stands above it.
pub(crate) fn is_above(conn: &Connection, ancestor: &TaskId, task: &TaskId) -> Result<bool, Error> {
    conn.prepare_cached(
        "WITH RECURSIVE above (id) AS (\
           SELECT ?2 UNION SELECT l.parent_id FROM task_links l JOIN above a ON l.child_id = a.id\
         ) SELECT 1 FROM above WHERE id = ?1 LIMIT 1",
    )
    .and_then(|mut statement| statement.query_row(params![ancestor, task], |_| Ok(())).optional())
    .step("look for a cycle")
    .map(|found| found.is_some())
}
