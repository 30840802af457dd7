//! Reads the use of a model from the database in which Hermes 0.19 stores its conversations.

use std::path::Path;

use rusqlite::{Connection, OpenFlags, OptionalExtension as _, Row};

use super::open;
use super::open_error::{OpenError, sqlite};
use super::projection::{number, prepare, text};
use crate::model::projected_use::ProjectedUse;
use crate::model::spent::Spent;

/// Limit on the conversations that are counted, the latest first. A task has a few.
const CONVERSATIONS: i64 = 10_000;

pub(crate) fn read(path: &Path) -> Result<ProjectedUse, OpenError> {
    let fail = |error| sqlite("read", path, error);
    open::look(path)?;
    let conn = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_ONLY).map_err(fail)?;
    prepare(&conn).map_err(fail)?;
    sums(&conn).map_err(fail)
}

fn sums(conn: &Connection) -> rusqlite::Result<ProjectedUse> {
    // Both queries read the same state of the file, although the worker goes on writing.
    let tx = conn.unchecked_transaction()?;
    // With the status `unknown`, the estimated cost is 0 and does not count.
    let spent = tx.query_row(
        "SELECT sum(input_tokens + cache_read_tokens + cache_write_tokens), sum(cache_read_tokens), sum(output_tokens),
                cast(round(sum(coalesce(actual_cost_usd, iif(cost_status = 'unknown', NULL, estimated_cost_usd)))
                           * 1000000) AS INTEGER),
                sum(api_call_count)
           FROM (SELECT * FROM sessions ORDER BY started_at DESC LIMIT ?1)",
        [CONVERSATIONS],
        |row| {
            Ok(Spent {
                input_tokens: counted(row, 0)?.unwrap_or_default(),
                cached_tokens: counted(row, 1)?.unwrap_or_default(),
                output_tokens: counted(row, 2)?.unwrap_or_default(),
                cost_micros: counted(row, 3)?,
                turns: counted(row, 4)?,
                ..Spent::default()
            })
        },
    )?;
    // Helpers of the agent have conversations of their own. The last message of all is the agent's.
    let last =
        "SELECT session.id, session.model, role FROM messages JOIN sessions AS session ON session.id = session_id
                 ORDER BY messages.id DESC LIMIT 1";
    let last = tx.query_row(last, [], |row| Ok((text(row, 0)?, text(row, 1)?, text(row, 2)?))).optional()?;
    tx.finish()?;
    let (session, model, role) = last.unwrap_or_default();
    Ok(ProjectedUse {
        spent: Spent { session, model, ..spent },
        is_answered: role.as_deref() == Some("assistant"),
    })
}

fn counted(row: &Row<'_>, at: usize) -> rusqlite::Result<Option<u64>> {
    Ok(number(row, at)?.map(|count| count.max(0).unsigned_abs()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Columns of that program that are read, and more of them.
    const SCHEMA: &str = "
        CREATE TABLE sessions (
            id TEXT PRIMARY KEY, source TEXT NOT NULL, model TEXT, parent_session_id TEXT, started_at REAL NOT NULL,
            input_tokens INTEGER DEFAULT 0, output_tokens INTEGER DEFAULT 0, cache_read_tokens INTEGER DEFAULT 0,
            cache_write_tokens INTEGER DEFAULT 0, estimated_cost_usd REAL, actual_cost_usd REAL, cost_status TEXT,
            api_call_count INTEGER DEFAULT 0
        );
        CREATE TABLE messages (
            id INTEGER PRIMARY KEY AUTOINCREMENT, session_id TEXT NOT NULL, role TEXT NOT NULL, content TEXT
        );";

    fn database(rows: &str) -> (tempfile::TempDir, std::path::PathBuf) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("state.db");
        Connection::open(&path).unwrap().execute_batch(&format!("{SCHEMA}{rows}")).unwrap();
        (dir, path)
    }

    #[test]
    fn what_was_used_since_a_time_is_counted_over_all_conversations_and_the_last_speaker_names_it() {
        let (_dir, path) = database(
            "INSERT INTO sessions VALUES ('main', 'cli', 'large', NULL, 1, 100, 20, 30, 5, 0.25, NULL, 'estimated', 3);
             INSERT INTO sessions VALUES ('helper', 'cli', 'small', 'main', 2, 10, 2, 0, 0, 0.0, NULL, 'unknown', 1);
             INSERT INTO messages VALUES (NULL, 'main', 'user', 'x'), (NULL, 'helper', 'user', 'y'), (NULL, 'main', 'assistant', 'z');",
        );
        let used = read(&path).unwrap();
        let spent = &used.spent;
        assert_eq!((spent.session.as_deref(), spent.model.as_deref()), (Some("main"), Some("large")));
        assert_eq!((spent.input_tokens, spent.cached_tokens, spent.output_tokens), (145, 30, 22));
        assert_eq!((spent.cost_micros, spent.turns, used.is_answered), (Some(250_000), Some(4), true));
        let before =
            Spent { input_tokens: 100, cost_micros: Some(50_000), turns: Some(3), ..Spent::default() };
        let since = used.since(&ProjectedUse { spent: before, is_answered: false }).spent;
        assert_eq!((since.input_tokens, since.cost_micros, since.turns), (45, Some(200_000), Some(1)));
    }

    #[test]
    fn a_cost_that_is_not_known_is_none_and_what_is_no_database_of_conversations_is_refused() {
        let (_dir, path) = database(
            "INSERT INTO sessions VALUES ('a', 'cli', 'm', NULL, 1, 7, 1, 0, 0, 0.0, NULL, 'unknown', 1);",
        );
        let used = read(&path).unwrap().spent;
        assert_eq!((used.cost_micros, used.input_tokens, used.session), (None, 7, None));
        let (_dir, empty) = database("");
        assert_eq!(read(&empty).unwrap(), ProjectedUse::default());
        let (_dir, odd) = database("DROP TABLE messages;");
        assert!(read(&odd).is_err());
        assert!(read(&path.with_file_name("missing")).is_err());
    }
}
