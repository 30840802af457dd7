//! Boards that are written out, read back, and taken over from the established program.

use std::collections::BTreeMap;
use std::io::BufReader;
use std::path::Path;
use std::time::Duration;

use rusqlite::Connection;

use crate::testing::{Bench, alice, titled};
use crate::{
    Adopted, AttachmentId, EndCause, Error, NewAttachment, NewTask, OpenError, PeerBoard, Status, TaskId,
};

fn import(bench: &Bench, text: &str) -> Result<crate::Rows, Error> {
    let text = text.to_owned();
    bench.call(move |board| board.import(&mut BufReader::new(text.as_bytes()), &alice()))
}

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
            Ok(())
        })
        .unwrap();
    bench
}

#[test]
fn an_exported_board_comes_back_the_same() {
    let from = full();
    let text = from.dump();
    for table in [
        "tasks",
        "task_ids",
        "task_links",
        "task_comments",
        "task_events",
        "task_runs",
        "task_attachments",
        "notify_subs",
        "requests",
    ] {
        assert!(text.contains(&format!("\"table\":\"{table}\"")), "{table}");
    }
    let to = Bench::new();

    let rows = import(&to, &text).unwrap();

    assert_eq!(rows["tasks"], 2);
    let again = to.dump();
    let body = |text: &str| text.split_once('\n').unwrap().1.to_owned();
    assert_eq!(hostless(&body(&text)), hostless(&body(&again)));
    assert_eq!(to.readers.with(|view| view.replay()).unwrap(), vec![]);
    to.create(titled("goes on"));
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
