//! Repairs a damaged board: rebuilds its indices, or copies every readable row into a new file.
//!
//! The damaged file is copied before anything is changed, and the copy is kept.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use rusqlite::types::Value;
use rusqlite::{Connection, OpenFlags, params_from_iter};

use super::files::{draft_path, put_aside, put_in_place, sync_dir, with_end};
use super::open::{self, Schema};
use super::open_error::{OpenError, sqlite};
use super::rows::{columns, is_plain, tables};
use super::{check, counts, create, marker, missions, objects, sequence, usage};
use crate::model::clock::Timestamp;
use crate::model::counted::Counted;
use crate::model::id::{BoardId, BoardName};

/// Extent of a repair, with the copy of the damaged board.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Repair {
    /// The board was sound, and nothing was changed.
    Whole,
    /// The indices were rebuilt. No row was changed.
    Reindexed {
        /// Copy of the board before the repair.
        evidence: PathBuf,
    },
    /// The readable rows are in a new file.
    Rebuilt {
        /// Copy of the board before the repair.
        evidence: PathBuf,
        /// Rows that the new file lacks.
        losses: Vec<Loss>,
    },
}

/// Rows that a rebuilt board lacks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Loss {
    /// Table of the lost rows.
    pub table: String,
    /// Description of the lost rows.
    pub what: String,
}

/// Repairs the board at `path`. No process may have it open.
///
/// # Errors
/// The file is not a board of this program, or nothing in it can be read. The file is then unchanged, or has the name in
/// the message.
pub fn repair_board(path: &Path, name: &BoardName, now: Timestamp) -> Result<Repair, OpenError> {
    open::look(path)?;
    match check::check_board(path) {
        Ok(faults) if faults.is_empty() => return Ok(Repair::Whole),
        // Another program reads it, and its rows would have another meaning here.
        Err(error @ (OpenError::OlderFormat { .. } | OpenError::NewerSchema { .. })) => return Err(error),
        Ok(_) | Err(_) => {}
    }
    let evidence = keep_evidence(path, now)?;
    if reindexed(path) {
        return Ok(Repair::Reindexed { evidence });
    }
    let draft = draft_path(path);
    let losses = match rebuild(path, &draft, name, now) {
        Ok(losses) => losses,
        Err(error) => {
            // The caller gets the first error. A failure to clean up would hide it.
            drop(create::clear(&draft));
            return Err(error);
        }
    };
    // The damaged file is moved away first. After a crash before the next line, it is found under its new name; the
    // evidence is a copy of it.
    put_aside(path, "rebuilt", now)?;
    put_in_place(&draft, path, "put the rebuilt board in the place of")?;
    for end in ["", "-wal", "-shm"] {
        // The evidence has the same bytes.
        drop(fs::remove_file(with_end(path, &format!(".rebuilt-{}{end}", now.as_micros()))));
    }
    Ok(Repair::Rebuilt { evidence, losses })
}

fn keep_evidence(path: &Path, now: Timestamp) -> Result<PathBuf, OpenError> {
    let evidence = with_end(path, &format!(".damaged-{}", now.as_micros()));
    for end in ["", "-wal"] {
        let (from, to) = (with_end(path, end), with_end(&evidence, end));
        match fs::copy(&from, &to).and_then(|_| fs::File::open(&to)?.sync_all()) {
            Ok(()) => {}
            Err(error) if end == "-wal" && error.kind() == io::ErrorKind::NotFound => {}
            Err(source) => return Err(OpenError::Io { step: "copy away", path: from, source }),
        }
    }
    sync_dir(path)?;
    Ok(evidence)
}

/// Rebuilds the indices and the counters. Returns true if the board is then sound.
fn reindexed(path: &Path) -> bool {
    let done = open::foreign_writer(path).and_then(|conn| {
        // Triggers and views that this program has not made could run with any statement, so the board is left to be
        // rebuilt, without them.
        if let Some(difference) = objects::differences(&conn, path)?.into_iter().next() {
            return Ok(vec![difference]);
        }
        conn.execute_batch("REINDEX").map_err(|error| sqlite("reindex", path, error))?;
        let Schema { found, known } = open::schema(&conn, path)?;
        // For an older schema, the migrations compute the counters later.
        if found == known {
            counts::recount(&conn)
                .and_then(|()| usage::recount(&conn))
                .and_then(|()| missions::recount(&conn))
                .map_err(|error| sqlite("count the tasks of", path, error))?;
        }
        check::faults(&conn, path)
    });
    done.is_ok_and(|faults| faults.is_empty())
}

/// Copies the readable rows into a new board.
fn rebuild(path: &Path, draft: &Path, name: &BoardName, now: Timestamp) -> Result<Vec<Loss>, OpenError> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let source = Connection::open_with_flags(path, flags).map_err(|e| sqlite("open", path, e))?;
    // Fails for a file without a header, of which no row can be read.
    source
        .pragma_query_value(None, "user_version", |row| row.get::<_, i64>(0))
        .map_err(|e| sqlite("read", path, e))?;
    let marked = marker::read(&marker::path(path))?;
    let id = marked.unwrap_or_else(|| BoardId(uuid::Uuid::new_v4()));
    create::build(draft, id, name, now)?;
    let fail = |error| sqlite("rebuild", draft, error);
    let target = open::foreign_writer(draft)?;
    target.pragma_update(None, "foreign_keys", false).map_err(fail)?;
    target.execute_batch("BEGIN IMMEDIATE").map_err(fail)?;
    let mut losses = Vec::new();
    for table in tables(&target).map_err(fail)? {
        if let Some(what) = salvage(&source, &target, &table).map_err(fail)? {
            losses.push(Loss { table, what });
        }
    }
    losses.extend(reconcile(&target).map_err(fail)?);
    // If the counters of ids cannot be read, they continue from the ids of the copied rows.
    sequence::raise(&target, &sequence::all(&source).unwrap_or_default()).map_err(fail)?;
    target.execute_batch("COMMIT").map_err(fail)?;
    let faults = check::faults(&target, draft)?;
    target.close().map_err(|(_, error)| fail(error))?;
    match faults.first() {
        None => Ok(losses),
        Some(fault) => Err(OpenError::Corrupt { path: path.to_owned(), detail: fault.clone() }),
    }
}

/// Copies the readable rows of a table: from the first row up to a damaged page, then from the last row backwards.
/// Returns a description of the lost rows; none if no row was lost.
fn salvage(source: &Connection, target: &Connection, table: &str) -> rusqlite::Result<Option<String>> {
    let is_stored = is_plain(source, table).unwrap_or_default();
    let known = if is_stored { columns(source, table).unwrap_or_default() } else { Vec::new() };
    let shared: Vec<String> =
        columns(target, table)?.into_iter().filter(|column| known.contains(column)).collect();
    if shared.is_empty() {
        return Ok(Some("the whole table: its definition cannot be read".to_owned()));
    }
    if table == "meta" {
        // The new row of `meta` comes from the marker; only the counter of user ids is copied.
        let uid = source.query_row("SELECT next_uid FROM meta", [], |row| row.get::<_, i64>(0));
        return match uid {
            Ok(uid) => target.execute("UPDATE meta SET next_uid = ?1", [uid]).map(|_| None),
            Err(_) => Ok(Some("the counter of the workers' uids".to_owned())),
        };
    }
    let names = shared.iter().map(|name| format!("\"{name}\"")).collect::<Vec<_>>().join(", ");
    let marks = vec!["?"; shared.len()].join(", ");
    let mut insert =
        target.prepare(&format!("INSERT OR IGNORE INTO \"{table}\" ({names}) VALUES ({marks})"))?;
    let mut refused = 0_usize;
    let mut broken = None;
    for order in ["ASC", "DESC"] {
        let scan =
            format!("SELECT {names} FROM \"{table}\" NOT INDEXED ORDER BY {} {order}", key(source, table));
        match read_rows(source, &scan, shared.len(), |row| {
            // A row that breaks a constraint is not inserted. In the second direction this includes the rows that were
            // copied in the first.
            if !insert.execute(params_from_iter(row)).is_ok_and(|inserted| inserted == 1) {
                refused += 1;
            }
        }) {
            Ok(()) => break,
            Err(error) => broken = Some(error.to_string()),
        }
    }
    let row_count: i64 =
        target.query_row(&format!("SELECT count(*) FROM \"{table}\""), [], |row| row.get(0))?;
    Ok(match (broken, refused) {
        (Some(why), _) => {
            Some(format!("an unknown number of rows between those that were read ({row_count}): {why}"))
        }
        (None, 0) => None,
        (None, refused) => Some(format!("{} whose values make no sense", Counted(refused, "row"))),
    })
}

fn key(conn: &Connection, table: &str) -> String {
    // A table without rowids is stored in the order of its key. `1` is a constant, so it is read in that order.
    if conn.prepare(&format!("SELECT rowid FROM \"{table}\"")).is_ok() { "rowid" } else { "1" }.to_owned()
}

fn read_rows(
    source: &Connection,
    scan: &str,
    width: usize,
    mut each: impl FnMut(Vec<Value>),
) -> rusqlite::Result<()> {
    let mut statement = source.prepare(scan)?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        let values = (0..width).map(|at| row.get::<_, Value>(at)).collect::<rusqlite::Result<Vec<_>>>()?;
        each(values);
    }
    Ok(())
}

/// Removes rows that refer to lost tasks. A running task whose run is lost gets a new row for it, so that recovery can end
/// the run.
fn reconcile(conn: &Connection) -> rusqlite::Result<Vec<Loss>> {
    let mut losses = Vec::new();
    let mut children: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for table in tables(conn)? {
        let columns = columns(conn, &table)?;
        let referring = columns.into_iter().filter(|column| {
            matches!(column.as_str(), "task_id" | "parent_id" | "child_id")
                && !matches!(table.as_str(), "task_events" | "folded_states")
        });
        let referring: Vec<String> = referring.collect();
        if !referring.is_empty() {
            children.insert(table, referring);
        }
    }
    for (table, columns) in children {
        let lost = columns.iter().map(|column| format!("\"{column}\" NOT IN (SELECT id FROM tasks)"));
        let condition = lost.collect::<Vec<_>>().join(" OR ");
        let removed = conn.execute(&format!("DELETE FROM \"{table}\" WHERE {condition}"), [])?;
        if removed > 0 {
            losses.push(Loss { table, what: format!("{} of tasks that are lost", Counted(removed, "row")) });
        }
    }
    let made = conn.execute(
        "INSERT INTO task_runs (id, task_id, tenant, profile, status, holder, started_at) \
         SELECT current_run_id, id, tenant, assignee, 'running', 'supervisor', updated_at FROM tasks \
         WHERE current_run_id IS NOT NULL AND current_run_id NOT IN (SELECT id FROM task_runs)",
        [],
    )?;
    if made > 0 {
        let what = format!("all about {made} open runs but their numbers; recovery ends them as lost");
        losses.push(Loss { table: "task_runs".to_owned(), what });
    }
    // A task id is never used again, even if the list of used ids was lost.
    conn.execute("INSERT OR IGNORE INTO task_ids (id) SELECT id FROM tasks", [])?;
    Ok(losses)
}
