//! Counters of ids that are never used twice, even after their rows are gone.

use std::collections::BTreeMap;

use rusqlite::Connection;

/// Highest id that each table has used.
pub(super) type Counters = BTreeMap<String, i64>;

/// Returns the counters of all tables that have one.
pub(super) fn all(conn: &Connection) -> rusqlite::Result<Counters> {
    let mut statement = conn.prepare(
        "SELECT name, ifnull((SELECT max(seq) FROM sqlite_sequence AS given WHERE given.name = made.name), 0) \
         FROM sqlite_schema AS made WHERE type = 'table' AND sql LIKE '%AUTOINCREMENT%'",
    )?;
    let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?;
    rows.collect()
}

/// Raises the counters, so that no id up to these floors is used again, nor the id of a folded event.
pub(super) fn raise(conn: &Connection, floors: &Counters) -> rusqlite::Result<()> {
    let folded: i64 =
        conn.query_row("SELECT ifnull(max(event_id), 0) FROM event_horizon", [], |row| row.get(0))?;
    for (table, known) in all(conn)? {
        let floor = floors.get(&table).copied().unwrap_or(0);
        let floor = if table == "task_events" { floor.max(folded) } else { floor };
        if known < floor {
            conn.execute("DELETE FROM sqlite_sequence WHERE name = ?1", [&table])?;
            conn.execute("INSERT INTO sqlite_sequence (name, seq) VALUES (?1, ?2)", (&table, floor))?;
        }
    }
    Ok(())
}
