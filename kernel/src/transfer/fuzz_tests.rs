//! Fuzzed imports: changed exports, and changed boards of Hermes Kanban.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write as _;

use serde_json::Value;

use super::peer::PeerBoard;
use crate::board::Board;
use crate::model::cell::Cell;
use crate::model::clock::ManualClock;
use crate::model::entropy::SeededEntropy;
use crate::model::quota::Quotas;
use crate::store::foreign::Foreign;
use crate::store::tx::Database;
use crate::testing::{Bench, alice, titled};
use crate::{Adopted, Blobs, EndCause, Error, NewTask, create_board};

/// Board that stays empty.
struct Empty {
    directory: tempfile::TempDir,
    database: Database,
    blobs: Blobs,
}

impl Empty {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("board.db");
        let (clock, entropy) = (ManualClock::default(), SeededEntropy::new(7));
        create_board(&path, &"fuzz".parse().unwrap(), &clock, &entropy).unwrap();
        let database = Database::writer(&path).unwrap();
        Empty { directory, database, blobs: Blobs::of_board(&path) }
    }

    /// Runs a job and undoes its writes.
    fn with<T>(&self, job: impl FnOnce(&mut Board<'_>) -> Result<T, Error>) -> Result<T, Error> {
        let (clock, entropy) = (ManualClock::default(), SeededEntropy::new(7));
        let tx = self.database.write()?;
        let done = job(&mut Board::new(&tx, &clock, &entropy, Quotas::default().into()));
        tx.roll_back()?;
        done
    }

    /// Returns the export of an imported board.
    fn imported(&self, mut lines: &[u8]) -> Result<Vec<u8>, Error> {
        self.with(|board| {
            board.import(&mut lines, &self.blobs, &alice())?;
            let mut out = Vec::new();
            board.export(&self.blobs, None, &mut out)?;
            Ok(out)
        })
    }

    /// Imports a board of Hermes Kanban, and asserts that the result can be exported and imported again.
    fn adopted(&self, peer: &PeerBoard) -> Result<Adopted, Error> {
        let mut lines = Vec::new();
        let adopted = self.with(|board| {
            let adopted = board.adopt(peer, &BTreeMap::new(), &alice())?;
            board.export(&self.blobs, None, &mut lines)?;
            Ok(adopted)
        })?;
        self.imported(&lines).expect("what was adopted is refused");
        Ok(adopted)
    }
}

/// Returns the export of a board with some history.
fn exported() -> String {
    let bench = Bench::new();
    let parent = bench.create(NewTask { body: Some("a \"body\" – ü".to_owned()), ..titled("parent") }).id;
    bench.child_of(&[&parent]);
    let run = bench.start(&parent);
    bench.finish(run, EndCause::Exited { code: 1 });
    let id = parent.clone();
    bench.call(move |board| board.comment(&id, "a word", None, &alice())).unwrap();
    bench.start(&parent);
    bench.dump()
}

#[test]
fn an_export_that_is_taken_is_the_same_when_it_is_written_out_and_taken_again() {
    let empty = Empty::new();
    fuzz::Target::new("export", fuzz::Shape::Lines).seed(exported()).check(|input| {
        match empty.imported(input) {
            Err(error) => error.to_string(),
            Ok(first) => {
                let again = empty.imported(&first).expect("what was taken is refused");
                assert_eq!(String::from_utf8_lossy(&again), String::from_utf8_lossy(&first));
                "taken".to_owned()
            }
        }
    });
}

#[test]
fn a_database_of_the_established_program_is_read_or_refused() {
    let empty = Empty::new();
    let (database, scratch) =
        (empty.directory.path().join("kanban.db"), empty.directory.path().join("scratch"));
    fs::create_dir(&scratch).unwrap();
    let target = fuzz::Target::new("peer-database", fuzz::Shape::Bytes).longest(64 << 10);
    let seed = empty.directory.path().join("seed.db");
    crate::store::adopt_tests::write_peer(&seed);
    target.seed(fs::read(&seed).unwrap()).check(|input| {
        fs::File::create(&database).unwrap().write_all(input).unwrap();
        let peer = match PeerBoard::read(&database, &scratch) {
            Ok(peer) => peer,
            Err(error) => {
                return std::error::Error::source(&error).map_or(error.to_string(), ToString::to_string);
            }
        };
        assert!(peer.files().unwrap().iter().all(|file| !file.filename.contains('/')));
        empty.adopted(&peer).map_or_else(|error| error.to_string(), |adopted| format!("{:?}", adopted.left))
    });
}

/// Returns rows as another program could have stored them: a column takes a value of any type there.
fn peer(value: &Value) -> Option<PeerBoard> {
    let cell = |value: &Value| match value {
        Value::Number(number) => {
            number.as_i64().map_or(Cell::Real(number.as_f64().unwrap_or(0.0)), Cell::Integer)
        }
        Value::String(text) => Cell::Text(text.clone()),
        Value::Array(items) => Cell::Blob(items.iter().map(|_| 7).collect()),
        Value::Null | Value::Bool(_) | Value::Object(_) => Cell::Null,
    };
    let row = |row: &Value| {
        let row = row.as_object()?;
        Some(row.iter().map(|(name, value)| (name.clone(), cell(value))).collect::<BTreeMap<_, _>>())
    };
    let table = |(name, rows): (&String, &Value)| {
        Some((name.clone(), rows.as_array()?.iter().filter_map(row).collect::<Vec<_>>()))
    };
    let tables = value.as_object()?.iter().filter_map(table).collect();
    Foreign::of_rows(&tables, &super::peer::TABLES).ok().map(PeerBoard)
}

#[test]
fn rows_of_the_established_program_are_adopted_or_left_whatever_they_hold() {
    let empty = Empty::new();
    let seed = empty.directory.path().join("seed.db");
    crate::store::adopt_tests::write_peer(&seed);
    let whole = PeerBoard::read(&seed, empty.directory.path()).unwrap();
    fuzz::Target::new("peer-rows", fuzz::Shape::Json).seed(as_json(&whole)).check(|input| {
        let Some(peer) = serde_json::from_slice(input).ok().as_ref().and_then(peer) else {
            return "no rows".to_owned();
        };
        match empty.adopted(&peer) {
            Ok(adopted) => format!("{:?} {:?}", adopted.changed, adopted.left),
            Err(error) => error.to_string(),
        }
    });
}

fn as_json(peer: &PeerBoard) -> String {
    let value = |cell: &Cell| match cell {
        Cell::Integer(number) => Value::from(*number),
        Cell::Real(number) => Value::from(*number),
        Cell::Text(text) => Value::from(text.clone()),
        Cell::Null | Cell::Blob(_) => Value::Null,
    };
    let mut tables = serde_json::Map::new();
    for (table, columns) in peer.0.tables() {
        let mut rows = Vec::new();
        let whole = peer.0.each(
            table,
            |_| true,
            |row| {
                let cells = columns.iter().zip(row.cells());
                rows.push(Value::Object(cells.map(|(name, cell)| (name.clone(), value(cell))).collect()));
                Ok(())
            },
        );
        whole.unwrap();
        tables.insert(table.clone(), rows.into());
    }
    Value::Object(tables).to_string()
}
