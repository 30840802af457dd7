//! The schema's history: append-only, numbered by `user_version`.

use rusqlite_migration::{M, Migrations};

/// Marks the file as a board of this program: `supv` in ASCII.
pub(crate) const APPLICATION_ID: i32 = 0x7375_7076;

const STEPS: &[M<'static>] = &[M::up(include_str!("migrations/0001.sql"))];

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
}
