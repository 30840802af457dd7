//! The schema's history: append-only, numbered by `user_version`.

use rusqlite_migration::{M, Migrations};

/// Marks the file as a board of this program: `supv` in ASCII.
pub(crate) const APPLICATION_ID: i32 = 0x7375_7076;

const STEPS: &[M<'static>] =
    &[M::up(include_str!("migrations/0001.sql")), M::up(include_str!("migrations/0002.sql"))];

/// Returns every migration that there is.
pub(crate) fn migrations() -> Migrations<'static> {
    Migrations::from_slice(STEPS)
}

/// The newest schema that this program knows.
pub(crate) fn latest() -> i64 {
    i64::try_from(STEPS.len()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
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
}
