//! Boards that are written out, read back, and taken over from the established program.

use std::collections::BTreeMap;
use std::io::BufReader;
use std::path::Path;
use std::time::Duration;

use rusqlite::Connection;

use crate::testing::{Bench, alice, titled};
use crate::{
    Adopted, AttachmentId, Blobs, EndCause, Error, Imported, NewAttachment, NewTask, OpenError, PeerBoard,
    Status, TaskId,
};

fn import(bench: &Bench, text: &str) -> Result<Imported, Error> {
    let (text, blobs) = (text.to_owned(), Blobs::beside(&bench.path));
    bench.call(move |board| board.import(&mut BufReader::new(text.as_bytes()), &blobs, &alice()))
}

/// A hold that has ended.
const HOLD: &str = "
    INSERT INTO holds (kind, scope, name, reason, placed_by, created_at, ended_at, ended_by)
        VALUES ('manual', 'tenant', 'other', 'r', 'alice', 1, 2, 'alice')";

/// A board with something in every table.
fn full() -> Bench {
    let bench = Bench::new();
    let parent = bench.create(NewTask {
        tenant: Some("acme".parse().unwrap()),
        body: Some("line\nline \"quoted\" – ü".to_owned()),
        skills: vec!["git".to_owned()],
        idempotency_key: Some("once".to_owned()),
        ..titled("parent")
    });
    let tenant = parent.tenant.clone();
    let child = bench.create(NewTask { parents: vec![parent.id.clone()], tenant, ..titled("child") }).id;
    let run = bench.start(&parent.id);
    bench.finish(run, EndCause::Exited { code: 1 });
    let id = parent.id.clone();
    bench
        .call(move |board| {
            board.comment(&id, "a word", None, &alice())?;
            let file = NewAttachment {
                filename: "a.txt".to_owned(),
                content_type: None,
                sha256: crate::testing::digest(),
                size: 7,
                author: None,
            };
            board.attach(&id, &file, &alice())?;
            board.conn.execute(
                "INSERT INTO notify_subs (task_id, platform, chat_id, created_at) VALUES (?1, 'p', 'c', 1)",
                [&child],
            )
            .unwrap();
            board
                .conn
                .execute(
                    "INSERT INTO requests (id, caller, reply, created_at) VALUES ('r', 'c', '{}', 1)",
                    [],
                )
                .unwrap();
            board.conn.execute_batch(HOLD).unwrap();
            board.fold_events(crate::Timestamp::from_micros(i64::MAX), 1)?;
            Ok(())
        })
        .unwrap();
    bench
}

#[test]
fn an_exported_board_comes_back_the_same() {
    let from = full();
    let text = from.dump();
    let to = Bench::new();

    let imported = import(&to, &text).unwrap();

    assert_eq!(imported.rows["tasks"], 2);
    let again = to.dump();
    let body = |text: &str| text.split_once('\n').unwrap().1.to_owned();
    assert_eq!(hostless(&body(&text)), hostless(&body(&again)));
    assert_eq!(to.readers.with(|view| view.replay()).unwrap(), vec![]);
    to.check();
    to.create(titled("goes on"));
}

/// What is no row of a board: it follows from the others, or says which file this is.
const NOT_CARRIED: [&str; 2] = ["task_counts", "meta"];

/// Every table there is, with its rows.
fn tables(path: &Path) -> BTreeMap<String, Vec<Vec<rusqlite::types::Value>>> {
    let conn = Connection::open(path).unwrap();
    let mut names = conn.prepare("SELECT name FROM sqlite_schema WHERE type = 'table'").unwrap();
    let names: Vec<String> = names.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect();
    let rows = |name: &String| {
        let mut rows = conn.prepare(&format!("SELECT * FROM \"{name}\" ORDER BY 1")).unwrap();
        let width = rows.column_count();
        let rows = rows.query_map([], |row| (0..width).map(|at| row.get(at)).collect()).unwrap();
        let mut rows: Vec<Vec<_>> = rows.map(Result::unwrap).collect();
        rows.sort_by_key(|row| format!("{row:?}"));
        rows
    };
    names.iter().map(|name| (name.clone(), rows(name))).collect()
}

#[test]
fn every_table_of_the_schema_comes_through_an_export_and_through_a_backup() {
    let from = full();
    // What a host has given out does not go to another one.
    let forget = "UPDATE tasks SET worker_uid = NULL; UPDATE task_runs SET token_hash = NULL";
    from.call(|board| {
        board.conn.execute_batch(forget).unwrap();
        Ok(())
    })
    .unwrap();
    let expected = tables(&from.path);
    for (table, rows) in &expected {
        assert!(!rows.is_empty(), "`full` has no row of {table}, so nothing shows that it is carried");
    }

    let to = Bench::new();
    import(&to, &from.dump()).unwrap();
    let copy = from.directory.path().join("copy.db");
    crate::backup_board(&from.path, &copy, crate::Existing::Keep, "{}").unwrap();
    let other = tempfile::tempdir().unwrap();
    let restored = other.path().join("board.db");
    crate::restore_board(&restored, &copy, crate::RunId(0), crate::Timestamp::from_micros(1), &|_| ())
        .unwrap();

    assert_eq!(tables(&restored), expected);
    let imported = tables(&to.path);
    assert_eq!(imported.keys().collect::<Vec<_>>(), expected.keys().collect::<Vec<_>>());
    for (table, rows) in expected.iter().filter(|(table, _)| !NOT_CARRIED.contains(&table.as_str())) {
        assert_eq!(&imported[table], rows, "{table}");
    }
    to.check();
}

/// A board with one file, of several pieces, and one that is gone.
fn with_files() -> (Bench, Vec<u8>) {
    let bench = full();
    let task = bench.ready();
    let blobs = Blobs::beside(&bench.path);
    let bytes: Vec<u8> = (0..1_300_000_u32).map(|at| at.to_le_bytes()[at as usize % 3]).collect();
    for (name, bytes) in [("big", bytes.as_slice()), ("empty", &[])] {
        let stored = blobs.store(&mut &*bytes).unwrap();
        let file = NewAttachment {
            filename: name.to_owned(),
            content_type: None,
            sha256: stored.digest.clone(),
            size: stored.size,
            author: None,
        };
        let task = task.clone();
        bench.call(move |board| board.attach(&task, &file, &alice())).unwrap();
    }
    (bench, bytes)
}

#[test]
fn files_come_through_an_export_and_what_is_missing_is_named() {
    let (from, bytes) = with_files();
    let mut out = Vec::new();
    let details = Some(serde_json::json!({"name": "Ours"}));
    let exported =
        from.readers.with(|view| view.export(&Blobs::beside(&from.path), details.clone(), &mut out)).unwrap();
    assert_eq!(exported.files, 2);
    let lacks: Vec<String> = exported.lacks.iter().map(ToString::to_string).collect();
    assert!(lacks.len() == 1 && lacks[0].ends_with("its bytes are missing"), "{lacks:?}");
    let text = String::from_utf8(out).unwrap();
    assert!(text.lines().all(|line| line.len() < 1_100_000));
    let to = Bench::new();

    let imported = import(&to, &text).unwrap();

    assert_eq!((imported.files, imported.details), (2, details));
    let stored = Blobs::beside(&to.path);
    let digests = to.readers.with(|view| view.attached(&crate::Extent::All)).unwrap();
    let read = digests.iter().filter_map(|digest| stored.read(digest).unwrap().ok());
    let mut read: Vec<Vec<u8>> = read.collect();
    read.sort_by_key(Vec::len);
    assert_eq!(read, [Vec::new(), bytes]);
}

#[test]
fn files_that_are_not_what_they_say_are_refused_and_none_is_kept() {
    let (from, _) = with_files();
    let text = from.dump();
    let lines: Vec<&str> = text.lines().collect();
    let first = lines.iter().position(|line| line.contains("\"at\":0") && line.len() > 1000).unwrap();
    let piece = lines[first].to_owned();
    let with = |at: usize, line: &str| {
        let mut lines = lines.clone();
        lines[at] = line;
        lines.join("\n")
    };
    let without = |at: usize| {
        let mut lines = lines.clone();
        lines.remove(at);
        lines.join("\n")
    };
    let last = |text: String| text.replace("\"files\":2", "\"files\":3");
    let altered = piece.replacen("\"hex\":\"00", "\"hex\":\"ff", 1);
    assert_ne!(altered, piece);
    let strange = format!("{{\"file\":{{\"sha256\":\"{}\",\"at\":0,\"hex\":\"\"}}}}", "0".repeat(64));
    for (text, expected) in [
        (with(first, &altered), "not those that were attached"),
        (without(first), "goes on at"),
        (without(first + 1), "goes on at"),
        (with(first + 1, &piece), "goes on at"),
        (with(first + 1, &strange), "not those that were attached"),
        (with(first, &strange), "no attachment has the content"),
        (with(first, &piece.replacen("\"hex\":\"00", "\"hex\":\"zz", 1)), "hexadecimal"),
        (last(text.clone()), "count is not that of the files"),
    ] {
        let to = Bench::new();
        let error = import(&to, &text).unwrap_err();
        assert!(error.to_string().contains(expected), "{expected}: {error}");
        to.create(titled("the board is usable"));
    }
}

#[test]
fn an_older_export_without_files_and_newer_tables_is_read() {
    let text = full().dump();
    let old: Vec<String> = text
        .lines()
        .filter(|line| {
            !line.contains("\"table\":\"holds\"") && !line.contains("\"table\":\"sqlite_sequence\"")
        })
        .map(|line| {
            let mut line: serde_json::Value = serde_json::from_str(line).unwrap();
            if let Some(end) = line.get_mut("end").and_then(|end| end.as_object_mut()) {
                end.retain(|table, _| table != "holds" && table != "sqlite_sequence");
                line.as_object_mut().unwrap().remove("files");
            }
            line.to_string()
        })
        .collect();
    let to = Bench::new();
    let imported = import(&to, &old.join("\n")).unwrap();
    assert_eq!((imported.rows["tasks"], imported.files, imported.details), (2, 0, None));
}

#[test]
fn a_number_that_was_given_out_is_not_given_out_again_on_an_imported_board() {
    let from = full();
    let task = from.ready();
    let file = |sha256| NewAttachment {
        filename: "a".to_owned(),
        content_type: None,
        sha256,
        size: 0,
        author: None,
    };
    let last = file(crate::testing::digest());
    let last = from.call(move |board| board.attach(&task, &last, &alice())).unwrap().id;
    from.call(move |board| board.detach_file(last, &alice())).unwrap();
    let to = Bench::new();
    import(&to, &from.dump()).unwrap();
    let task = to.ready();
    let next = file(crate::testing::digest());
    let next = to.call(move |board| board.attach(&task, &next, &alice())).unwrap().id;
    assert!(next.get() > last.get(), "{next} {last}");
}

/// The rows without what belongs to a host.
fn hostless(text: &str) -> Vec<serde_json::Value> {
    let lines = text.lines().map(|line| {
        let mut value: serde_json::Value = serde_json::from_str(line).unwrap();
        if let Some(row) = value.get_mut("row").and_then(|row| row.as_object_mut()) {
            row.remove("worker_uid");
            row.remove("token_hash");
        }
        value
    });
    lines.collect()
}

#[test]
fn an_import_takes_all_or_nothing_and_says_which_line_is_wrong() {
    let text = full().dump();
    let lines: Vec<&str> = text.lines().collect();
    let cut = lines[..lines.len() - 1].join("\n");
    let without = |mark: &str| {
        let kept: Vec<&str> = lines.iter().copied().filter(|line| !line.contains(mark)).collect();
        kept.join("\n")
    };
    let cases = [
        (String::new(), "empty"),
        ("{}".to_owned(), "line 1: this is no exported board"),
        (text.replacen("supervisor-board", "others", 1), "format"),
        (text.replacen("\"version\":1", "\"version\":2", 1), "newer"),
        (cut, "cut off"),
        (without("\"table\":\"task_links\""), "counts"),
        (text.replacen("\"table\":\"tasks\"", "\"table\":\"taskz\"", 1), "no table"),
        (text.replacen("\"title\":", "\"titel\":", 1), "no column"),
        (text.replacen("\"status\":\"todo\"", "\"status\":\"bogus\"", 1), "line"),
        (text.replacen("\"assignee\":\"bob\"", "\"assignee\":\"not a name!\"", 1), "means nothing"),
        (format!("{text}{}\n", lines[1]), "follows"),
    ];
    for (text, expected) in cases {
        let to = Bench::new();
        let error = import(&to, &text).unwrap_err();
        assert!(error.to_string().contains(expected), "{expected}: {error}");
        assert!(error.hint().is_some(), "{error}");
        assert_eq!(to.readers.with(|view| view.stats()).unwrap().by_status.len(), 0, "{expected}");
        to.create(titled("the board is usable"));
    }
    let used = full();
    let error = import(&used, &text).unwrap_err();
    assert!(error.to_string().contains("not empty"), "{error}");
}

const PEER: &str = "
CREATE TABLE tasks (id TEXT PRIMARY KEY, title TEXT NOT NULL, body TEXT, assignee TEXT, status TEXT NOT NULL,
  priority INTEGER DEFAULT 0, created_by TEXT, created_at INTEGER NOT NULL, started_at INTEGER, completed_at INTEGER,
  workspace_kind TEXT NOT NULL DEFAULT 'scratch', workspace_path TEXT, branch_name TEXT, project_id TEXT,
  claim_lock TEXT, claim_expires INTEGER, tenant TEXT, result TEXT, idempotency_key TEXT,
  consecutive_failures INTEGER NOT NULL DEFAULT 0, worker_pid INTEGER, last_failure_error TEXT,
  max_runtime_seconds INTEGER, last_heartbeat_at INTEGER, current_run_id INTEGER, workflow_template_id TEXT,
  current_step_key TEXT, skills TEXT, model_override TEXT, max_retries INTEGER,
  goal_mode INTEGER NOT NULL DEFAULT 0, goal_max_turns INTEGER, session_id TEXT, block_kind TEXT,
  block_recurrences INTEGER NOT NULL DEFAULT 0);
CREATE TABLE task_links (parent_id TEXT NOT NULL, child_id TEXT NOT NULL, PRIMARY KEY (parent_id, child_id));
CREATE TABLE task_comments (id INTEGER PRIMARY KEY AUTOINCREMENT, task_id TEXT NOT NULL, author TEXT NOT NULL,
  body TEXT NOT NULL, created_at INTEGER NOT NULL);
CREATE TABLE task_events (id INTEGER PRIMARY KEY AUTOINCREMENT, task_id TEXT NOT NULL, run_id INTEGER, kind TEXT NOT NULL,
  payload TEXT, created_at INTEGER NOT NULL);
CREATE TABLE task_runs (id INTEGER PRIMARY KEY AUTOINCREMENT, task_id TEXT NOT NULL, profile TEXT, step_key TEXT,
  status TEXT NOT NULL, claim_lock TEXT, claim_expires INTEGER, worker_pid INTEGER, max_runtime_seconds INTEGER,
  last_heartbeat_at INTEGER, started_at INTEGER NOT NULL, ended_at INTEGER, outcome TEXT, summary TEXT, metadata TEXT, error TEXT);
CREATE TABLE task_attachments (id INTEGER PRIMARY KEY AUTOINCREMENT, task_id TEXT NOT NULL, filename TEXT NOT NULL,
  stored_path TEXT NOT NULL, content_type TEXT, size INTEGER NOT NULL DEFAULT 0, uploaded_by TEXT, created_at INTEGER NOT NULL);
CREATE TABLE kanban_notify_subs (task_id TEXT NOT NULL, platform TEXT NOT NULL, chat_id TEXT NOT NULL,
  thread_id TEXT NOT NULL DEFAULT '', user_id TEXT, notifier_profile TEXT, created_at INTEGER NOT NULL,
  last_event_id INTEGER NOT NULL DEFAULT 0, PRIMARY KEY (task_id, platform, chat_id, thread_id));
INSERT INTO tasks (id, title, body, assignee, status, priority, created_by, created_at, completed_at, result, skills,
    max_runtime_seconds, idempotency_key, session_id) VALUES
  ('t_00000001', 'done', 'text', 'bob', 'done', 5, 'user', 1700000000, 1700000100, 'fine', '[\"git\"]', 90, 'k', 's1');
INSERT INTO tasks (id, title, status, created_at, block_kind, last_failure_error, consecutive_failures, idempotency_key) VALUES
  ('t_00000002', 'todo', 'todo', 1700000001, NULL, NULL, 0, NULL),
  ('t_00000003', 'ready', 'ready', 1700000002, NULL, NULL, 0, 'k'),
  ('t_00000004', 'running', 'running', 1700000003, NULL, NULL, 0, NULL),
  ('t_00000005', 'asked', 'blocked', 1700000004, 'capability', NULL, 0, NULL),
  ('t_00000006', 'failed', 'blocked', 1700000005, NULL, 'exit 1', 2, NULL),
  ('t_00000007', 'later', 'scheduled', 1700000006, NULL, NULL, 0, NULL),
  ('t_00000008', 'idea', 'triage', 1700000007, NULL, NULL, 0, NULL),
  ('t_00000009', 'gone', 'archived', 1700000008, NULL, NULL, 0, NULL),
  ('t_0000000a', 'odd', 'bogus', 'yesterday', NULL, NULL, 0, NULL),
  ('t_0000000b', 'looked at', 'review', 1700000009, NULL, NULL, 0, NULL),
  ('old-style', 'no id', 'ready', 1700000010, NULL, NULL, 0, NULL);
UPDATE tasks SET tenant = 'acme' WHERE id = 't_00000005';
UPDATE tasks SET workspace_kind = 'dir', workspace_path = '/srv/x' WHERE id = 't_00000003';
INSERT INTO task_links VALUES ('t_00000001', 't_00000003'), ('t_00000003', 't_00000002'), ('t_00000002', 't_00000003'),
  ('t_00000009', 't_00000008'), ('t_00000001', 't_00000005'), ('t_00000001', 't_ffffffff');
INSERT INTO task_runs (id, task_id, profile, status, started_at, ended_at, outcome, summary, metadata) VALUES
  (11, 't_00000001', 'bob', 'done', 1700000050, 1700000100, 'completed', 'did it', '{\"a\":1}'),
  (12, 't_00000004', 'bob', 'running', 1700000060, NULL, NULL, NULL, NULL),
  (13, 't_0000000b', 'bob', 'ended', 1700000070, 1700000071, 'gave_up', NULL, 'no json');
INSERT INTO task_comments (id, task_id, author, body, created_at) VALUES
  (21, 't_00000001', 'bob', 'working', 1700000051), (22, 't_00000001', 'ann', 'thanks', 1700000101);
INSERT INTO task_events (id, task_id, run_id, kind, payload, created_at) VALUES
  (31, 't_00000001', NULL, 'created', '{\"status\":\"ready\"}', 1700000000),
  (32, 't_00000001', 11, 'completed', NULL, 1700000100);
INSERT INTO task_attachments (id, task_id, filename, stored_path, size, created_at) VALUES
  (41, 't_00000001', 'a/b.txt', '/peer/attachments/x', 9, 1700000002);
INSERT INTO kanban_notify_subs (task_id, platform, chat_id, created_at, last_event_id) VALUES
  ('t_00000001', 'telegram', '77', 1700000003, 31);
";

fn peer(dir: &Path) -> std::path::PathBuf {
    let path = dir.join("kanban.db");
    let conn = Connection::open(&path).unwrap();
    conn.pragma_update(None, "journal_mode", "WAL").unwrap();
    conn.execute_batch(PEER).unwrap();
    path
}

fn id(text: &str) -> TaskId {
    text.parse().unwrap()
}

#[test]
fn the_established_programs_board_is_taken_over_with_its_ids_and_never_written_to() {
    let bench = Bench::new();
    let dir = tempfile::tempdir().unwrap();
    let path = peer(dir.path());
    // Rows that are in the log only count as well.
    let open = Connection::open(&path).unwrap();
    open.execute_batch(
        "INSERT INTO task_comments (task_id, author, body, created_at) VALUES ('t_00000001', 'x', 'late', 1)",
    )
    .unwrap();
    let look = || {
        let mut names: Vec<_> = std::fs::read_dir(dir.path())
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .filter(|path| path.is_file())
            .map(|path| (path.clone(), std::fs::read(path).unwrap()))
            .collect();
        names.sort();
        names
    };
    let before = look();
    let scratch = tempfile::tempdir().unwrap();
    let read = PeerBoard::read(&path, scratch.path()).unwrap();
    assert!(look() == before, "nothing beside or in the other board has changed");

    let files: BTreeMap<AttachmentId, NewAttachment> = read
        .files()
        .into_iter()
        .map(|file| {
            assert_eq!((file.filename.as_str(), file.stored_path), ("a_b.txt", "/peer/attachments/x".into()));
            let new = NewAttachment {
                filename: file.filename,
                content_type: None,
                sha256: crate::testing::digest(),
                size: 9,
                author: None,
            };
            (file.id, new)
        })
        .collect();
    let Adopted { taken, changed, left } =
        bench.call(move |board| board.adopt(&read, &files, &alice())).unwrap();
    insta::assert_snapshot!(crate::event_snapshots::told(&bench, "imported"), @r#"no run: {"from":"import","status":"done"}"#);

    let expected = [
        ("kanban_notify_subs", 1),
        ("task_attachments", 1),
        ("task_comments", 3),
        ("task_events", 2),
        ("task_links", 2),
        ("task_runs", 3),
        ("tasks", 11),
    ];
    assert_eq!(taken, expected.map(|(table, count)| (table.to_owned(), count)).into());
    let status = |text: &str| bench.task(&id(text)).status;
    let statuses: Vec<Status> = (1..=11).map(|at| status(format!("t_{at:08x}").as_str())).collect();
    assert_eq!(
        statuses,
        "done todo ready ready blocked blocked blocked triage archived triage review"
            .split(' ')
            .map(|word| word.parse().unwrap())
            .collect::<Vec<Status>>()
    );
    let done = bench.task(&id("t_00000001"));
    assert_eq!(
        (done.priority, done.result.as_deref(), done.max_runtime_seconds),
        (5, Some("fine"), Some(90))
    );
    assert_eq!((done.skills, done.session_id.as_deref()), (vec!["git".to_owned()], Some("s1")));
    assert_eq!(bench.task(&id("t_00000003")).workspace, "dir:/srv/x");
    assert_eq!(bench.task(&id("t_00000006")).block_kind.unwrap().as_str(), "gave_up");
    assert_eq!(bench.task(&id("t_00000005")).block_kind.unwrap().as_str(), "capability");
    assert_eq!(bench.readers.with(|view| view.replay()).unwrap(), vec![]);
    let comments = bench.readers.with(|view| view.comments(&done.id)).unwrap();
    let kinds: Vec<_> = comments.iter().map(|comment| comment.author_kind.as_str()).collect();
    assert_eq!(kinds, ["worker", "person", "person"]);
    for (notes, text) in [
        (&changed, "1 tasks were running"),
        (&changed, "used twice"),
        (&changed, "scheduled without a time"),
        (&changed, "status that does not exist"),
        (&changed, "moments made no sense"),
        (&changed, "no word here"),
        (&left, "1 tasks have no id"),
        (&left, "circle"),
        (&left, "different tenants"),
        (&left, "archived unfinished"),
        (&left, "not there"),
    ] {
        assert!(notes.iter().any(|note| note.contains(text)), "{text}: {changed:?} {left:?}");
    }
    let next = bench.call(|board| board.claim(&id("t_00000003"), Duration::from_mins(1), &alice())).unwrap();
    assert!(next.run.id.get() > 13);
    bench.create(titled("goes on"));
}

#[test]
fn what_is_no_board_of_the_established_program_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let scratch = tempfile::tempdir().unwrap();
    let none = dir.path().join("none.db");
    let error = PeerBoard::read(&none, scratch.path()).unwrap_err();
    assert!(matches!(error, OpenError::Missing { .. }), "{error}");
    let other = dir.path().join("other.db");
    Connection::open(&other).unwrap().execute_batch("CREATE TABLE theirs (x)").unwrap();
    let error = PeerBoard::read(&other, scratch.path()).unwrap_err();
    assert!(matches!(error, OpenError::NotABoard { .. }), "{error}");
    std::fs::write(&other, vec![b'x'; 8192]).unwrap();
    let error = PeerBoard::read(&other, scratch.path()).unwrap_err();
    assert!(matches!(error, OpenError::Corrupt { .. }), "{error}");
}
