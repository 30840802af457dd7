//! Boards that are copied while in use, restored, damaged and repaired.

use std::fs;
use std::os::unix::fs::{FileExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use crate::testing::{Bench, alice, titled};
use crate::{
    Depth, Existing, NewTask, OpenError, Readers, Repair, RestoreTerms, RunId, Timestamp, UnfitRows, Writer,
    WriterOptions, backup_board, check_board, repair_board, require_whole, restore_board,
};

const NOW: Timestamp = Timestamp::from_micros(1_800_000_000_000_000);

fn titles(path: &Path) -> Vec<String> {
    let readers = Readers::open(path, std::sync::Arc::new(crate::SystemClock)).unwrap();
    let page =
        readers.with(|view| view.tasks(&crate::Filter { limit: 1000, ..crate::Filter::default() })).unwrap();
    page.tasks.into_iter().map(|task| task.title).collect()
}

/// Closes a bench and keeps its directory. The board is a single file then.
fn close(bench: Bench) -> (tempfile::TempDir, PathBuf) {
    let Bench { directory, path, writer, readers, .. } = bench;
    drop((writer, readers));
    rusqlite::Connection::open(&path).unwrap().pragma_update(None, "journal_mode", "DELETE").unwrap();
    (directory, path)
}

#[test]
fn a_backup_of_a_board_in_use_has_all_that_was_acknowledged_before_it() {
    let bench = Bench::new();
    let to = bench.directory.path().join("copy.db");
    let writer = bench.writer.clone();
    let (acknowledged, first) = std::sync::mpsc::channel();
    let busy = std::thread::spawn(move || {
        for at in 0..200 {
            writer.call(move |board| board.create(titled(&format!("n{at}")), &alice())).unwrap();
            acknowledged.send(at).ok();
        }
    });
    let before = first.iter().take(20).count();

    backup_board(&bench.path, &to, Existing::Keep, "{}").unwrap();

    busy.join().unwrap();
    assert!(titles(&to).len() >= before);
    assert_eq!(check_board(&to).unwrap(), Vec::<String>::new());
    assert_eq!(fs::metadata(&to).unwrap().permissions().mode() & 0o777, 0o600);
    let left: Vec<_> = fs::read_dir(bench.directory.path())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name.contains(".new-"))
        .collect();
    assert_eq!(left, Vec::<String>::new());
}

#[test]
fn a_backup_replaces_a_file_only_when_told() {
    let bench = Bench::new();
    let to = bench.directory.path().join("copy.db");
    fs::write(&to, "mine").unwrap();

    let error = backup_board(&bench.path, &to, Existing::Keep, "{}").unwrap_err();

    assert!(matches!(error, OpenError::Exists { .. }), "{error}");
    assert_eq!(fs::read(&to).unwrap(), b"mine");
    backup_board(&bench.path, &to, Existing::Replace, "{}").unwrap();
    assert_eq!(check_board(&to).unwrap(), Vec::<String>::new());
}

#[test]
fn a_restored_board_is_the_backup_and_never_gives_out_a_run_number_again() {
    let bench = Bench::new();
    let task = bench.ready();
    let to = bench.directory.path().join("copy.db");
    backup_board(&bench.path, &to, Existing::Keep, "{}").unwrap();
    let later = bench.start(&task);
    bench.create(titled("after the backup"));
    let (_directory, path) = close(bench);

    let restored = restore_board(&path, &to, &terms(41), &|_| ()).unwrap();

    assert_eq!(titles(&path), ["work"]);
    let replaced = restored.replaced.unwrap();
    assert_eq!(titles(&replaced).len(), 2, "what was replaced is still whole");
    let writer = Writer::open(&path, WriterOptions::default()).unwrap();
    let run = writer
        .call(move |board| {
            board.claim(&task, &crate::ClaimTerms::lasting(std::time::Duration::from_mins(1)), &alice())
        })
        .unwrap()
        .run
        .id;
    assert!(run.get() > 41 && run > later, "{run}");
}

#[test]
fn at_no_moment_of_a_restore_is_the_place_of_a_board_empty() {
    let bench = Bench::new();
    bench.ready();
    let to = bench.directory.path().join("copy.db");
    backup_board(&bench.path, &to, Existing::Keep, "{}").unwrap();
    bench.create(titled("in the log only"));
    // The files that a killed program leaves.
    let left = tempfile::tempdir().unwrap();
    let path = left.path().join("board.db");
    for end in ["", "-wal"] {
        let name = format!("board.db{end}");
        fs::copy(bench.directory.path().join(&name), left.path().join(&name)).unwrap();
    }
    let seen = std::cell::RefCell::new(Vec::new());
    let look = |point| {
        // Opening the board elsewhere would move the log into the file.
        let file = left.path().join(format!("{point}.db"));
        fs::copy(&path, &file).unwrap();
        fs::copy(left.path().join("board.db-wal"), left.path().join(format!("{point}.db-wal"))).ok();
        seen.borrow_mut().push((point, titles(&file).len()));
    };

    let restored = restore_board(&path, &to, &terms(0), &look).unwrap();

    let expected = [("restore-copied", 2), ("restore-files", 2), ("restore-kept", 2), ("restore-placed", 1)];
    assert_eq!(*seen.borrow(), expected);
    assert_eq!(titles(&restored.replaced.unwrap()).len(), 2);
}

#[test]
fn a_file_of_a_backup_that_was_altered_in_it_is_not_stored() {
    let bench = Bench::new();
    let task = bench.ready();
    let stored = crate::Blobs::of_board(&bench.path).store(&mut &b"abc"[..]).unwrap();
    let file = crate::NewAttachment {
        filename: "a".to_owned(),
        content_type: None,
        sha256: stored.digest.clone(),
        size: 3,
        author: None,
    };
    bench.call(move |board| board.attach(&task, &file, &alice())).unwrap();
    let to = bench.directory.path().join("copy.db");
    let made = backup_board(&bench.path, &to, Existing::Keep, "{}").unwrap();
    assert_eq!((made.files, made.lacks), (1, Vec::new()));
    for (change, flaw) in [("bytes = x'ff'", Some(crate::Flaw::Missing)), ("bytes = x'616263'", None)] {
        let conn = rusqlite::Connection::open(&to).unwrap();
        conn.execute(&format!("UPDATE bundled_files SET {change}"), []).unwrap();
        drop(conn);
        let other = tempfile::tempdir().unwrap();
        let path = other.path().join("board.db");
        let restored = restore_board(&path, &to, &terms(0), &|_| ()).unwrap();
        assert_eq!(restored.details.as_deref(), Some("{}"));
        assert_eq!(crate::Blobs::of_board(&path).examine(&stored.digest).unwrap(), flaw, "{change}");
    }
    // A backup from before backups had files.
    let conn = rusqlite::Connection::open(&to).unwrap();
    conn.execute_batch("DROP TABLE bundled_files; DROP TABLE bundled_details").unwrap();
    drop(conn);
    let other = tempfile::tempdir().unwrap();
    let restored = restore_board(&other.path().join("board.db"), &to, &terms(0), &|_| ()).unwrap();
    assert_eq!(restored.details, None);
}

#[test]
fn a_restore_of_something_else_leaves_the_board_alone() {
    let bench = Bench::new();
    bench.ready();
    let bad = bench.directory.path().join("bad.db");
    fs::write(&bad, vec![b'x'; 8192]).unwrap();
    let (_directory, path) = close(bench);
    let before = fs::read(&path).unwrap();

    for (from, text) in [(bad.clone(), "damaged"), (bad.with_file_name("none.db"), "missing")] {
        let error = restore_board(&path, &from, &terms(0), &|_| ()).unwrap_err();
        assert!(error.to_string().contains(text), "{error}");
    }

    assert_eq!(fs::read(&path).unwrap(), before);
}

/// Trigger that gives every later task another policy, and view that never ends.
const FOREIGN: [&str; 3] = [
    "CREATE TRIGGER wide AFTER INSERT ON tasks BEGIN UPDATE tasks SET policy = 'unconfined' WHERE id = new.id; END",
    "DROP TABLE spend; CREATE VIEW spend AS WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x FROM n) SELECT x FROM n",
    "DROP TABLE bundled_files; \
     CREATE VIEW bundled_files AS WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x FROM n) SELECT x AS sha256, x AS bytes FROM n",
];

#[test]
fn a_backup_with_an_object_of_another_maker_is_refused_at_once_and_the_board_stays() {
    let bench = Bench::new();
    bench.ready();
    let copies = FOREIGN.map(|change| {
        let to = bench.directory.path().join("copy.db");
        backup_board(&bench.path, &to, Existing::Replace, "{}").unwrap();
        rusqlite::Connection::open(&to).unwrap().execute_batch(change).unwrap();
        let kept = bench.directory.path().join(format!("{}.db", change.len()));
        fs::rename(&to, &kept).unwrap();
        kept
    });
    let (_directory, path) = close(bench);
    let before = fs::read(&path).unwrap();

    for (copy, named) in copies.iter().zip(["trigger `wide`", "view `spend`", "view `bundled_files`"]) {
        let error = restore_board(&path, copy, &terms(0), &|_| ()).unwrap_err();
        assert!(
            matches!(&error, OpenError::Foreign { difference, .. } if difference.contains(named)),
            "{error}"
        );
    }

    assert_eq!(fs::read(&path).unwrap(), before);
}

/// Conditions of a restoration beside runs with numbers up to this one.
fn terms(runs: i64) -> RestoreTerms<'static> {
    RestoreTerms { runs: RunId(runs), now: NOW, workspace: &|_| None, unfit: UnfitRows::Refused }
}

/// Changes of rows that the schema allows, each with a part of its report.
const UNFIT: [(&str, &str); 9] = [
    ("UPDATE tasks SET created_at = -1", "created_at is no time of the years 1970 to 9999"),
    ("UPDATE tasks SET not_before = 253402300800000000", "not_before is no time"),
    ("UPDATE task_events SET task_id = '../x'", "task_id is no id of a task"),
    ("UPDATE task_runs SET nonce = '='", "nonce is no random mark"),
    ("UPDATE tasks SET workspace = '='", "no such workspace"),
    ("UPDATE tasks SET skills = '{}'", "tasks t_"),
    ("UPDATE tasks SET assignee = '../x'", "tasks t_"),
    ("UPDATE sqlite_sequence SET seq = 'x' WHERE name = 'task_events'", "seq is no key of a row"),
    ("INSERT INTO plugin_cursors (plugin, event_id) VALUES ('../p', 1)", "plugin_cursors ../p"),
];

#[test]
fn a_backup_with_rows_that_no_board_has_is_refused_with_their_names_and_the_board_stays() {
    let bench = Bench::new();
    let task = bench.ready();
    bench.start(&task);
    let copies = UNFIT.iter().enumerate().map(|(at, (change, _))| {
        let to = bench.directory.path().join(format!("copy-{at}.db"));
        backup_board(&bench.path, &to, Existing::Keep, "{}").unwrap();
        rusqlite::Connection::open(&to).unwrap().execute_batch(change).unwrap();
        to
    });
    let copies: Vec<_> = copies.collect();
    let (_directory, path) = close(bench);
    let before = fs::read(&path).unwrap();
    let rule = |text: &str| (text != "scratch").then(|| "no such workspace".to_owned());

    for ((change, named), copy) in UNFIT.iter().zip(&copies) {
        let error =
            restore_board(&path, copy, &RestoreTerms { workspace: &rule, ..terms(0) }, &|_| ()).unwrap_err();
        assert!(
            matches!(&error, OpenError::Unfit { rows, .. } if rows.iter().any(|row| row.contains(named))),
            "{change}: {error}"
        );
        assert!(!crate::unfit_rows(copy, &rule).unwrap().is_empty(), "{change}");
    }

    assert_eq!(fs::read(&path).unwrap(), before);
    assert_eq!(crate::unfit_rows(&path, &rule).unwrap(), Vec::<String>::new());
    let kept = RestoreTerms { workspace: &rule, unfit: UnfitRows::Kept, ..terms(0) };
    let restored = restore_board(&path, &copies[0], &kept, &|_| ()).unwrap();
    assert!(restored.unfit.iter().any(|row| row.contains(UNFIT[0].1)), "{:?}", restored.unfit);
}

#[test]
fn a_backup_with_a_number_that_is_text_is_refused() {
    let bench = Bench::new();
    bench.ready();
    let to = bench.directory.path().join("copy.db");
    backup_board(&bench.path, &to, Existing::Keep, "{}").unwrap();
    let define = |text: &str| {
        format!(
            "PRAGMA writable_schema = ON; UPDATE sqlite_schema SET sql = {text} WHERE name = 'tasks'; \
             PRAGMA writable_schema = RESET;"
        )
    };
    let loose = define("replace(sql, ') STRICT', ')')");
    let strict = define("sql || ' STRICT'");
    for change in [&loose, "UPDATE tasks SET priority = 'high'", &strict] {
        let conn = rusqlite::Connection::open(&to).unwrap();
        conn.execute_batch(change).unwrap();
    }
    let (_directory, path) = close(bench);

    let error = restore_board(&path, &to, &terms(0), &|_| ()).unwrap_err();

    assert!(error.to_string().contains("tasks.priority"), "{error}");
}

#[test]
fn a_board_with_an_object_of_another_maker_is_not_sound_and_a_repair_leaves_it_out() {
    let bench = Bench::new();
    bench.ready();
    let (_directory, path) = close(bench);
    rusqlite::Connection::open(&path).unwrap().execute_batch(FOREIGN[0]).unwrap();

    let faults = check_board(&path).unwrap();

    assert!(faults.len() == 1 && faults[0].contains("trigger `wide`"), "{faults:?}");
    let repaired = repair_board(&path, &"test".parse().unwrap(), NOW).unwrap();
    assert!(matches!(repaired, Repair::Rebuilt { ref losses, .. } if losses.is_empty()), "{repaired:?}");
    assert_eq!(check_board(&path).unwrap(), Vec::<String>::new());
    assert_eq!(titles(&path), ["work"]);
}

#[test]
fn a_missing_board_is_restored_too() {
    let bench = Bench::new();
    bench.ready();
    let to = bench.directory.path().join("copy.db");
    backup_board(&bench.path, &to, Existing::Keep, "{}").unwrap();
    let (_directory, path) = close(bench);
    fs::remove_file(&path).unwrap();

    let restored = restore_board(&path, &to, &terms(0), &|_| ()).unwrap();

    assert_eq!(restored.replaced, None);
    assert_eq!(titles(&path), ["work"]);
}

#[test]
fn a_damaged_index_is_made_anew_and_the_damaged_file_kept() {
    let bench = Bench::new();
    bench.ready();
    let (_directory, path) = close(bench);
    // The index is filled under another definition, which then goes back.
    let execute = |text: &str| rusqlite::Connection::open(&path).unwrap().execute_batch(text).unwrap();
    let define = |from: &str, to: &str| {
        execute(&format!(
            "PRAGMA writable_schema = ON; \
             UPDATE sqlite_schema SET sql = replace(sql, '{from}', '{to}') WHERE name = 'tasks_session'"
        ));
    };
    execute("UPDATE tasks SET session_id = 's'");
    define("IS NOT NULL", "IS NULL");
    execute("REINDEX tasks_session");
    define("IS NULL", "IS NOT NULL");
    let error = require_whole(&path, Depth::Structure).unwrap_err();
    assert!(matches!(error, OpenError::Corrupt { .. }), "{error}");
    assert!(error.hint().unwrap().contains("doctor --repair"));

    let repair = repair_board(&path, &"test".parse().unwrap(), NOW).unwrap();

    let Repair::Reindexed { evidence } = repair else { panic!("{repair:?}") };
    require_whole(&path, Depth::Structure).unwrap();
    require_whole(&evidence, Depth::Structure).unwrap_err();
    assert_eq!(repair_board(&path, &"test".parse().unwrap(), NOW).unwrap(), Repair::Whole);
}

#[test]
fn wrong_counts_of_tasks_are_found_and_counted_anew() {
    let bench = Bench::new();
    bench.ready();
    let (_directory, path) = close(bench);
    rusqlite::Connection::open(&path).unwrap().execute("UPDATE task_counts SET tasks = 7", []).unwrap();
    assert_eq!(check_board(&path).unwrap(), ["wrong: 2 counts of the tasks"]);

    let repair = repair_board(&path, &"test".parse().unwrap(), NOW).unwrap();

    assert!(matches!(repair, Repair::Reindexed { .. }), "{repair:?}");
    require_whole(&path, Depth::Structure).unwrap();
}

#[test]
fn a_rebuilt_board_gives_no_id_out_again_whose_row_is_gone() {
    let bench = Bench::new();
    let (bad, gone) = (bench.ready(), bench.ready());
    bench
        .call(move |board| {
            board.complete(&gone, crate::Handoff::default(), None, &alice())?;
            board.archive(&gone, crate::Detach::Refuse, &alice())?;
            board.delete(&gone, &alice())?;
            board.fold_events(Timestamp::from_micros(i64::MAX), 100)
        })
        .unwrap();
    let (_directory, path) = close(bench);
    let conn = rusqlite::Connection::open(&path).unwrap();
    conn.pragma_update(None, "ignore_check_constraints", true).unwrap();
    conn.execute("UPDATE tasks SET skills = '{' WHERE id = ?1", [bad.as_str()]).unwrap();
    let given = super::sequence::all(&conn).unwrap();
    assert!(given["task_runs"] > 0 && given["task_events"] > 0, "{given:?}");
    drop(conn);

    let repair = repair_board(&path, &"test".parse().unwrap(), NOW).unwrap();

    assert!(matches!(repair, Repair::Rebuilt { .. }), "{repair:?}");
    let conn = rusqlite::Connection::open(&path).unwrap();
    assert_eq!(super::sequence::all(&conn).unwrap(), given);
}

#[test]
fn a_value_that_makes_no_sense_is_found_and_its_row_is_left_out_and_told() {
    let bench = Bench::new();
    let bad = bench.ready();
    bench.create(titled("good"));
    let (_directory, path) = close(bench);
    let conn = rusqlite::Connection::open(&path).unwrap();
    conn.pragma_update(None, "ignore_check_constraints", true).unwrap();
    conn.execute("UPDATE tasks SET skills = '{' WHERE id = ?1", [bad.as_str()]).unwrap();
    drop(conn);
    let before = fs::read(&path).unwrap();
    let error = require_whole(&path, Depth::Values).unwrap_err();
    assert!(error.to_string().contains("CHECK constraint failed in tasks"), "{error}");
    assert_eq!(fs::read(&path).unwrap(), before, "a look changes nothing");

    let repair = repair_board(&path, &"test".parse().unwrap(), NOW).unwrap();

    let Repair::Rebuilt { losses, .. } = repair else { panic!("{repair:?}") };
    assert!(losses.iter().any(|loss| loss.table == "tasks"), "{losses:?}");
    assert_eq!(titles(&path), ["good"]);
    require_whole(&path, Depth::Values).unwrap();
}

/// Returns a board with enough content for trees of several pages.
fn grown() -> (tempfile::TempDir, PathBuf) {
    let bench = Bench::new();
    for at in 0..12 {
        let body = Some("text ".repeat(300));
        let task = bench.create(NewTask { body, ..titled(&format!("task {at}")) }).id;
        let comment = "words ".repeat(100);
        bench.call(move |board| board.comment(&task, &comment, None, &alice())).unwrap();
    }
    let task = bench.ready();
    bench.start(&task);
    close(bench)
}

#[test]
fn whatever_page_is_damaged_a_board_is_refused_and_then_mended_with_all_that_can_be_read() {
    let (directory, path) = grown();
    let whole = fs::read(&path).unwrap();
    let pages = whole.len() / 4096;
    let mut rebuilt = 0;
    for page in 1..pages {
        for entry in fs::read_dir(directory.path()).unwrap() {
            let entry = entry.unwrap().path();
            if entry.extension().is_none_or(|end| end != "json") {
                fs::remove_file(entry).unwrap();
            }
        }
        fs::write(&path, &whole).unwrap();
        let file = fs::File::options().write(true).open(&path).unwrap();
        file.write_all_at(&[0xa5; 4096], u64::try_from(page * 4096).unwrap()).unwrap();
        drop(file);
        if require_whole(&path, Depth::Structure).is_ok() {
            // A free page.
            continue;
        }
        let repair = repair_board(&path, &"test".parse().unwrap(), NOW).unwrap();
        require_whole(&path, Depth::Structure).unwrap();
        let evidence = match repair {
            Repair::Whole => panic!("page {page} is damaged"),
            Repair::Reindexed { evidence } => evidence,
            Repair::Rebuilt { evidence, .. } => {
                rebuilt += 1;
                evidence
            }
        };
        assert_eq!(fs::read(&evidence).unwrap()[page * 4096], 0xa5);
        let writer = Writer::open(&path, WriterOptions::default()).unwrap();
        writer.call(|board| board.create(titled("after"), &alice())).unwrap();
    }
    assert!(rebuilt > 5, "{rebuilt} of {pages} pages");
}

#[test]
fn of_a_file_without_a_header_nothing_is_mended_and_nothing_lost() {
    let (_directory, path) = grown();
    let file = fs::File::options().write(true).open(&path).unwrap();
    file.write_all_at(&[0; 100], 0).unwrap();
    drop(file);
    let before = fs::read(&path).unwrap();

    let error = repair_board(&path, &"test".parse().unwrap(), NOW).unwrap_err();

    assert!(matches!(error, OpenError::Corrupt { .. }), "{error}");
    assert_eq!(fs::read(&path).unwrap(), before);
}
