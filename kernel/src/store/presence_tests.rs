//! Files of a board that are removed, replaced or cut off while it is open.

use std::fs;

use crate::testing::{Bench, alice, titled};
use crate::{Error, ErrorCode, StorageKind, SystemClock, SystemEntropy, create_board};

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

/// Overwrites a file, which stays the same file.
fn overwrite(path: &std::path::Path, bytes: &[u8]) {
    let file = fs::OpenOptions::new().write(true).open(path).unwrap();
    // The clock of a file system may stand still for a few milliseconds.
    let before = fs::metadata(path).unwrap().modified().unwrap();
    std::os::unix::fs::FileExt::write_all_at(&file, bytes, 0).unwrap();
    file.set_modified(before + std::time::Duration::from_secs(1)).unwrap();
}

#[test]
fn nothing_is_acknowledged_by_a_file_that_was_overwritten_until_it_is_put_back() {
    let bench = Bench::new();
    create(&bench).unwrap();
    let own = fs::read(&bench.path).unwrap();
    overwrite(&bench.path, &vec![7; own.len()]);
    assert!(bench.writer.require_own().is_ok(), "nobody has looked");
    for _ in 0..2 {
        let error = create(&bench).unwrap_err();
        assert!(error.to_string().contains("board.db was overwritten by something else"), "{error}");
        assert_eq!(error.code(), ErrorCode::Unavailable);
        assert!(bench.writer.require_own().is_err());
    }
    overwrite(&bench.path, &own);
    create(&bench).unwrap();
    assert!(bench.writer.require_own().is_ok());
}

#[test]
fn another_board_in_the_same_file_is_noticed_and_a_file_that_only_looks_written_is_not() {
    let bench = Bench::new();
    let elsewhere = tempfile::tempdir().unwrap();
    let other = elsewhere.path().join("board.db");
    create_board(&other, &"default".parse().unwrap(), &SystemClock, &SystemEntropy).unwrap();
    create(&bench).unwrap();
    overwrite(&bench.path, &[]);
    create(&bench).unwrap();
    overwrite(&bench.path, &fs::read(&other).unwrap());
    assert!(create(&bench).unwrap_err().to_string().contains("overwritten"));
}

#[test]
fn nothing_is_acknowledged_into_a_log_that_was_removed() {
    let bench = Bench::new();
    create(&bench).unwrap();
    fs::remove_file(bench.path.with_extension("db-wal")).unwrap();
    assert!(refused(&bench).contains("board.db-wal was removed"));
}
