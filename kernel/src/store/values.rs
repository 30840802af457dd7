//! Values that the schema allows and no board has: times, keys, ids and marks of other forms, and rows that no reader can
//! read. An import, a restored backup and a board that another program has changed can have them.
//!
//! See decision 0253.

use std::path::Path;

use rusqlite::{Connection, Row};

use super::open;
use super::open_error::{OpenError, unreadable};
use super::statement::Statement as _;
use super::time_limit;
use super::tx::Tx;
use super::unread::{TOLD, named};
use crate::model::cell::Cell;
use crate::model::clock::Timestamp;
use crate::model::error::Error;
use crate::model::id::TaskId;
use crate::model::run;

/// Largest key of a row. JSON carries numbers up to here exactly.
const LAST_KEY: i64 = (1 << 53) - 1;
/// Largest key that an import may bring. The rows that follow it get keys that still are keys of a board.
const LAST_IMPORTED: i64 = 1 << 52;

/// Returns the reason to refuse the text of a workspace, whose forms a board does not know.
pub type WorkspaceRule<'a> = &'a dyn Fn(&str) -> Option<String>;

/// Returns descriptions of the rows of the board at `path` that no board has; an empty list for a board of which each row
/// can be used. Only the first rows of each table are described.
///
/// # Errors
/// [`OpenError::OlderSchema`] for a board that a daemon has to migrate first, and errors of a file that cannot be read.
pub fn unfit_rows(path: &Path, workspace: WorkspaceRule<'_>) -> Result<Vec<String>, OpenError> {
    of(&open::reader(path)?, path, workspace)
}

/// Returns such rows of a copy of a backup whose schema was compared, and which is not compared with the marker beside it.
pub(crate) fn unfit_rows_of_copy(
    path: &Path,
    workspace: WorkspaceRule<'_>,
) -> Result<Vec<String>, OpenError> {
    let conn = open::foreign(path)?;
    time_limit::unlimit(&conn, path)?;
    of(&conn, path, workspace)
}

fn of(conn: &Connection, path: &Path, workspace: WorkspaceRule<'_>) -> Result<Vec<String>, OpenError> {
    Tx { conn }.unfit_rows(workspace).map_err(|error| unreadable(path, &error))
}

impl Tx<'_> {
    /// Returns descriptions of rows with values of other forms, and of rows that no reader can read.
    pub(super) fn unfit_rows(&self, workspace: WorkspaceRule<'_>) -> Result<Vec<String>, Error> {
        let mut found = Vec::new();
        for (table, columns) in self.tables()? {
            let watched: Vec<&str> =
                columns.iter().map(String::as_str).filter(|column| is_watched(&table, column)).collect();
            if !watched.is_empty() {
                found.extend(self.unfit_cells(&table, &columns, &watched)?);
            }
        }
        found.extend(self.unfit_workspaces(workspace)?);
        found.extend(self.unread_rows()?);
        Ok(found)
    }

    /// Returns descriptions of tasks whose workspace has no form of a workspace.
    pub(crate) fn unfit_workspaces(&self, workspace: WorkspaceRule<'_>) -> Result<Vec<String>, Error> {
        let wrong = self.workspaces()?.into_iter().filter_map(|(task, text)| Some((task, workspace(&text)?)));
        Ok(wrong.take(TOLD).map(|(task, why)| format!("tasks {task}: {why}")).collect())
    }

    /// Gives a scratch directory to tasks whose workspace has no form of a workspace. Returns their number.
    pub(crate) fn mend_workspaces(&self, workspace: WorkspaceRule<'_>) -> Result<usize, Error> {
        let sql = "UPDATE tasks SET workspace = 'scratch' WHERE workspace = ?1";
        let mut changed = 0;
        for (_, text) in self.workspaces()? {
            if workspace(&text).is_some() {
                changed += self.conn.count("mend the workspaces", sql, [text])?;
            }
        }
        Ok(changed)
    }

    /// Returns each text of a workspace, with its first task.
    fn workspaces(&self) -> Result<Vec<(String, String)>, Error> {
        let sql = "SELECT min(id), workspace FROM tasks GROUP BY workspace ORDER BY 1";
        self.conn.list("list the workspaces", sql, [], |row| Ok((row.get(0)?, row.get(1)?)))
    }

    /// Returns descriptions of rows that no reader can read.
    pub(crate) fn unread_rows(&self) -> Result<Vec<String>, Error> {
        let mut found = self.unread_tasks()?;
        found.extend(self.unread_comments()?);
        found.extend(self.unread_runs()?);
        found.extend(self.unread_holds()?);
        found.extend(self.unread_schedules()?);
        found.extend(self.unread_proposals()?);
        found.extend(self.unread_letters()?);
        found.extend(self.unread_messages()?);
        found.extend(self.unread_attachments()?);
        found.extend(self.unread_cursors()?);
        found.extend(self.unread_subscriptions()?);
        Ok(found)
    }

    fn unfit_cells(&self, table: &str, columns: &[String], watched: &[&str]) -> Result<Vec<String>, Error> {
        let key = columns.first().map_or("rowid", String::as_str);
        let list = watched.iter().map(|column| format!("\"{column}\"")).collect::<Vec<_>>().join(", ");
        let sql = format!("SELECT \"{key}\", {list} FROM \"{table}\"");
        let mut found = Vec::new();
        let told = |row: &Row<'_>| {
            for (at, column) in watched.iter().enumerate() {
                if let Some(why) = unfit(table, column, &Cell::from(row.get_ref(at + 1)?)) {
                    return Ok(Some(format!("{}: {column} {why}", named(table, row.get_ref(0)?))));
                }
            }
            Ok(None)
        };
        self.conn.scan("look for values of other forms", &sql, [], told, |fault| {
            found.extend(fault.filter(|_| found.len() < TOLD));
            Ok(())
        })?;
        Ok(found)
    }
}

/// Returns the reason to refuse a value of an import, as the end of a sentence.
pub(crate) fn unfit_to_import(table: &str, column: &str, cell: &Cell) -> Option<&'static str> {
    match cell {
        Cell::Integer(number) if is_key(column) && *number > LAST_IMPORTED => Some("is no key of a row"),
        Cell::Null | Cell::Integer(_) | Cell::Real(_) | Cell::Text(_) | Cell::Blob(_) => {
            unfit(table, column, cell)
        }
    }
}

/// Returns the reason to refuse a value of this program's own tables, as the end of a sentence.
fn unfit(table: &str, column: &str, cell: &Cell) -> Option<&'static str> {
    match cell {
        Cell::Integer(number) if is_time(table, column) => {
            (!is_in_time(*number)).then_some("is no time of the years 1970 to 9999")
        }
        Cell::Integer(number) if is_key(column) => {
            let least = i64::from(column == "id");
            (!(least..=LAST_KEY).contains(number)).then_some("is no key of a row")
        }
        Cell::Text(text) if is_task(table, column) => {
            TaskId::in_full(text.as_str()).is_err().then_some("is no id of a task")
        }
        Cell::Text(text) if is_nonce(table, column) => {
            (!run::is_nonce(text)).then_some("is no random mark of a run")
        }
        Cell::Text(_) | Cell::Real(_) | Cell::Blob(_) if column == "seq" => Some("is no key of a row"),
        Cell::Null | Cell::Integer(_) | Cell::Real(_) | Cell::Text(_) | Cell::Blob(_) => None,
    }
}

/// True for microseconds since the epoch in the years 1970 to 9999.
fn is_in_time(micros: i64) -> bool {
    (0..Timestamp::OPEN_END.as_micros() + 1_000_000).contains(&micros)
}

/// Returns a key that another program has given to a row.
pub(crate) fn key(number: i64) -> Option<i64> {
    Some(number).filter(|number| (1..=LAST_IMPORTED).contains(number))
}

fn is_watched(table: &str, column: &str) -> bool {
    is_time(table, column) || is_key(column) || is_task(table, column) || is_nonce(table, column)
}

fn is_nonce(table: &str, column: &str) -> bool {
    (table, column) == ("task_runs", "nonce")
}

fn is_time(table: &str, column: &str) -> bool {
    let words =
        ["not_before", "approval_until", "until", "ending_since", "failing_since", "claim_expires", "tick"];
    column.ends_with("_at")
        || words.contains(&column)
        || (table == "schedules" && matches!(column, "decided" | "next"))
}

fn is_key(column: &str) -> bool {
    column == "id"
        || column == "seq"
        || column.ends_with("_id")
        || matches!(column, "creator_run" | "unchecked_run" | "forked_run" | "probe_run")
}

fn is_task(table: &str, column: &str) -> bool {
    matches!((table, column), ("tasks" | "task_ids", "id"))
        || matches!(column, "task_id" | "parent_id" | "child_id" | "creator_task" | "met_by_task" | "subject")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_keys_and_ids_of_other_forms_are_refused() {
        for (table, column, cell) in [
            ("tasks", "created_at", Cell::Integer(-1)),
            ("tasks", "not_before", Cell::Integer(253_402_300_800_000_000)),
            ("holds", "until", Cell::Integer(i64::MAX)),
            ("schedules", "next", Cell::Integer(i64::MIN)),
            ("task_events", "id", Cell::Integer(0)),
            ("task_comments", "run_id", Cell::Integer(-3)),
            ("sqlite_sequence", "seq", Cell::Integer(i64::MAX)),
            ("task_ids", "id", Cell::Text("0123abcd".to_owned())),
            ("task_events", "task_id", Cell::Text("t_a/../b".to_owned())),
            ("task_runs", "nonce", Cell::Text("=".to_owned())),
            ("sqlite_sequence", "seq", Cell::Text("x".to_owned())),
        ] {
            assert!(unfit(table, column, &cell).is_some(), "{table}.{column}: {cell:?}");
        }
        for (table, column, cell) in [
            ("tasks", "created_at", Cell::Integer(0)),
            ("holds", "until", Cell::Integer(Timestamp::OPEN_END.as_micros())),
            ("notify_subs", "last_event_id", Cell::Integer(0)),
            ("task_ids", "id", Cell::Text("t_9f2a".to_owned())),
            ("tasks", "priority", Cell::Integer(i64::MIN)),
            ("tasks", "session_id", Cell::Text("any".to_owned())),
            ("tasks", "started_at", Cell::Null),
            ("task_runs", "nonce", Cell::Text(crate::testing::NONCE.to_owned())),
        ] {
            assert_eq!(unfit(table, column, &cell), None, "{table}.{column}");
        }
    }
}
