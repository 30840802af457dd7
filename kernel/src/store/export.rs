//! A board as JSON Lines: every row of every table and every attached file, and back again into an empty board.
//!
//! ```text
//! {"format":"supervisor-board","version":1,"schema":1,"board":"…","name":"default","details":{…}}
//! {"table":"tasks","row":{"id":"t_0123abcd","title":"…",…}}
//! …
//! {"file":{"sha256":"…","at":0,"hex":"…"}}
//! …
//! {"end":{"tasks":1,…},"files":1}
//! ```
//! A blob is `{"hex":"…"}`. The last line counts the rows and the files, so that a file that was cut off is known as such.

use std::collections::BTreeMap;
use std::io::{BufRead, Write};
use std::sync::Arc;

use rusqlite::params_from_iter;
use rusqlite::types::{Value as Sql, ValueRef};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::chunks::{Incoming, Piece, Refused, pieces};
use super::convert::Step as _;
use super::repair::{columns, tables};
use super::tx::Tx;
use super::{bundle, migrate, open, usage};
use crate::blobs::{Blobs, Lack};
use crate::model::error::{Error, StorageKind};

const FORMAT: &str = "supervisor-board";
const VERSION: u32 = 1;
/// The numbers that were given out last, so that none is given out twice.
const SEQUENCES: &str = "sqlite_sequence";

/// How many rows went through, by table.
pub type Rows = BTreeMap<String, u64>;

/// What was written out.
#[derive(Clone, Debug, PartialEq)]
pub struct Exported {
    /// How many rows of each table.
    pub rows: Rows,
    /// How many attached files.
    pub files: u64,
    /// The attachments whose bytes are not in it.
    pub lacks: Vec<Lack>,
}

/// What was read.
#[derive(Clone, Debug, PartialEq)]
pub struct Imported {
    /// How many rows of each table.
    pub rows: Rows,
    /// How many attached files.
    pub files: u64,
    /// What people said of the board, as it was given to the export.
    pub details: Option<Value>,
}

#[derive(Serialize, Deserialize)]
struct Header {
    format: String,
    version: u32,
    schema: i64,
    board: String,
    name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    details: Option<Value>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Line {
    Row {
        table: String,
        row: Map<String, Value>,
    },
    File {
        file: Piece,
    },
    End {
        end: Rows,
        #[serde(default)]
        files: u64,
    },
}

/// Writes the whole board. `details` is for people.
pub(crate) fn export(
    tx: &Tx<'_>,
    blobs: &Blobs,
    details: Option<Value>,
    out: &mut dyn Write,
) -> Result<Exported, Error> {
    // Before the first look at the board, so that all that it names stays.
    let _unswept = blobs.unswept()?;
    let header = Header {
        format: FORMAT.to_owned(),
        version: VERSION,
        schema: migrate::latest(),
        board: tx.board_id()?.to_string(),
        name: tx.board_name()?.to_string(),
        details,
    };
    line(out, &header)?;
    let mut counts = Rows::new();
    for table in exported(tx)? {
        let names = columns(tx.conn, &table).step("read the schema")?;
        let list = names.iter().map(|name| format!("\"{name}\"")).collect::<Vec<_>>().join(", ");
        let mut statement = tx
            .conn
            .prepare(&format!("SELECT {list} FROM \"{table}\" ORDER BY 1, 2"))
            .or_else(|_| tx.conn.prepare(&format!("SELECT {list} FROM \"{table}\" ORDER BY 1")))
            .step("export a table")?;
        let mut rows = statement.query([]).step("export a table")?;
        let mut count = 0;
        while let Some(row) = rows.next().step("export a table")? {
            let mut object = Map::new();
            for (at, name) in names.iter().enumerate() {
                object.insert(name.clone(), to_json(row.get_ref(at).step("export a table")?));
            }
            line(out, &json!({ "table": table, "row": object }))?;
            count += 1;
        }
        counts.insert(table, count);
    }
    let mut flaws = BTreeMap::new();
    let mut files = 0;
    for digest in tx.attached_digests()? {
        match blobs.read(&digest)? {
            Ok(bytes) => {
                for piece in pieces(&digest, &bytes) {
                    line(out, &json!({ "file": piece }))?;
                }
                files += 1;
            }
            Err(flaw) => drop(flaws.insert(digest, flaw)),
        }
    }
    let lacks = bundle::lacking(tx.conn, &flaws)?;
    line(out, &json!({ "end": counts, "files": files }))?;
    out.flush().map_err(|error| failed("write the export", error))?;
    Ok(Exported { rows: counts, files, lacks })
}

/// Reads a whole board into an empty one. What belongs to a host is forgotten: users that were allocated to workers, and
/// the tokens of runs.
///
/// Files are stored before the rows are committed: of an import that fails they are nobody's. The caller keeps sweeps away
/// until then.
pub(crate) fn import(tx: &Tx<'_>, blobs: &Blobs, lines: &mut dyn BufRead) -> Result<Imported, Error> {
    open::cache(tx.conn, open::BULK_CACHE).step("begin the import")?;
    let imported = import_lines(tx, blobs, lines);
    open::cache(tx.conn, open::CACHE).step("end the import")?;
    imported
}

fn import_lines(tx: &Tx<'_>, blobs: &Blobs, lines: &mut dyn BufRead) -> Result<Imported, Error> {
    require_empty(tx)?;
    tx.conn.pragma_update(None, "defer_foreign_keys", true).step("begin the import")?;
    let known = exported(tx)?;
    let mut schemas = BTreeMap::new();
    for table in known {
        let names = columns(tx.conn, &table).step("read the schema")?;
        schemas.insert(table, names);
    }
    let mut counts: Rows = schemas.keys().map(|table| (table.clone(), 0)).collect();
    let mut incoming = Incoming::new(blobs);
    let (mut end, mut details) = (None, None);
    let mut text = String::new();
    let mut number = 0_u64;
    loop {
        text.clear();
        number += 1;
        if lines.read_line(&mut text).map_err(|error| unreadable(number, &error))? == 0 {
            break;
        }
        if number == 1 {
            details = check_header(&text)?;
            continue;
        }
        if end.is_some() {
            return Err(wrong(number, "something follows the last line"));
        }
        match serde_json::from_str::<Line>(&text).map_err(|error| unreadable(number, &error))? {
            Line::End { end: told, files } => end = Some((told, files)),
            Line::File { file } => incoming.take(tx, &file).map_err(|why| refused(number, why))?,
            Line::Row { table, row } => {
                let names = schemas
                    .get(&table)
                    .ok_or_else(|| wrong(number, format!("there is no table {table:?}")))?;
                insert(tx, &table, names, row).map_err(|what| wrong(number, what))?;
                *counts.entry(table).or_default() += 1;
            }
        }
    }
    if number == 1 {
        return Err(wrong(1, "the file is empty"));
    }
    let Some((mut told, told_files)) = end else {
        return Err(wrong(number, "the last line is missing: the file was cut off"));
    };
    // A table that one of both programs does not know has no rows.
    told.retain(|_, count| *count > 0);
    if !told.iter().eq(counts.iter().filter(|(_, count)| **count > 0)) {
        return Err(wrong(number, "its counts are not those of the rows"));
    }
    let files = incoming.end().map_err(|why| refused(number, why))?;
    if files != told_files {
        return Err(wrong(number, "its count is not that of the files"));
    }
    forget_host(tx)?;
    usage::recount(tx.conn).step("count what tenants keep")?;
    refuse_orphans(tx)?;
    Ok(Imported { rows: counts, files, details })
}

/// Refuses a board with anything on it.
pub(super) fn require_empty(tx: &Tx<'_>) -> Result<(), Error> {
    let used: bool = tx
        .conn
        .query_row("SELECT EXISTS (SELECT 1 FROM tasks) OR EXISTS (SELECT 1 FROM task_events)", [], |row| {
            row.get(0)
        })
        .step("look at the board")?;
    if used {
        return Err(Error::conflict(
            "the board is not empty",
            "import into a new one: supervisor --board <name> import …",
        ));
    }
    Ok(())
}

/// Refuses rows whose task is not there.
pub(super) fn refuse_orphans(tx: &Tx<'_>) -> Result<(), Error> {
    let orphans: i64 = tx
        .conn
        .query_row("SELECT count(*) FROM pragma_foreign_key_check", [], |row| row.get(0))
        .step("check the references")?;
    if orphans > 0 {
        return Err(Error::invalid(
            "file",
            format!("{orphans} rows refer to others that are not in it"),
            "export the board again",
        ));
    }
    Ok(())
}

fn forget_host(tx: &Tx<'_>) -> Result<(), Error> {
    tx.conn
        .execute_batch(
            "UPDATE tasks SET worker_uid = NULL WHERE worker_uid IS NOT NULL; \
         UPDATE task_runs SET token_hash = NULL WHERE token_hash IS NOT NULL;",
        )
        .step("forget the former host")
}

/// The tables of an export: all but the identity of the file.
fn exported(tx: &Tx<'_>) -> Result<Vec<String>, Error> {
    let mut names = tables(tx.conn).step("read the schema")?;
    names.retain(|name| name != "meta" && !bundle::is_of_copy(name));
    names.push(SEQUENCES.to_owned());
    Ok(names)
}

/// Returns what people say of the board.
fn check_header(text: &str) -> Result<Option<Value>, Error> {
    let header: Header = serde_json::from_str(text)
        .map_err(|error| wrong(1, format!("this is no exported board: {error}")))?;
    if header.format != FORMAT {
        return Err(wrong(1, format!("the format is {:?}, not {FORMAT:?}", header.format)));
    }
    if header.version > VERSION || header.schema > migrate::latest() {
        return Err(wrong(1, "a newer supervisor wrote it"));
    }
    Ok(header.details)
}

fn insert(tx: &Tx<'_>, table: &str, known: &[String], row: Map<String, Value>) -> Result<(), String> {
    let mut names = Vec::with_capacity(row.len());
    let mut values = Vec::with_capacity(row.len());
    for (name, value) in row {
        if !known.contains(&name) {
            return Err(format!("{table} has no column {name:?}"));
        }
        values.push(from_json(value).ok_or_else(|| format!("{table}.{name} has no value of a column"))?);
        names.push(format!("\"{name}\""));
    }
    if table == SEQUENCES {
        // The rows that were put in have left theirs.
        tx.conn
            .execute("DELETE FROM sqlite_sequence WHERE name = ?1", params_from_iter(values.first()))
            .map_err(|error| format!("{table}: {error}"))?;
    }
    let (list, marks) = (names.join(", "), vec!["?"; names.len()].join(", "));
    tx.conn
        .prepare_cached(&format!("INSERT INTO \"{table}\" ({list}) VALUES ({marks})"))
        .and_then(|mut statement| statement.execute(params_from_iter(values)))
        .map(drop)
        .map_err(|error| format!("{table}: {error}"))
}

fn to_json(value: ValueRef<'_>) -> Value {
    match value {
        ValueRef::Null => Value::Null,
        ValueRef::Integer(number) => number.into(),
        ValueRef::Real(number) => number.into(),
        ValueRef::Text(text) => String::from_utf8_lossy(text).into_owned().into(),
        ValueRef::Blob(bytes) => json!({ "hex": hex(bytes) }),
    }
}

fn from_json(value: Value) -> Option<Sql> {
    Some(match value {
        Value::Null => Sql::Null,
        Value::Number(number) => match number.as_i64() {
            Some(whole) => Sql::Integer(whole),
            None => Sql::Real(number.as_f64()?),
        },
        Value::String(text) => Sql::Text(text),
        Value::Object(object) => Sql::Blob(unhex(object.get("hex")?.as_str()?)?),
        Value::Bool(_) | Value::Array(_) => return None,
    })
}

/// Bytes as digits.
pub(super) fn hex(bytes: &[u8]) -> String {
    let halves = bytes.iter().flat_map(|byte| [byte >> 4, byte & 15]);
    halves.filter_map(|half| char::from_digit(u32::from(half), 16)).collect()
}

/// Digits as bytes.
pub(super) fn unhex(digits: &str) -> Option<Vec<u8>> {
    let (pairs, []) = digits.as_bytes().as_chunks::<2>() else { return None };
    let half = |digit: u8| char::from(digit).to_digit(16).and_then(|half| u8::try_from(half).ok());
    pairs.iter().map(|[high, low]| Some(half(*high)? << 4 | half(*low)?)).collect()
}

fn line(out: &mut dyn Write, value: &impl Serialize) -> Result<(), Error> {
    serde_json::to_writer(&mut *out, value)
        .map_err(std::io::Error::from)
        .and_then(|()| out.write_all(b"\n"))
        .map_err(|error| failed("write the export", error))
}

fn failed(step: &'static str, error: std::io::Error) -> Error {
    Error::Storage { kind: StorageKind::Io, step, source: Arc::new(error) }
}

fn unreadable(number: u64, error: &dyn std::fmt::Display) -> Error {
    wrong(number, format!("it cannot be read: {error}"))
}

fn refused(number: u64, why: Refused) -> Error {
    match why {
        Refused::Line(what) => wrong(number, what),
        Refused::Failed(error) => error,
    }
}

fn wrong(number: u64, what: impl std::fmt::Display) -> Error {
    Error::invalid("file", format!("line {number}: {what}"), "nothing was imported")
}
