//! Exports a board as JSON Lines, with every row and every attached file, and imports such lines into an empty board.
//!
//! ```text
//! {"format":"supervisor-board","version":2,"schema":1,"board":"…","name":"default","details":{…}}
//! {"table":"tasks","row":{"id":"t_0123abcd","title":"…",…}}
//! …
//! {"file":{"sha256":"…","at":0,"hex":"…"}}
//! …
//! {"end":{"tasks":1,…},"files":1}
//! ```
//! A blob is `{"hex":"…"}`. The last line has the numbers of rows and files, so that a file that was cut off is detected.

use std::collections::BTreeMap;
use std::io::{BufRead, Write};
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::bundle;
use super::chunks::{Chunk, Incoming, Refused, chunks};
use crate::blobs::{Blobs, Lack};
use crate::model::cell::Cell;
use crate::model::counted::Counted;
use crate::model::error::{EXPORT, Error};
use crate::model::id::Tenant;
use crate::store::migrate;
use crate::store::tx::Tx;
use crate::store::values::unfit_to_import;

const FORMAT: &str = "supervisor-board";
/// Version of the format. Version 1 is older than release 0.1.0.
const VERSION: u32 = 2;
/// Number of rows, by table.
pub type Rows = BTreeMap<String, u64>;

/// Result of an export.
#[derive(Clone, Debug, PartialEq)]
pub struct Exported {
    /// Number of rows of each table.
    pub rows: Rows,
    /// Number of attached files.
    pub files: u64,
    /// Attachments whose bytes are not in it.
    pub lacks: Vec<Lack>,
}

/// Result of an import.
#[derive(Clone, Debug, PartialEq)]
pub struct Imported {
    /// Number of rows of each table.
    pub rows: Rows,
    /// Number of attached files.
    pub files: u64,
    /// Details that were given to the export for human readers.
    pub details: Option<Value>,
}

#[derive(Serialize, Deserialize)]
struct Header {
    format: String,
    version: u32,
    schema: i64,
    board: String,
    name: String,
    /// Tenant of the rows; none for a whole board.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    tenant: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    details: Option<Value>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum ExportLine {
    Row { table: String, row: Map<String, Value> },
    File { file: Chunk },
    End { end: Rows, files: u64 },
}

/// Part of a board to export.
#[derive(Debug)]
pub(crate) enum Portion<'a> {
    /// The whole board, with details for human readers.
    Board(Option<Value>),
    /// The rows that belong to the tasks of one tenant.
    Tenant(&'a Tenant),
}

/// Writes a board, or the data of one tenant.
pub(crate) fn export(
    tx: &Tx<'_>,
    blobs: &Blobs,
    portion: &Portion<'_>,
    out: &mut dyn Write,
) -> Result<Exported, Error> {
    // Sweeps are prevented before the board is read, so that all files it names stay.
    let _unswept = blobs.unswept()?;
    let header = Header {
        format: FORMAT.to_owned(),
        version: VERSION,
        schema: migrate::latest(),
        board: tx.board_id()?.to_string(),
        name: tx.board_name()?.to_string(),
        tenant: match portion {
            Portion::Board(_) => None,
            Portion::Tenant(tenant) => Some(tenant.to_string()),
        },
        details: match portion {
            Portion::Board(details) => details.clone(),
            Portion::Tenant(_) => None,
        },
    };
    line(out, &header)?;
    let mut counts = Rows::new();
    for (table, columns) in tx.tables()? {
        let mut count = 0;
        let each = |cells: Vec<Cell>| {
            let values = cells.into_iter().map(to_json);
            let object: Map<String, Value> = columns.iter().cloned().zip(values).collect();
            count += 1;
            line(out, &json!({ "table": table, "row": object }))
        };
        let is_in = match portion {
            Portion::Board(_) => tx.each_row(&table, &columns, each).map(|()| true)?,
            Portion::Tenant(tenant) => tx.each_row_of(tenant, &table, &columns, each)?,
        };
        if is_in {
            counts.insert(table, count);
        }
    }
    let digests = match portion {
        Portion::Board(_) => tx.attached_digests()?,
        Portion::Tenant(tenant) => tx.digests_of(tenant)?,
    };
    let (files, mut lacks) = bundle::put_files(
        digests,
        |digest| Ok(blobs.read(digest)?),
        |digest, bytes| chunks(digest, bytes).try_for_each(|chunk| line(out, &json!({ "file": chunk }))),
        || tx.all_attachments(),
    )?;
    // The attachments of other tenants do not concern this export.
    if let Portion::Tenant(tenant) = portion {
        let mut unresolved = Vec::with_capacity(lacks.len());
        for lack in lacks {
            if tx.find_task(&lack.file.task_id)?.is_some_and(|task| task.tenant.as_ref() == Some(tenant)) {
                unresolved.push(lack);
            }
        }
        lacks = unresolved;
    }
    line(out, &json!({ "end": counts, "files": files }))?;
    out.flush().map_err(|error| failed(EXPORT, error))?;
    Ok(Exported { rows: counts, files, lacks })
}

/// Imports an export into an empty board. The data of a host is left out: user ids of workers, and tokens of runs.
///
/// Files are stored before the rows are committed, so a failed import leaves files without rows. The caller prevents
/// sweeps until the end, and sweeps after a failure.
pub(crate) fn import(tx: &Tx<'_>, blobs: &Blobs, lines: &mut dyn BufRead) -> Result<Imported, Error> {
    require_empty(tx)?;
    tx.import_rows(|| import_lines(tx, blobs, lines))
}

fn import_lines(tx: &Tx<'_>, blobs: &Blobs, lines: &mut dyn BufRead) -> Result<Imported, Error> {
    tx.defer_references()?;
    let schemas: BTreeMap<String, Vec<String>> = tx.tables()?.into_iter().collect();
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
        match serde_json::from_str::<ExportLine>(&text).map_err(|error| unreadable(number, &error))? {
            ExportLine::End { end: announced, files } => end = Some((announced, files)),
            ExportLine::File { file } => incoming.take(tx, &file).map_err(|why| refused(number, why))?,
            ExportLine::Row { table, row } => {
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
    let Some((mut announced, announced_files)) = end else {
        return Err(wrong(number, "the last line is missing: the file was cut off"));
    };
    // A table that only one of the two programs knows has no rows.
    announced.retain(|_, count| *count > 0);
    // Both programs may have tables that the other lacks, so only the counts of tables with rows are compared.
    if !announced.iter().eq(counts.iter().filter(|(_, count)| **count > 0)) {
        return Err(wrong(number, "its counts are not those of the rows"));
    }
    let files = incoming.end().map_err(|why| refused(number, why))?;
    if files != announced_files {
        return Err(wrong(number, "its count is not that of the files"));
    }
    tx.forget_host()?;
    refuse_orphans(tx)?;
    Ok(Imported { rows: counts, files, details })
}

/// Refuses a board that has any content.
pub(super) fn require_empty(tx: &Tx<'_>) -> Result<(), Error> {
    if !tx.is_empty()? {
        return Err(Error::conflict(
            "the board is not empty",
            "import into a new one: supervisor --board <name> import …",
        ));
    }
    Ok(())
}

/// Refuses rows that refer to missing rows.
pub(super) fn refuse_orphans(tx: &Tx<'_>) -> Result<(), Error> {
    let orphans = tx.count_orphans()?;
    if orphans > 0 {
        return Err(Error::invalid(
            "file",
            format!("{} without another one that it refers to", Counted(orphans, "row")),
            "export the board again",
        ));
    }
    Ok(())
}

/// Verifies the header. Returns the details for human readers.
fn check_header(text: &str) -> Result<Option<Value>, Error> {
    let header: Header = serde_json::from_str(text)
        .map_err(|error| wrong(1, format!("this is not an exported board: {error}")))?;
    if header.format != FORMAT {
        return Err(wrong(1, format!("the format is {:?}, not {FORMAT:?}", header.format)));
    }
    if header.version < VERSION {
        return Err(wrong(1, "its format is older than 0.1.0, which this program does not read"));
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
        let cell = from_json(value).ok_or_else(|| format!("{table}.{name} has no value of a column"))?;
        if let Some(why) = unfit_to_import(table, &name, &cell) {
            return Err(format!("{table}.{name} {why}"));
        }
        values.push(cell);
        names.push(name);
    }
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    tx.insert_row(table, &names, &values).map_err(|error| {
        let why =
            if let Error::Storage { source, .. } = &error { source.to_string() } else { error.to_string() };
        format!("{table}: {why}")
    })
}

fn to_json(cell: Cell) -> Value {
    match cell {
        Cell::Null => Value::Null,
        Cell::Integer(number) => number.into(),
        Cell::Real(number) => number.into(),
        Cell::Text(text) => text.into(),
        Cell::Blob(bytes) => json!({ "hex": hex::encode(bytes) }),
    }
}

fn from_json(value: Value) -> Option<Cell> {
    Some(match value {
        Value::Null => Cell::Null,
        Value::Number(number) => match number.as_i64() {
            Some(whole) => Cell::Integer(whole),
            None => Cell::Real(number.as_f64()?),
        },
        Value::String(text) => Cell::Text(text),
        Value::Object(object) => Cell::Blob(hex::decode(object.get("hex")?.as_str()?).ok()?),
        Value::Bool(_) | Value::Array(_) => return None,
    })
}

fn line(out: &mut dyn Write, value: &impl Serialize) -> Result<(), Error> {
    serde_json::to_writer(&mut *out, value)
        .map_err(std::io::Error::from)
        .and_then(|()| out.write_all(b"\n"))
        .map_err(|error| failed(EXPORT, error))
}

fn failed(step: &'static str, error: std::io::Error) -> Error {
    Error::Storage { kind: error.kind().into(), step, source: Arc::new(error) }
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
