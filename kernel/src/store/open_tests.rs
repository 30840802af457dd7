//! Boards that are refused when they are opened.

use std::os::unix::fs::PermissionsExt as _;

use crate::testing::Bench;
use crate::{
    ManualClock, OpenError, Readers, SeededEntropy, Writer, WriterOptions, create_board, ensure_board,
};

/// Damages the file of a closed board, and returns the errors of all ways to open it.
fn spoiled(spoil: impl FnOnce(&std::path::Path)) -> Vec<OpenError> {
    let bench = Bench::new();
    bench.ready();
    let Bench { directory, path, clock, writer, readers } = bench;
    drop((writer, readers));
    spoil(&path);
    let entropy = SeededEntropy::new(1);
    let errors = vec![
        Writer::open(&path, WriterOptions::default()).unwrap_err(),
        Readers::open(&path, clock.clone()).unwrap_err(),
        ensure_board(&path, &"test".parse().unwrap(), &*clock, &entropy).unwrap_err(),
    ];
    drop(directory);
    for error in &errors {
        assert!(error.to_string().contains("board.db"), "{error}");
        assert!(error.hint().is_some(), "{error}");
    }
    errors
}

#[test]
fn a_board_that_existed_is_never_replaced() {
    for error in spoiled(|path| std::fs::remove_file(path).unwrap()) {
        assert!(matches!(error, OpenError::Missing { .. }), "{error}");
    }
    for error in spoiled(|path| std::fs::write(path, b"").unwrap()) {
        assert!(matches!(error, OpenError::Empty { .. }), "{error}");
    }
    for error in spoiled(|path| std::fs::write(path, b"SQLite format 3\0").unwrap()) {
        assert!(matches!(error, OpenError::Truncated { .. }), "{error}");
    }
}

#[test]
fn a_damaged_or_foreign_file_is_named() {
    for error in spoiled(|path| std::fs::write(path, vec![b'x'; 8192]).unwrap()) {
        assert!(matches!(error, OpenError::Corrupt { .. }), "{error}");
    }
    let half = |path: &std::path::Path| {
        let bytes = std::fs::read(path).unwrap();
        std::fs::write(path, &bytes[..8192]).unwrap();
    };
    for error in spoiled(half) {
        assert!(matches!(error, OpenError::Corrupt { .. } | OpenError::Truncated { .. }), "{error}");
    }
    let foreign = |path: &std::path::Path| {
        std::fs::remove_file(path).unwrap();
        rusqlite::Connection::open(path).unwrap().execute_batch("CREATE TABLE theirs (x)").unwrap();
    };
    for error in spoiled(foreign) {
        assert!(matches!(error, OpenError::NotABoard { application_id: 0, .. }), "{error}");
    }
    let newer = |path: &std::path::Path| {
        rusqlite::Connection::open(path).unwrap().pragma_update(None, "user_version", 99).unwrap();
    };
    for error in spoiled(newer) {
        assert!(matches!(error, OpenError::NewerSchema { found: 99, .. }), "{error}");
    }
}

/// Gives a board the mark of the boards from before release 0.1.0.
fn unreleased(path: &std::path::Path, schema: i64) {
    let conn = rusqlite::Connection::open(path).unwrap();
    conn.pragma_update(None, "application_id", super::migrate::BEFORE_RELEASES).unwrap();
    conn.pragma_update(None, "user_version", schema).unwrap();
}

#[test]
fn a_board_of_an_older_format_is_refused_whatever_its_schema_and_says_so() {
    for schema in 1..=41 {
        for error in spoiled(|path| unreleased(path, schema)) {
            assert!(matches!(error, OpenError::OlderFormat { .. }), "{error}");
            assert!(error.to_string().contains("a format older than 0.1.0"), "{error}");
        }
    }
}

#[test]
fn a_board_of_an_older_format_is_neither_repaired_nor_restored() {
    let bench = Bench::new();
    bench.ready();
    let Bench { directory, path, writer, readers, .. } = bench;
    drop((writer, readers));
    unreleased(&path, 1);
    let before = std::fs::read(&path).unwrap();
    let now = crate::Timestamp::from_secs(9);

    let error = crate::repair_board(&path, &"test".parse().unwrap(), now).unwrap_err();
    assert!(matches!(error, OpenError::OlderFormat { .. }), "{error}");
    let to = directory.path().join("other").join("board.db");
    std::fs::create_dir(to.parent().unwrap()).unwrap();
    let terms = crate::RestoreTerms {
        runs: crate::RunId(0),
        now,
        workspace: &|_| None,
        unfit: crate::UnfitRows::Refused,
    };
    let error = crate::restore_board(&to, &path, &terms, &|_| ()).unwrap_err();
    assert!(matches!(error, OpenError::OlderFormat { .. }), "{error}");

    assert_eq!(std::fs::read(&path).unwrap(), before);
    assert_eq!(std::fs::read_dir(to.parent().unwrap()).unwrap().count(), 0);
    assert!(
        !std::fs::read_dir(directory.path())
            .unwrap()
            .any(|file| { file.unwrap().file_name().to_string_lossy().contains(".damaged-") })
    );
}

/// Creates a board with the schema of a release, with a task that waits for its directory.
fn of_schema(path: &std::path::Path, schema: usize) {
    let mut conn = rusqlite::Connection::open(path).unwrap();
    super::migrate::migrations().to_version(&mut conn, schema).unwrap();
    conn.pragma_update(None, "application_id", super::migrate::APPLICATION_ID).unwrap();
    let id = crate::BoardId(uuid::Uuid::nil());
    super::identity::insert(&conn, id, &"test".parse().unwrap(), crate::Timestamp::from_secs(1)).unwrap();
    let task = "INSERT INTO tasks (id, title, status, assignee, tenant, workspace, created_at, updated_at) \
                VALUES ('t_00000001', 'x', 'ready', 'a', 'acme', 'dir:/w', 0, 0)";
    conn.execute(task, []).unwrap();
}

#[test]
fn a_board_of_each_schema_is_whole_is_read_when_it_is_migrated_and_until_then_says_how() {
    let (clock, entropy) = (std::sync::Arc::new(ManualClock::default()), SeededEntropy::new(1));
    for schema in 1..=super::migrate::latest() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("board.db");
        of_schema(&path, usize::try_from(schema).unwrap());

        // The daemon does this before it opens the board for writing.
        ensure_board(&path, &"test".parse().unwrap(), &*clock, &entropy).unwrap();
        for depth in [crate::Depth::Structure, crate::Depth::Values] {
            crate::require_whole(&path, depth).unwrap_or_else(|error| panic!("schema {schema}: {error}"));
        }
        if schema < super::migrate::latest() {
            let error = Readers::open(&path, clock.clone()).unwrap_err();
            assert!(matches!(error, OpenError::OlderSchema { found, .. } if found == schema), "{error}");
            assert!(error.hint().unwrap().contains("supervisor daemon"));
        }

        drop(Writer::open(&path, WriterOptions::default()).unwrap());
        assert_eq!(crate::check_board(&path).unwrap(), [""; 0], "schema {schema}");
        let readers = Readers::open(&path, clock.clone()).unwrap();
        assert_eq!(
            readers.with(|view| view.task(&"t_00000001".parse().unwrap())).unwrap().unwrap().title,
            "x"
        );
    }
}

#[test]
fn a_directory_is_no_board_and_no_fault_of_the_disk() {
    for error in spoiled(|path| {
        std::fs::remove_file(path).unwrap();
        std::fs::create_dir(path).unwrap();
    }) {
        assert!(matches!(error, OpenError::NotAFile { .. }), "{error}");
    }
}

#[test]
fn a_root_without_a_board_gets_one_only_its_owner_can_read() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("board.db");
    let (clock, entropy) = (ManualClock::default(), SeededEntropy::new(3));
    let name = "fresh".parse().unwrap();
    let id = ensure_board(&path, &name, &clock, &entropy).unwrap();
    assert_eq!(ensure_board(&path, &name, &clock, &entropy).unwrap(), id);
    assert!(matches!(create_board(&path, &name, &clock, &entropy), Err(OpenError::Exists { .. })));
    let writer = Writer::open(&path, WriterOptions::default()).unwrap();
    writer.call(|board| board.forget_requests(crate::Timestamp::from_secs(0))).unwrap();
    for entry in std::fs::read_dir(directory.path()).unwrap() {
        let entry = entry.unwrap();
        assert_eq!(entry.metadata().unwrap().permissions().mode() & 0o777, 0o600, "{:?}", entry.file_name());
    }
}

#[test]
fn several_processes_that_need_a_new_board_at_once_all_get_it() {
    for _ in 0..20 {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("board.db");
        let name = "fresh".parse().unwrap();
        let all_at_once = std::sync::Barrier::new(8);
        let (path, name, all_at_once) = (&path, &name, &all_at_once);
        let ensure = |seed| {
            let (clock, entropy) = (ManualClock::default(), SeededEntropy::new(seed));
            all_at_once.wait();
            ensure_board(path, name, &clock, &entropy).unwrap()
        };
        let ids: Vec<_> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..8).map(|seed| scope.spawn(move || ensure(seed))).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        assert!(ids.iter().all(|id| *id == ids[0]), "{ids:?}");
        let left = std::fs::read_dir(directory.path()).unwrap().map(|file| file.unwrap().file_name());
        let drafts: Vec<_> = left.filter(|name| name.to_string_lossy().contains("new")).collect();
        assert!(drafts.is_empty(), "{drafts:?}");
    }
}

#[test]
fn a_file_of_another_board_is_noticed() {
    let bench = Bench::new();
    let marker = bench.path.with_file_name("board.json");
    let text = std::fs::read_to_string(&marker).unwrap();
    let other = text.replacen(&text[text.find("board\":\"").unwrap() + 8..][..8], "00000000", 1);
    std::fs::write(&marker, other).unwrap();
    let error = Readers::open(&bench.path, bench.clock.clone()).unwrap_err();
    assert!(matches!(error, OpenError::Mixed { .. }), "{error}");
}

#[test]
fn a_bad_value_in_one_row_is_told_and_the_other_rows_can_be_used() {
    let bench = Bench::new();
    let (bad, good) = (bench.ready(), bench.ready());
    let conn = rusqlite::Connection::open(&bench.path).unwrap();
    conn.pragma_update(None, "ignore_check_constraints", true).unwrap();
    for change in ["created_at = 'yesterday'", "priority = 'high'", "title = NULL"] {
        let refused = conn.execute(&format!("UPDATE tasks SET {change} WHERE id = ?1"), [bad.as_str()]);
        assert!(refused.is_err(), "a value of another type cannot even be stored: {change}");
    }
    // The constraints would also refuse this value.
    conn.execute("UPDATE tasks SET skills = '{' WHERE id = ?1", [bad.as_str()]).unwrap();

    let error = bench.readers.with(|view| view.expect_task(&bad)).unwrap_err();

    assert!(matches!(error, crate::Error::Storage { kind: crate::StorageKind::Corrupt, .. }), "{error}");
    assert!(error.hint().is_some());
    assert_eq!(bench.task(&good).id, good);
    bench.start(&good);
    bench.create(crate::testing::titled("after"));
    let faults = crate::check_board(&bench.path).unwrap();
    assert!(faults.iter().any(|fault| fault.contains("CHECK")), "{faults:?}");
    crate::require_whole(&bench.path, crate::Depth::Structure).unwrap();
}

#[test]
fn a_statement_is_compiled_once_whatever_is_bound_to_it() {
    let bench = Bench::new();
    let conn = super::open::reader(&bench.path).unwrap();
    let sql = "SELECT id FROM tasks ORDER BY id LIMIT ?1";
    for limit in [1, 2, 2] {
        let mut statement = conn.prepare_cached(sql).unwrap();
        statement.query_map([limit], |row| row.get::<_, String>(0)).unwrap().for_each(drop);
        assert_eq!(statement.get_status(rusqlite::StatementStatus::RePrepare), 0);
    }
}
