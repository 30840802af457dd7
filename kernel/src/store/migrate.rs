//! Schema of a board, and its migrations, numbered by `user_version` from release 0.1.0 on.
//!
//! `schema.sql` is version 1. A released schema or migration is never changed.
//!
//! See decision 0270.

use std::path::Path;

use rusqlite::Connection;
use rusqlite_migration::{M, Migrations};

use super::open_error::OpenError;

/// Application id in the header of a board's file: `supb` in ASCII.
pub(crate) const APPLICATION_ID: i32 = 0x7375_7062;

/// Application id of boards from before release 0.1.0: `supv` in ASCII. Their versions, 1 to 41, mean other schemas than
/// the versions of this program.
pub(crate) const BEFORE_RELEASES: i32 = 0x7375_7076;

const STEPS: &[M<'static>] = &[M::up(include_str!("schema.sql"))];

/// Returns all migrations.
pub(crate) fn migrations() -> Migrations<'static> {
    Migrations::from_slice(STEPS)
}

/// Migrates the board at `path` to the latest schema.
pub(super) fn to_latest(conn: &mut Connection, step: &'static str, path: &Path) -> Result<(), OpenError> {
    let fail = |source| OpenError::Sqlite { step, path: path.to_owned(), source: Box::new(source) };
    migrations().to_latest(conn).map_err(fail)
}

/// Makes the schema of a version in an empty database. `path` is the board that errors name.
pub(super) fn to_version(conn: &mut Connection, version: i64, path: &Path) -> Result<(), OpenError> {
    let step = "compare the schema of";
    let fail = |source| OpenError::Sqlite { step, path: path.to_owned(), source: Box::new(source) };
    migrations().to_version(conn, usize::try_from(version).unwrap_or_default()).map_err(fail)
}

/// Returns the version of the newest schema that this program knows.
pub(crate) fn latest() -> i64 {
    i64::try_from(STEPS.len()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use rusqlite::Connection;

    fn empty() -> Connection {
        let mut conn = Connection::open_in_memory().unwrap();
        super::migrations().to_latest(&mut conn).unwrap();
        conn
    }

    #[test]
    fn the_migrations_apply_to_an_empty_database() {
        super::migrations().validate().unwrap();
    }

    #[test]
    fn a_board_takes_ids_of_other_programs_and_no_others() {
        let conn = empty();
        let insert =
            "INSERT INTO tasks (id, title, status, created_at, updated_at) VALUES (?1, 'x', 'triage', 0, 0)";
        for id in ["t_0123abcd", "t_9f2a", "t_Spec-1_b"] {
            conn.execute(insert, [id]).unwrap();
        }
        for wrong in ["t_", "t_a/b", "t_-a", "x_0123abcd", "t_a\nb", &format!("t_{}", "a".repeat(63))] {
            conn.execute(insert, [wrong]).unwrap_err();
        }
    }

    #[test]
    fn the_line_of_a_task_is_its_directory_and_its_pools() {
        let conn = empty();
        let insert = "INSERT INTO tasks (id, title, status, assignee, workspace, pools, created_at, updated_at) \
             VALUES (?1, 'x', 'ready', 'a', ?2, ?3, 0, 0)";
        let tasks = [("t_1", "dir:/w", "[]"), ("t_2", "dir:/w", "[]"), ("t_3", "dir:/w", "[\"gpu\"]")];
        for task in tasks {
            conn.execute(insert, task).unwrap();
        }
        let mut heads = conn.prepare("SELECT line, task FROM line_heads ORDER BY line").unwrap();
        let heads = heads.query_map([], |row| Ok((row.get(0)?, row.get(1)?))).unwrap();
        let heads: Vec<(String, String)> = heads.map(Result::unwrap).collect();
        let lines = [("dir:/w", "t_1"), ("dir:/w [\"gpu\"]", "t_3")];
        assert_eq!(heads, lines.map(|(line, task)| (line.to_owned(), task.to_owned())));
    }
}
