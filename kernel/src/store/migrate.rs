//! Migrations of the schema. New ones are appended and old ones never change. `user_version` is the number of applied
//! migrations.

use std::path::Path;

use rusqlite::Connection;
use rusqlite_migration::{M, Migrations};

use super::open_error::OpenError;

/// Application id in the header of a board's file: `supv` in ASCII.
pub(crate) const APPLICATION_ID: i32 = 0x7375_7076;

const STEPS: &[M<'static>] = &[
    M::up(include_str!("migrations/0001.sql")),
    M::up(include_str!("migrations/0002.sql")),
    M::up(include_str!("migrations/0003.sql")),
    M::up(include_str!("migrations/0004.sql")),
    M::up(include_str!("migrations/0005.sql")),
    M::up(include_str!("migrations/0006.sql")),
    M::up(include_str!("migrations/0007.sql")),
    M::up(include_str!("migrations/0008.sql")),
    M::up(include_str!("migrations/0009.sql")),
    M::up(include_str!("migrations/0010.sql")),
    M::up(include_str!("migrations/0011.sql")),
    M::up(include_str!("migrations/0012.sql")),
    M::up(include_str!("migrations/0013.sql")),
    M::up(include_str!("migrations/0014.sql")),
    M::up(include_str!("migrations/0015.sql")),
    M::up(include_str!("migrations/0016.sql")),
    M::up(include_str!("migrations/0017.sql")),
    M::up(include_str!("migrations/0019.sql")),
    M::up(include_str!("migrations/0020.sql")),
    M::up(include_str!("migrations/0021.sql")),
    M::up(include_str!("migrations/0022.sql")),
    M::up(include_str!("migrations/0023.sql")),
    M::up(include_str!("migrations/0024.sql")),
    M::up(include_str!("migrations/0025.sql")),
    M::up(include_str!("migrations/0026.sql")),
    M::up(include_str!("migrations/0027.sql")),
    M::up(include_str!("migrations/0028.sql")),
    M::up(include_str!("migrations/0029.sql")),
    M::up(include_str!("migrations/0030.sql")),
    M::up(include_str!("migrations/0031.sql")),
    M::up(include_str!("migrations/0032.sql")),
    M::up(include_str!("migrations/0033.sql")),
    M::up(include_str!("migrations/0034.sql")),
    M::up(include_str!("migrations/0035.sql")),
    M::up(include_str!("migrations/0036.sql")),
    M::up(include_str!("migrations/0037.sql")),
    M::up(include_str!("migrations/0038.sql")),
    M::up(include_str!("migrations/0039.sql")),
    M::up(include_str!("migrations/0040.sql")),
    M::up(include_str!("migrations/0041.sql")),
];

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

    #[test]
    fn the_migrations_apply_to_an_empty_database() {
        super::migrations().validate().unwrap();
    }

    #[test]
    fn stored_replies_of_an_older_board_are_kept_and_an_older_export_still_fits() {
        let mut conn = rusqlite::Connection::open_in_memory().unwrap();
        let store =
            "INSERT INTO requests (id, caller, reply, created_at) VALUES (?1, 'person:alice', '1', 1)";
        super::migrations().to_version(&mut conn, 1).unwrap();
        conn.execute(store, ["before"]).unwrap();
        super::migrations().to_latest(&mut conn).unwrap();
        conn.execute(store, ["imported"]).unwrap();
        let count: i64 = conn.query_row("SELECT count(*) FROM requests", [], |row| row.get(0)).unwrap();
        assert_eq!(count, 2);
    }

    #[test]
    fn a_board_of_the_second_schema_keeps_its_rows_and_takes_ids_of_other_programs() {
        let mut conn = Connection::open_in_memory().unwrap();
        let steps = super::migrations();
        steps.to_version(&mut conn, 2).unwrap();
        let insert =
            "INSERT INTO tasks (id, title, status, created_at, updated_at) VALUES (?1, 'x', 'triage', 0, 0)";
        conn.execute(insert, ["t_0123abcd"]).unwrap();
        conn.execute(insert, ["t_9f2a"]).unwrap_err();
        let cookie = |conn: &Connection| {
            conn.pragma_query_value(None, "schema_version", |row| row.get::<_, i64>(0)).unwrap()
        };
        let before = cookie(&conn);

        steps.to_version(&mut conn, 3).unwrap();

        assert!(cookie(&conn) > before, "other connections have to notice");
        conn.execute(insert, ["t_9f2a"]).unwrap();
        for wrong in ["t_", "t_a/b", "t_-a", "x_0123abcd", "t_a\nb", &format!("t_{}", "a".repeat(63))] {
            conn.execute(insert, [wrong]).unwrap_err();
        }
        let tasks: i64 = conn.query_row("SELECT count(*) FROM tasks", [], |row| row.get(0)).unwrap();
        let sound: String = conn.pragma_query_value(None, "integrity_check", |row| row.get(0)).unwrap();
        assert_eq!((tasks, sound.as_str()), (2, "ok"));
    }

    #[test]
    fn a_board_of_the_seventeenth_schema_keeps_its_lines_and_takes_breakers_and_pools() {
        let mut conn = Connection::open_in_memory().unwrap();
        let steps = super::migrations();
        steps.to_version(&mut conn, 17).unwrap();
        let insert = "INSERT INTO tasks (id, title, status, assignee, workspace, created_at, updated_at)";
        let ready = |id: &str| format!("{insert} VALUES ('{id}', 'x', 'ready', 'a', 'dir:/w', 0, 0)");
        conn.execute(&ready("t_00000001"), []).unwrap();
        let breaker = "INSERT INTO holds (kind, scope, name, reason, placed_by, until, created_at) \
             VALUES ('breaker', 'environment', 'root', 'x', 'system', 1, 0)";
        conn.execute(breaker, []).unwrap_err();

        steps.to_latest(&mut conn).unwrap();

        conn.execute(breaker, []).unwrap();
        conn.execute(&ready("t_00000002"), []).unwrap();
        let pooled = ready("t_00000003")
            .replace("workspace,", "workspace, pools,")
            .replace("'dir:/w',", "'dir:/w', '[\"gpu\"]',");
        conn.execute(&pooled, []).unwrap();
        let mut heads = conn.prepare("SELECT line, task FROM line_heads ORDER BY line").unwrap();
        let heads = heads.query_map([], |row| Ok((row.get(0)?, row.get(1)?))).unwrap();
        let heads: Vec<(String, String)> = heads.map(Result::unwrap).collect();
        let lines = [("dir:/w", "t_00000001"), ("dir:/w [\"gpu\"]", "t_00000003")];
        assert_eq!(heads, lines.map(|(line, task)| (line.to_owned(), task.to_owned())));
        let sound: String = conn.pragma_query_value(None, "integrity_check", |row| row.get(0)).unwrap();
        assert_eq!(sound, "ok");
    }
}
