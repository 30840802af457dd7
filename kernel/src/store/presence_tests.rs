//! Files of a board that are removed, replaced or cut off while it is open.

use std::fs;

use crate::testing::{Bench, alice, titled};
use crate::{Error, ErrorCode, StorageKind};

fn create(bench: &Bench) -> Result<(), Error> {
    bench.call(|board| board.create(titled("one"), &alice()).map(drop))
}

fn refused(bench: &Bench) -> String {
    let error = create(bench).unwrap_err();
    assert!(matches!(&error, Error::Storage { kind: StorageKind::Displaced, .. }), "{error}");
    assert_eq!(error.code(), ErrorCode::Unavailable);
    assert!(error.hint().unwrap().contains("supervisor restore"));
    assert!(bench.readers.require_present().is_err());
    error.to_string()
}

#[test]
fn nothing_is_acknowledged_without_the_file_and_it_goes_on_when_that_comes_back() {
    let bench = Bench::new();
    create(&bench).unwrap();
    let away = bench.path.with_extension("away");
    fs::rename(&bench.path, &away).unwrap();
    assert!(refused(&bench).contains("board.db was removed while it is in use"));
    fs::rename(&away, &bench.path).unwrap();
    create(&bench).unwrap();
    bench.check();
}

#[test]
fn nothing_is_acknowledged_beside_a_file_that_has_taken_the_place() {
    let bench = Bench::new();
    create(&bench).unwrap();
    let copy = bench.path.with_extension("copy");
    fs::copy(&bench.path, &copy).unwrap();
    fs::rename(&copy, &bench.path).unwrap();
    assert!(refused(&bench).contains("board.db was replaced by another file"));
}

#[test]
fn nothing_is_acknowledged_by_a_file_that_was_cut_off() {
    let bench = Bench::new();
    create(&bench).unwrap();
    fs::OpenOptions::new().write(true).open(&bench.path).unwrap().set_len(0).unwrap();
    assert!(refused(&bench).contains("board.db was cut off"));
}

#[test]
fn nothing_is_acknowledged_into_a_log_that_was_removed() {
    let bench = Bench::new();
    create(&bench).unwrap();
    fs::remove_file(bench.path.with_extension("db-wal")).unwrap();
    assert!(refused(&bench).contains("board.db-wal was removed"));
}
