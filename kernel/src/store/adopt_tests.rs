//! Import of a board of Hermes Kanban.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use rusqlite::Connection;

use crate::testing::{Bench, alice, titled};
use crate::{Adopted, AttachmentId, NewAttachment, OpenError, PeerBoard, Status, TaskId};

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
  ('t_9f2a', 'short id', 'ready', 1700000010, NULL, NULL, 0, NULL),
  ('t_Spec-1_b', 'named id', 'review', 1700000011, NULL, NULL, 0, NULL),
  ('old style/../x', 'no id', 'ready', 1700000012, NULL, NULL, 0, NULL),
  ('t_0000000c', 'alone', 'todo', 1700000013, NULL, NULL, 0, NULL),
  ('t_0000000d', 'early', 'ready', 1700000014, NULL, NULL, 0, NULL);
UPDATE tasks SET assignee = 'carol', max_runtime_seconds = -5, skills = 'git' WHERE id = 't_Spec-1_b';
UPDATE tasks SET last_heartbeat_at = 1700000065, max_runtime_seconds = 3600, claim_lock = 'vm:1', worker_pid = 4711,
  current_run_id = 12 WHERE id = 't_00000004';
UPDATE tasks SET last_heartbeat_at = 1700000066, workspace_path = '/peer/scratch/x' WHERE id = 't_9f2a';
ALTER TABLE tasks ADD COLUMN scheduled_at INTEGER;
UPDATE tasks SET scheduled_at = 1800000000 WHERE id = 't_00000007';
CREATE TABLE budgets (id TEXT);
UPDATE tasks SET tenant = 'acme' WHERE id = 't_00000005';
UPDATE tasks SET workspace_kind = 'dir', workspace_path = '/srv/x' WHERE id = 't_00000003';
INSERT INTO task_links VALUES ('t_00000001', 't_00000003'), ('t_00000003', 't_00000002'), ('t_00000002', 't_00000003'),
  ('t_00000009', 't_00000008'), ('t_00000001', 't_00000005'), ('t_00000001', 't_ffffffff'), ('t_00000001', 't_9f2a'),
  ('t_00000003', 't_0000000d');
INSERT INTO task_runs (id, task_id, profile, status, started_at, ended_at, outcome, summary, metadata) VALUES
  (11, 't_00000001', 'bob', 'done', 1700000050, 1700000100, 'completed', 'did it', '{\"a\":1}'),
  (12, 't_00000004', 'bob', 'running', 1700000060, NULL, NULL, NULL, NULL),
  (13, 't_0000000b', 'bob', 'ended', 1700000070, 1700000071, 'gave_up', NULL, 'no json');
UPDATE task_runs SET max_runtime_seconds = 60, last_heartbeat_at = 1700000055 WHERE id = 11;
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

/// Writes a board of Hermes Kanban into one file, with the smallest possible pages.
pub(crate) fn write_peer(path: &Path) {
    let conn = Connection::open(path).unwrap();
    conn.pragma_update(None, "page_size", 512).unwrap();
    conn.execute_batch(PEER).unwrap();
}

fn take_over(bench: &Bench, read: PeerBoard) -> Adopted {
    let files: BTreeMap<AttachmentId, NewAttachment> = read
        .files()
        .unwrap()
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
    bench.call(move |board| board.adopt(&read, &files, &alice())).unwrap()
}

fn id(text: &str) -> TaskId {
    text.parse().unwrap()
}

#[test]
fn the_established_programs_board_is_taken_over_with_its_ids_and_never_written_to() {
    let bench = Bench::new();
    let dir = tempfile::tempdir().unwrap();
    let path = peer(dir.path());
    // Rows that are only in the log count as well.
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

    let taken = take_over(&bench, read).taken;
    insta::assert_snapshot!(crate::board::event_snapshots::rendered_events(&bench, "imported"), @r#"no run: {"from":"import","status":"done"}"#);

    let expected = [
        ("kanban_notify_subs", 1),
        ("task_attachments", 1),
        ("task_comments", 3),
        ("task_events", 2),
        ("task_links", 4),
        ("task_runs", 3),
        ("tasks", 15),
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
        (done.priority, done.result.as_deref(), done.limits.max_runtime),
        (5, Some("fine"), Some(Duration::from_secs(90)))
    );
    assert_eq!((done.skills, done.client.session_id.as_deref()), (vec!["git".to_owned()], Some("s1")));
    assert_eq!(bench.task(&id("t_00000003")).workspace.as_str(), "dir:/srv/x");
    assert_eq!(bench.task(&id("t_00000006")).block_kind.unwrap().as_str(), "gave_up");
    assert_eq!(bench.task(&id("t_00000005")).block_kind.unwrap().as_str(), "capability");
    assert_eq!(bench.readers.with(|view| view.replay()).unwrap(), vec![]);
    let comments = bench.readers.with(|view| view.comments(&done.id)).unwrap();
    let kinds: Vec<_> = comments.iter().map(|comment| comment.author_kind.as_str()).collect();
    assert_eq!(kinds, ["worker", "person", "person"]);
    let next = bench
        .call(|board| {
            board.claim(&id("t_00000003"), &crate::ClaimTerms::lasting(Duration::from_mins(1)), &alice())
        })
        .unwrap();
    assert!(next.run.id.get() > 13);
    bench.create(titled("goes on"));
}

#[test]
fn ids_reviews_limits_and_heartbeats_are_kept_and_all_else_is_in_the_report() {
    let bench = Bench::new();
    let (dir, scratch) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let read = PeerBoard::read(&peer(dir.path()), scratch.path()).unwrap();

    let Adopted { changed, left, .. } = take_over(&bench, read);

    let (short, named) = (bench.task(&id("t_9f2a")), bench.task(&id("t_Spec-1_b")));
    assert_eq!((short.status, named.status), (Status::Ready, Status::Review));
    assert_eq!(named.work_by.as_deref(), Some("worker:carol"), "who may not approve it");
    let runs = |task: &str| bench.readers.with(|view| view.runs(&id(task))).unwrap();
    let beat = |task: &str| runs(task)[0].last_heartbeat_at.map(crate::Timestamp::as_secs);
    assert_eq!((beat("t_00000001"), beat("t_00000004")), (Some(1_700_000_055), Some(1_700_000_065)));
    assert_eq!(runs("t_00000001")[0].max_runtime_seconds, Some(60));
    assert_eq!(bench.task(&id("t_00000004")).limits.max_runtime, Some(Duration::from_hours(1)));
    insta::assert_snapshot!(changed.join("\n"), @r"
    1 idempotency keys were used twice: the first task has them (t_00000003)
    1 payloads or metadata were no JSON object: their text is kept under `text` (13 of t_0000000b)
    1 runs ended with an unknown outcome: they are lost, with that outcome as the error (13 of t_0000000b)
    1 runs were open: they are taken back, and their tasks wait to be started again (12 of t_00000004)
    1 runtime limits are not positive numbers of seconds: their tasks use the default (t_Spec-1_b)
    1 tasks had a status that does not exist: they are in triage (t_0000000a)
    1 tasks were in review without a run: the assignee counts as the one who did the work (t_Spec-1_b)
    1 tasks were ready before their parents were done: they are todo (t_0000000d)
    1 tasks were running: they wait to be started again (t_00000004)
    1 tasks were scheduled without a time: they are blocked until somebody gives them one (t_00000007)
    1 tasks were todo and wait for no parent: they are ready (t_0000000c)
    1 times were invalid: the time of the import replaces them (t_0000000a)
    1 values of skills are not lists of words and are left out (t_Spec-1_b)
    ");
    insta::assert_snapshot!(left.join("\n"), @r"
    1 links close a cycle (t_00000002 → t_00000003)
    1 links join tasks of different tenants (t_00000001 → t_00000005)
    1 links lead from a task that was archived unfinished: its children would wait forever (t_00000009 → t_00000008)
    1 links lead to a task that is not there (t_00000001 → t_ffffffff)
    1 paths of scratch directories: each task gets a new one here (t_9f2a)
    1 table budgets is not known to this program
    1 tasks have a heartbeat and no run that it could belong to (t_9f2a)
    1 tasks have an id that cannot be one here: `t_`, then up to 62 letters, digits, `_` or `-` (old style/../x)
    1 values of tasks.claim_lock: a claim of the other program is not valid here (t_00000004)
    1 values of tasks.current_run_id: no run goes on after an import (t_00000004)
    1 values of tasks.scheduled_at: this program does not know the column (t_00000007)
    1 values of tasks.worker_pid: a process of the other program is not watched here (t_00000004)
    ");
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

#[test]
fn times_keys_and_priorities_of_other_forms_are_reported_and_not_taken() {
    let bench = Bench::new();
    let (dir, scratch) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let path = peer(dir.path());
    let odd = "UPDATE tasks SET priority = 'high', completed_at = 253402300800 WHERE id = 't_00000001';
        UPDATE task_runs SET ended_at = -5 WHERE id = 11;
        UPDATE task_comments SET id = -7 WHERE id = 21;
        UPDATE task_events SET run_id = 9223372036854775807 WHERE id = 32;";
    Connection::open(&path).unwrap().execute_batch(odd).unwrap();

    let left = take_over(&bench, PeerBoard::read(&path, scratch.path()).unwrap()).left.join("\n");

    for told in [
        "values of tasks.priority are no numbers, and count as 0 (t_00000001)",
        "values of tasks.completed_at are no times of the years 1970 to 9999 (t_00000001)",
        "values of task_runs.ended_at are no times of the years 1970 to 9999 (11 of t_00000001)",
        "values of task_comments.id are no keys of rows (-7 of t_00000001)",
        "values of task_events.run_id are no keys of rows (32 of t_00000001)",
    ] {
        assert!(left.contains(told), "{told}: {left}");
    }
    let done = bench.task(&id("t_00000001"));
    assert_eq!(done.priority, 0);
    let comments = bench.readers.with(|view| view.comments(&done.id)).unwrap();
    assert!(comments.iter().all(|comment| comment.id.0 > 0), "{comments:?}");
}

#[test]
fn a_virtual_table_of_the_established_program_is_not_read() {
    let (dir, scratch) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let path = dir.path().join("kanban.db");
    let endless = "CREATE VIEW v AS WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x FROM n) SELECT x AS rowid, x AS id FROM n;
        CREATE VIRTUAL TABLE tasks USING fts5(id, content='v')";
    Connection::open(&path).unwrap().execute_batch(endless).unwrap();
    let error = PeerBoard::read(&path, scratch.path()).unwrap_err();
    assert!(error.to_string().contains("its table tasks is virtual"), "{error}");
}

#[test]
fn the_kinds_of_events_that_a_board_has_brought_are_known_on_it() {
    let bench = Bench::new();
    let dir = tempfile::tempdir().unwrap();
    let path = peer(dir.path());
    let brought = "INSERT INTO task_events (id, task_id, kind, created_at) \
                   VALUES (33, 't_00000001', 'respawn_guarded', 1700000101)";
    Connection::open(&path).unwrap().execute_batch(brought).unwrap();
    let known = || bench.readers.with(|view| view.require_event_kinds(&["respawn_guarded".to_owned()]));
    assert!(known().is_err());
    let scratch = tempfile::tempdir().unwrap();

    take_over(&bench, PeerBoard::read(&path, scratch.path()).unwrap());

    known().unwrap();
}
