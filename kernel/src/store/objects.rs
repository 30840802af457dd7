//! Compares the schema of a file with the schema of this program, object by object.
//!
//! A trigger, a view or the default of a column runs with the rights of every later statement. A file with any other
//! object than this program makes is refused before a statement of the program reads its tables.
//!
//! See decision 0253.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::OnceLock;

use rusqlite::types::ValueRef;
use rusqlite::{Connection, ErrorCode};

use super::open_error::{OpenError, sqlite};
use super::time_limit::TIME;
use super::{bundled, migrate};

/// Number of objects from which a schema is foreign, whatever they are.
const MOST: usize = 2_000;
/// Largest number of reported differences.
const TOLD: usize = 5;

/// Definition of an object: the table that it belongs to, and its text without comments.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Definition {
    table: String,
    text: String,
}

/// Objects by kind and name.
type Objects = BTreeMap<(String, String), Definition>;

/// Objects of the latest schema.
static LATEST: OnceLock<Objects> = OnceLock::new();

/// Returns the differences between the schema of a file and the schema that this program makes at the same version.
pub(super) fn differences(conn: &Connection, path: &Path) -> Result<Vec<String>, OpenError> {
    let version: i64 = conn
        .pragma_query_value(None, "user_version", |row| row.get(0))
        .map_err(|error| sqlite("read the schema of", path, error))?;
    let present = match objects(conn) {
        Ok(found) if found.len() < MOST => found,
        Ok(_) => return Ok(vec![format!("its schema has {MOST} objects or more")]),
        Err(error) if error.sqlite_error_code() == Some(ErrorCode::OperationInterrupted) => {
            return Ok(vec![format!("its schema cannot be read within {} s", TIME.as_secs())]);
        }
        Err(error) => return Err(sqlite("read the schema of", path, error)),
    };
    if version != migrate::latest() {
        return Ok(compared(&present, &made(version, path)?));
    }
    let latest = if let Some(latest) = LATEST.get() {
        latest
    } else {
        let made = made(version, path)?;
        LATEST.get_or_init(|| made)
    };
    Ok(compared(&present, latest))
}

fn compared(found: &Objects, known: &Objects) -> Vec<String> {
    let beside = derived_objects();
    let mut defects = Vec::new();
    for (key, definition) in found {
        let (kind, name) = (short(&key.0), short(&key.1));
        match known.get(key).or_else(|| beside.get(key)) {
            Some(own) if own == definition => {}
            Some(_) => {
                defects.push(format!("the {kind} `{name}` is defined in another way than by this program"));
            }
            None => defects.push(format!("the {kind} `{name}` does not belong to this program")),
        }
    }
    let missing = known.keys().filter(|key| !found.contains_key(*key));
    defects.extend(missing.map(|(kind, name)| format!("the {kind} `{name}` is missing")));
    defects.truncate(TOLD);
    defects
}

/// Returns the beginning of a name, which may have any length and any characters.
fn short(name: &str) -> String {
    name.chars().map(|c| if c.is_control() { '?' } else { c }).take(64).collect()
}

/// Returns the objects of the schema of a version, made anew.
fn made(version: i64, path: &Path) -> Result<Objects, OpenError> {
    let fail = |error| sqlite("compare the schema of", path, error);
    let mut conn = Connection::open_in_memory().map_err(fail)?;
    migrate::to_version(&mut conn, version, path)?;
    objects(&conn).map_err(fail)
}

/// Returns the objects that a file may have beside its schema: the tables of a copy, and the statistics of `SQLite`.
fn derived_objects() -> &'static Objects {
    static BESIDE: OnceLock<Objects> = OnceLock::new();
    BESIDE.get_or_init(|| {
        let made = || {
            let conn = Connection::open_in_memory()?;
            conn.execute_batch(bundled::TABLES)?;
            conn.execute_batch("ANALYZE")?;
            objects(&conn)
        };
        made().unwrap_or_default()
    })
}

fn objects(conn: &Connection) -> rusqlite::Result<Objects> {
    let mut statement = conn.prepare("SELECT type, name, tbl_name, sql FROM sqlite_schema LIMIT ?1")?;
    let rows = statement.query_map([i64::try_from(MOST).unwrap_or(i64::MAX)], |row| {
        let cell = |at| row.get_ref(at).map(text_of);
        let definition = Definition { table: cell(2)?, text: plain(&cell(3)?) };
        Ok(((cell(0)?, cell(1)?), definition))
    })?;
    rows.collect()
}

/// Returns a cell as text. A schema that another program wrote can have any values.
fn text_of(value: ValueRef<'_>) -> String {
    match value {
        ValueRef::Null => String::new(),
        ValueRef::Text(text) => String::from_utf8_lossy(text).into_owned(),
        ValueRef::Integer(_) | ValueRef::Real(_) | ValueRef::Blob(_) => "\0".to_owned(),
    }
}

/// Returns a definition without comments, and with one space for each gap: the comments of the schema may change.
fn plain(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut rest = text.chars().peekable();
    let mut quote = None;
    while let Some(c) = rest.next() {
        match (quote, c) {
            (Some(end), _) => {
                quote = Some(end).filter(|end| *end != c);
                plain.push(c);
            }
            (None, '-') if rest.peek() == Some(&'-') => {
                rest.by_ref().find(|c| *c == '\n');
                gap(&mut plain);
            }
            (None, '/') if rest.peek() == Some(&'*') => {
                rest.next();
                let mut last = ' ';
                rest.by_ref().find(|c| std::mem::replace(&mut last, *c) == '*' && *c == '/');
                gap(&mut plain);
            }
            (None, _) if c.is_whitespace() => gap(&mut plain),
            (None, _) => {
                quote = match c {
                    '\'' | '"' | '`' => Some(c),
                    '[' => Some(']'),
                    _ => None,
                };
                plain.push(c);
            }
        }
    }
    plain
}

fn gap(plain: &mut String) {
    if !plain.ends_with(' ') {
        plain.push(' ');
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::store::time_limit::limit;

    fn board(version: i64) -> Connection {
        let mut conn = Connection::open_in_memory().unwrap();
        migrate::to_version(&mut conn, version, Path::new("x")).unwrap();
        conn.pragma_update(None, "application_id", migrate::APPLICATION_ID).unwrap();
        conn
    }

    fn defects_of(conn: &Connection) -> Vec<String> {
        differences(conn, Path::new("x")).unwrap()
    }

    #[test]
    fn boards_of_every_version_have_the_schema_of_that_version() {
        for version in 1..=migrate::latest() {
            assert_eq!(defects_of(&board(version)), Vec::<String>::new(), "{version}");
        }
    }

    #[test]
    fn a_copy_and_statistics_are_no_difference() {
        let conn = board(migrate::latest());
        conn.execute_batch(bundled::TABLES).unwrap();
        conn.execute_batch("ANALYZE").unwrap();
        assert_eq!(defects_of(&conn), Vec::<String>::new());
    }

    #[test]
    fn every_object_of_another_maker_is_named() {
        let wide = "CREATE TRIGGER wide AFTER INSERT ON tasks BEGIN \
             UPDATE tasks SET policy = 'unconfined' WHERE id = new.id; END";
        let endless =
            "CREATE VIEW v AS WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x FROM n) SELECT x FROM n";
        let default = "PRAGMA writable_schema = ON; \
             UPDATE sqlite_schema SET sql = replace(sql, 'policy TEXT', 'policy TEXT DEFAULT ''unconfined''') \
             WHERE name = 'tasks'; PRAGMA writable_schema = RESET";
        for (change, named) in [
            (wide, "the trigger `wide` does not belong"),
            (endless, "the view `v`"),
            ("CREATE TABLE extra (x)", "the table `extra`"),
            ("CREATE VIRTUAL TABLE found USING fts5(x, content='v')", "the table `found`"),
            ("CREATE INDEX extra ON tasks (title)", "the index `extra`"),
            ("DROP TRIGGER tasks_count_gone", "the trigger `tasks_count_gone` is missing"),
            ("DROP TABLE spend; CREATE VIEW spend AS SELECT 1", "the view `spend`"),
            ("ALTER TABLE tasks ADD COLUMN extra TEXT", "the table `tasks` is defined in another way"),
            (default, "the table `tasks` is defined in another way"),
            ("CREATE TABLE bundled_files (sha256 TEXT, bytes BLOB)", "the table `bundled_files`"),
        ] {
            let conn = board(migrate::latest());
            conn.execute_batch(change).unwrap();
            let defects = defects_of(&conn);
            assert!(defects.iter().any(|one| one.contains(named)), "{change}: {defects:?}");
        }
    }

    #[test]
    fn comments_and_gaps_are_no_difference_and_quoted_text_is() {
        assert_eq!(plain("a  (b, -- c\n  d /* e * / */ 'x  --y' )"), "a (b, d 'x  --y' )");
        assert_ne!(plain("DEFAULT 'a'"), plain("DEFAULT 'a '"));
        assert_eq!(plain("[a -- b] \"c /* d\" e"), "[a -- b] \"c /* d\" e");
    }

    #[test]
    fn a_statement_that_does_not_end_is_ended() {
        let conn = board(migrate::latest());
        limit(&conn, Path::new("x"), Duration::ZERO).unwrap();
        let endless = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x FROM n) SELECT count(*) FROM n";
        let error = conn.query_row(endless, [], |row| row.get::<_, i64>(0)).unwrap_err();
        assert_eq!(error.sqlite_error_code(), Some(ErrorCode::OperationInterrupted));
    }
}
