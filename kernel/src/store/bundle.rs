//! What a board has beside its database, in the file of a backup: the bytes of attached files, and what people say of it.
//!
//! It is in tables that only copies have: they are made in a copy that nobody else knows yet, and gone from a board
//! before it is put in place.

use std::collections::BTreeMap;
use std::path::Path;

use rusqlite::{Connection, OptionalExtension as _};

use super::open::{self, OpenError, sqlite};
use super::{attachments, backup};
use crate::blobs::{BlobError, Blobs, Flaw, Lack};
use crate::model::id::Digest;

const TABLES: &str = "
    CREATE TABLE bundled_files (sha256 TEXT PRIMARY KEY, bytes BLOB NOT NULL) STRICT;
    CREATE TABLE bundled_details (only INTEGER PRIMARY KEY CHECK (only = 1), details TEXT NOT NULL) STRICT;";
const NO_TABLES: &str = "DROP TABLE IF EXISTS bundled_files; DROP TABLE IF EXISTS bundled_details;";

/// Whether a table is one of a copy's and none of a board's.
pub(super) fn is_of_copy(table: &str) -> bool {
    matches!(table, "bundled_files" | "bundled_details")
}

/// Puts everything into a copy. Returns how many files are in it, and which attachments it has no bytes for.
pub(super) fn pack(copy: &Path, blobs: &Blobs, details: &str) -> Result<(u64, Vec<Lack>), OpenError> {
    let fail = |error| sqlite("put the files into", copy, error);
    let mut conn = open::foreign_writer(copy)?;
    // Until it has its name nobody minds if it is lost, and then it is synced as a whole.
    conn.pragma_update(None, "synchronous", "OFF").map_err(fail)?;
    let transaction = conn.transaction().map_err(fail)?;
    transaction.execute_batch(NO_TABLES).and_then(|()| transaction.execute_batch(TABLES)).map_err(fail)?;
    transaction
        .execute("INSERT INTO bundled_details (only, details) VALUES (1, ?1)", [details])
        .map_err(fail)?;
    let mut flaws = BTreeMap::new();
    let mut files = 0;
    for digest in attachments::digests(&transaction).map_err(|e| backup::unreadable(copy, &e))? {
        match blobs.read(&digest).map_err(|e| unkept(blobs, e))? {
            Ok(bytes) => {
                transaction
                    .execute("INSERT INTO bundled_files (sha256, bytes) VALUES (?1, ?2)", (&digest, bytes))
                    .map_err(fail)?;
                files += 1;
            }
            Err(flaw) => drop(flaws.insert(digest, flaw)),
        }
    }
    let lacks = lacking(&transaction, &flaws).map_err(|e| backup::unreadable(copy, &e))?;
    transaction.commit().map_err(fail)?;
    conn.close().map_err(|(_, error)| fail(error))?;
    Ok((files, lacks))
}

/// Stores the files of a copy and takes what is no board's out of it. Returns what people say of the board; none in
/// copies that carry nothing. A file that is not what its name promises is left out: its attachment lacks it then.
pub(super) fn unpack(copy: &Path, blobs: &Blobs) -> Result<Option<String>, OpenError> {
    let fail = |error| sqlite("take the files out of", copy, error);
    let conn = open::foreign_writer(copy)?;
    let bundled: bool = conn
        .query_row("SELECT count(*) = 2 FROM sqlite_schema WHERE name LIKE 'bundled\\_%' ESCAPE '\\' AND type = 'table'", [], |row| {
            row.get(0)
        })
        .map_err(fail)?;
    if !bundled {
        return Ok(None);
    }
    let details = conn
        .query_row("SELECT details FROM bundled_details", [], |row| row.get(0))
        .optional()
        .map_err(fail)?;
    let _unswept = blobs.private().and_then(|_| blobs.unswept()).map_err(|e| unkept(blobs, e))?;
    for digest in attachments::digests(&conn).map_err(|e| backup::unreadable(copy, &e))? {
        let bytes: Option<Vec<u8>> = conn
            .query_row("SELECT bytes FROM bundled_files WHERE sha256 = ?1", [&digest], |row| row.get(0))
            .optional()
            .map_err(fail)?;
        if let Some(bytes) = bytes {
            put_back(blobs, &digest, &bytes).map_err(|e| unkept(blobs, e))?;
        }
    }
    // The second statement gives back the room that the files had.
    conn.execute_batch(NO_TABLES).and_then(|()| conn.execute_batch("VACUUM")).map_err(fail)?;
    conn.close().map_err(|(_, error)| fail(error))?;
    Ok(details)
}

fn put_back(blobs: &Blobs, digest: &Digest, bytes: &[u8]) -> Result<(), BlobError> {
    if blobs.examine(digest).is_ok_and(|flaw| flaw.is_none()) {
        return Ok(());
    }
    let mut draft = blobs.draft()?;
    match draft.write(bytes) {
        Ok(()) if draft.digest() == *digest => draft.publish().map(drop),
        Ok(()) | Err(BlobError::TooLarge) => Ok(()),
        Err(error) => Err(error),
    }
}

/// The attachments whose bytes have a flaw.
pub(super) fn lacking(
    conn: &Connection,
    flaws: &BTreeMap<Digest, Flaw>,
) -> Result<Vec<Lack>, crate::model::error::Error> {
    if flaws.is_empty() {
        return Ok(Vec::new());
    }
    let all = attachments::all(conn)?.into_iter();
    Ok(all.filter_map(|file| flaws.get(&file.sha256).map(|flaw| Lack { flaw: *flaw, file })).collect())
}

pub(super) fn unkept(blobs: &Blobs, error: BlobError) -> OpenError {
    match error {
        BlobError::Io { step, path, source } => OpenError::Io { step, path, source },
        other @ (BlobError::TooLarge | BlobError::Source(_)) => OpenError::Io {
            step: "keep a file in",
            path: blobs.directory().to_owned(),
            source: std::io::Error::other(other),
        },
    }
}
