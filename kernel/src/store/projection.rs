//! Database of a worker that brings its own board, in the schema of Hermes Kanban: a single task with its context.

use std::path::Path;
use std::time::SystemTime;

use rusqlite::types::ValueRef;
use rusqlite::{Connection, OpenFlags, OptionalExtension as _, Row, params};

use super::open;
use super::open_error::{OpenError, sqlite};
use crate::model::projection::{
    Projected, ProjectedCard, ProjectedEnd, ProjectedRemark, ProjectedTask, ProjectedWork, Projection, Seen,
    Stamp,
};

/// Largest number of rows of a table that are read in total, and per look.
const ROWS: i64 = 200;
const AT_ONCE: i64 = 100;
/// Longest text that is read, in characters. The board's own limits are lower, so it refuses a cut text.
const TEXT: usize = 1 << 20;
/// Time for which a look waits for a writing worker, in milliseconds.
const BUSY_MS: u64 = 2000;
/// Author of the answers to a worker on its own board.
const OWN_NAME: &str = "supervisor";

/// Schema that the program creates itself when it finds no database (0.19). The program adds missing columns on its own.
const SCHEMA: &str = "
CREATE TABLE tasks (
    id TEXT PRIMARY KEY, title TEXT NOT NULL, body TEXT, assignee TEXT, status TEXT NOT NULL, priority INTEGER DEFAULT 0,
    created_by TEXT, created_at INTEGER NOT NULL, started_at INTEGER, completed_at INTEGER,
    workspace_kind TEXT NOT NULL DEFAULT 'scratch', workspace_path TEXT, branch_name TEXT, project_id TEXT,
    claim_lock TEXT, claim_expires INTEGER, tenant TEXT, result TEXT, idempotency_key TEXT,
    consecutive_failures INTEGER NOT NULL DEFAULT 0, worker_pid INTEGER, last_failure_error TEXT,
    max_runtime_seconds INTEGER, last_heartbeat_at INTEGER, current_run_id INTEGER, workflow_template_id TEXT,
    current_step_key TEXT, skills TEXT, model_override TEXT, max_retries INTEGER, goal_mode INTEGER NOT NULL DEFAULT 0,
    goal_max_turns INTEGER, session_id TEXT, block_kind TEXT, block_recurrences INTEGER NOT NULL DEFAULT 0
);
CREATE TABLE task_links (parent_id TEXT NOT NULL, child_id TEXT NOT NULL, PRIMARY KEY (parent_id, child_id));
CREATE TABLE task_comments (
    id INTEGER PRIMARY KEY AUTOINCREMENT, task_id TEXT NOT NULL, author TEXT NOT NULL, body TEXT NOT NULL,
    created_at INTEGER NOT NULL
);
CREATE TABLE task_events (
    id INTEGER PRIMARY KEY AUTOINCREMENT, task_id TEXT NOT NULL, run_id INTEGER, kind TEXT NOT NULL, payload TEXT,
    created_at INTEGER NOT NULL
);
CREATE TABLE task_runs (
    id INTEGER PRIMARY KEY AUTOINCREMENT, task_id TEXT NOT NULL, profile TEXT, step_key TEXT, status TEXT NOT NULL,
    claim_lock TEXT, claim_expires INTEGER, worker_pid INTEGER, max_runtime_seconds INTEGER, last_heartbeat_at INTEGER,
    started_at INTEGER NOT NULL, ended_at INTEGER, outcome TEXT, summary TEXT, metadata TEXT, error TEXT
);
CREATE TABLE task_attachments (
    id INTEGER PRIMARY KEY AUTOINCREMENT, task_id TEXT NOT NULL, filename TEXT NOT NULL, stored_path TEXT NOT NULL,
    content_type TEXT, size INTEGER NOT NULL DEFAULT 0, uploaded_by TEXT, created_at INTEGER NOT NULL
);
CREATE TABLE kanban_notify_subs (
    task_id TEXT NOT NULL, platform TEXT NOT NULL, chat_id TEXT NOT NULL, thread_id TEXT NOT NULL DEFAULT '', user_id TEXT,
    notifier_profile TEXT, created_at INTEGER NOT NULL, last_event_id INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (task_id, platform, chat_id, thread_id)
);
";

/// Tables that are read. Other tables are ignored.
const READ: [&str; 5] = ["tasks", "task_links", "task_comments", "task_events", "task_runs"];

/// Validity of the run's claim on the worker's board, in seconds. Only the worker reads it.
const CLAIM: i64 = 400 * 24 * 3600;

pub(crate) fn make(path: &Path, task: &Projected) -> Result<Projection, OpenError> {
    let fail = |error| sqlite("make", path, error);
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE;
    let mut conn = Connection::open_with_flags(path, flags).map_err(fail)?;
    write(&mut conn, task).map_err(fail)?;
    let tasks = task.parents.iter().chain([&task.own]).map(|task| task.id.clone()).collect();
    let links = task.parents.iter().map(|parent| (parent.id.clone(), task.own.id.clone())).collect();
    let comment = i64::try_from(task.comments.len()).unwrap_or(i64::MAX);
    let seen = Seen { tasks, links, comment, ..Seen::default() };
    let (task_id, claim) = (task.own.id.clone(), task.claim.clone());
    Ok(Projection { path: path.to_owned(), own: task_id, run: task.run, claim, seen, rest: None })
}

fn write(conn: &mut Connection, task: &Projected) -> rusqlite::Result<()> {
    let tx = conn.transaction()?;
    tx.execute_batch(SCHEMA)?;
    let Projected { own, parents, comments, run, claim, workspace, now } = task;
    insert(&tx, own, "running")?;
    tx.execute(
        "INSERT INTO task_runs (id, task_id, profile, status, claim_lock, claim_expires, started_at)
         VALUES (?1, ?2, ?3, 'running', ?4, ?5, ?6)",
        params![run, own.id, own.assignee, claim, now + CLAIM, now],
    )?;
    // A `dir` workspace: of a scratch directory, the program would copy the content when the task is done.
    tx.execute(
        "UPDATE tasks SET workspace_kind = 'dir', workspace_path = ?2, claim_lock = ?3, claim_expires = ?4,
                current_run_id = ?5, started_at = ?6, last_heartbeat_at = ?6 WHERE id = ?1",
        params![own.id, workspace.to_string_lossy(), claim, now + CLAIM, run, now],
    )?;
    // The parents' runs come after the task's own run, so their ids are greater.
    for parent in parents {
        insert(&tx, parent, "done")?;
        let ProjectedTask { id, assignee, summary, metadata, created_at, .. } = parent;
        tx.execute("INSERT INTO task_links VALUES (?1, ?2)", [id, &own.id])?;
        tx.execute("UPDATE tasks SET completed_at = ?2 WHERE id = ?1", params![id, now])?;
        tx.execute(
            "INSERT INTO task_runs (task_id, profile, status, started_at, ended_at, outcome, summary, metadata)
             VALUES (?1, ?2, 'done', ?3, ?4, 'completed', ?5, ?6)",
            params![id, assignee, created_at, now, summary, metadata],
        )?;
    }
    for comment in comments {
        tx.execute(
            "INSERT INTO task_comments (task_id, author, body, created_at) VALUES (?1, ?2, ?3, ?4)",
            params![own.id, comment.author, comment.body, comment.created_at],
        )?;
    }
    tx.commit()
}

fn insert(conn: &Connection, task: &ProjectedTask, status: &str) -> rusqlite::Result<usize> {
    conn.execute(
        "INSERT INTO tasks (id, title, body, assignee, status, priority, created_by, created_at, tenant, result)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)",
        params![
            task.id,
            task.title,
            task.body,
            task.assignee,
            status,
            task.priority,
            task.created_by,
            task.created_at,
            task.tenant,
            task.result,
        ],
    )
}

pub(crate) fn look(projection: &mut Projection) -> Result<ProjectedWork, OpenError> {
    let path = projection.path.clone();
    let stamp = Stamp::read(&path);
    if projection.rest.as_ref() == Some(&stamp) {
        return Ok(ProjectedWork::default());
    }
    projection.rest = None;
    let fail = |error| sqlite("read", &path, error);
    open::look(&path)?;
    let conn = Connection::open_with_flags(&path, OpenFlags::SQLITE_OPEN_READ_ONLY).map_err(fail)?;
    prepare(&conn).map_err(fail)?;
    let tables = super::rows::tables(&conn).map_err(fail)?;
    if let Some(missing) = READ.iter().find(|name| !tables.iter().any(|table| table == *name)) {
        return Err(OpenError::Corrupt { path: path.clone(), detail: format!("it has no table {missing}") });
    }
    let done = read(&conn, projection).map_err(fail)?;
    // The files are at rest only if there was nothing left to read, and if every later write changes the stamp.
    if done == ProjectedWork::default() && stamp.is_settled(SystemTime::now()) {
        projection.rest = Some(stamp);
    }
    Ok(done)
}

/// Configures a connection so that it runs no code of the file: no function that its schema names. Nothing is written, so
/// no trigger runs either.
pub(super) fn prepare(conn: &Connection) -> rusqlite::Result<()> {
    conn.busy_timeout(std::time::Duration::from_millis(BUSY_MS))?;
    conn.pragma_update(None, "trusted_schema", false)
}

fn read(conn: &Connection, projection: &mut Projection) -> rusqlite::Result<ProjectedWork> {
    // A single consistent state of the file, while the worker goes on writing.
    let tx = conn.unchecked_transaction()?;
    let Projection { own, run, seen, .. } = projection;
    let mut done = ProjectedWork::default();
    new_tasks(&tx, seen, &mut done)?;
    new_links(&tx, seen, &mut done)?;
    new_comments(&tx, seen, &mut done)?;
    latest_note(&tx, own, *run, seen, &mut done)?;
    // Comments that came before the verdict are delivered first.
    let is_all = done.said.len() < usize::try_from(AT_ONCE).unwrap_or(usize::MAX);
    if is_all && !seen.has_ended {
        done.verdict = verdict(&tx, own, *run)?;
        seen.has_ended = done.verdict.is_some();
    }
    tx.finish()?;
    Ok(done)
}

fn new_tasks(conn: &Connection, seen: &mut Seen, done: &mut ProjectedWork) -> rusqlite::Result<()> {
    let mut statement = conn.prepare(
        "SELECT id, title, body, assignee, tenant, priority, status, workspace_kind, workspace_path, branch_name,
                idempotency_key, max_runtime_seconds, skills, goal_mode, goal_max_turns
           FROM tasks ORDER BY created_at, rowid LIMIT ?1",
    )?;
    let mut rows = statement.query([ROWS])?;
    let mut count = 0;
    while let Some(row) = rows.next()? {
        count += 1;
        let Some(id) = text(row, 0)? else { continue };
        if !seen.tasks.insert(id.clone()) {
            continue;
        }
        done.created.push(ProjectedCard {
            id,
            title: text(row, 1)?.unwrap_or_default(),
            body: text(row, 2)?,
            assignee: text(row, 3)?,
            tenant: text(row, 4)?,
            priority: number(row, 5)?.unwrap_or(0),
            status: text(row, 6)?.unwrap_or_default(),
            workspace: (text(row, 7)?, text(row, 8)?),
            branch: text(row, 9)?,
            idempotency_key: text(row, 10)?,
            max_runtime: number(row, 11)?,
            skills: text(row, 12)?,
            goal: number(row, 13)?.is_some_and(|flag| flag != 0),
            goal_turns: number(row, 14)?,
        });
    }
    report_excess(seen, count, done);
    Ok(())
}

fn new_links(conn: &Connection, seen: &mut Seen, done: &mut ProjectedWork) -> rusqlite::Result<()> {
    let mut statement = conn.prepare("SELECT parent_id, child_id FROM task_links ORDER BY rowid LIMIT ?1")?;
    let mut rows = statement.query([ROWS])?;
    let mut count = 0;
    while let Some(row) = rows.next()? {
        count += 1;
        let (Some(parent), Some(child)) = (text(row, 0)?, text(row, 1)?) else { continue };
        if seen.links.insert((parent.clone(), child.clone())) {
            done.linked.push((parent, child));
        }
    }
    report_excess(seen, count, done);
    Ok(())
}

fn new_comments(conn: &Connection, seen: &mut Seen, done: &mut ProjectedWork) -> rusqlite::Result<()> {
    let mut statement =
        conn.prepare("SELECT id, task_id, body FROM task_comments WHERE id > ?1 ORDER BY id LIMIT ?2")?;
    let remaining = (ROWS - seen.comments).clamp(0, AT_ONCE);
    let mut rows = statement.query([seen.comment, remaining])?;
    while let Some(row) = rows.next()? {
        let Some(id) = number(row, 0)? else { continue };
        seen.comment = id;
        seen.comments += 1;
        let (Some(task), Some(body)) = (text(row, 1)?, text(row, 2)?) else { continue };
        if !seen.answers.remove(&id) {
            done.said.push(ProjectedRemark { task, body });
        }
    }
    report_excess(seen, seen.comments, done);
    Ok(())
}

/// Reports once that a table has more rows than are read.
fn report_excess(seen: &mut Seen, count: i64, done: &mut ProjectedWork) {
    if count >= ROWS && !seen.is_full {
        (seen.is_full, done.more) = (true, true);
    }
}

fn latest_note(
    conn: &Connection,
    own: &str,
    run: i64,
    seen: &mut Seen,
    done: &mut ProjectedWork,
) -> rusqlite::Result<()> {
    // The program writes heartbeats without a note on its own, even while its service does not answer. Such heartbeats are no
    // progress.
    let mut statement = conn.prepare(
        "SELECT id, json_extract(payload, '$.note') FROM task_events
          WHERE id > ?1 AND kind = 'heartbeat' AND task_id = ?2 AND run_id IS ?3
            AND CASE WHEN json_valid(payload) THEN json_extract(payload, '$.note') END IS NOT NULL
          ORDER BY id DESC LIMIT 1",
    )?;
    let last = statement
        .query_row(params![seen.event, own, run], |row| Ok((number(row, 0)?, text(row, 1)?)))
        .optional()?;
    if let Some((Some(id), note)) = last {
        seen.event = id;
        done.alive = note;
    }
    Ok(())
}

fn verdict(conn: &Connection, own: &str, run: i64) -> rusqlite::Result<Option<ProjectedEnd>> {
    let mut statement = conn.prepare(
        "SELECT r.outcome, r.summary, r.metadata, t.result, t.block_kind,
                (SELECT e.payload FROM task_events e WHERE e.task_id = t.id AND e.run_id IS r.id AND e.kind = 'completed'
                  ORDER BY e.id DESC LIMIT 1)
           FROM task_runs r JOIN tasks t ON t.id = r.task_id
          WHERE r.id = ?1 AND r.task_id = ?2 AND r.ended_at IS NOT NULL",
    )?;
    let read = statement.query_row(params![run, own], |row| {
        let (summary, metadata) = (text(row, 1)?, text(row, 2)?);
        Ok(match text(row, 0)?.as_deref() {
            Some("completed") => Some(ProjectedEnd::Completed {
                result: text(row, 3)?,
                summary,
                metadata,
                event: text(row, 5)?,
            }),
            Some("blocked") => Some(ProjectedEnd::Blocked { reason: summary, kind: text(row, 4)? }),
            Some(_) | None => None,
        })
    });
    Ok(read.optional()?.flatten())
}

pub(crate) fn answer(projection: &mut Projection, text: &str, now: i64) -> Result<(), OpenError> {
    let fail = |error| sqlite("write", &projection.path, error);
    let conn = writable(&projection.path).map_err(fail)?;
    conn.execute(
        "INSERT INTO task_comments (task_id, author, body, created_at) VALUES (?1, ?2, ?3, ?4)",
        params![projection.own, OWN_NAME, text, now],
    )
    .map_err(fail)?;
    projection.seen.answers.insert(conn.last_insert_rowid());
    Ok(())
}

pub(crate) fn reopen(projection: &mut Projection) -> Result<(), OpenError> {
    let fail = |error| sqlite("write", &projection.path, error);
    let conn = writable(&projection.path).map_err(fail)?;
    let (own, run, claim) = (&projection.own, projection.run, &projection.claim);
    let tx = conn.unchecked_transaction().map_err(fail)?;
    tx.execute(
        "UPDATE task_runs SET status = 'running', outcome = NULL, ended_at = NULL, summary = NULL, metadata = NULL,
                claim_lock = ?3 WHERE id = ?1 AND task_id = ?2",
        params![run, own, claim],
    )
    .map_err(fail)?;
    tx.execute(
        "UPDATE tasks SET status = 'running', completed_at = NULL, result = NULL, block_kind = NULL, current_run_id = ?2,
                claim_lock = ?3 WHERE id = ?1",
        params![own, run, claim],
    )
    .map_err(fail)?;
    tx.commit().map_err(fail)?;
    projection.seen.has_ended = false;
    Ok(())
}

fn writable(path: &Path) -> rusqlite::Result<Connection> {
    let conn = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
    prepare(&conn)?;
    Ok(conn)
}

/// Reads a text of a row, up to a limit.
pub(super) fn text(row: &Row<'_>, at: usize) -> rusqlite::Result<Option<String>> {
    let text = match row.get_ref(at)? {
        ValueRef::Text(bytes) => {
            String::from_utf8_lossy(bytes.get(..bytes.len().min(TEXT)).unwrap_or_default()).into_owned()
        }
        ValueRef::Integer(number) => number.to_string(),
        ValueRef::Real(number) => number.to_string(),
        ValueRef::Null | ValueRef::Blob(_) => return Ok(None),
    };
    Ok(Some(text.replace('\0', "\u{fffd}")))
}

pub(super) fn number(row: &Row<'_>, at: usize) -> rusqlite::Result<Option<i64>> {
    Ok(match row.get_ref(at)? {
        ValueRef::Integer(number) => Some(number),
        ValueRef::Null | ValueRef::Real(_) | ValueRef::Text(_) | ValueRef::Blob(_) => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::projection::ProjectedComment;

    /// Creates the board of a worker, and opens its file.
    fn board(dir: &Path) -> (Projection, Connection) {
        let named =
            |id: &str| ProjectedTask { id: id.to_owned(), title: id.to_owned(), ..Default::default() };
        let parent = ProjectedTask { summary: Some("found".to_owned()), ..named("t_before") };
        let comment = ProjectedComment { author: "ann".to_owned(), body: "look".to_owned(), created_at: 5 };
        let task = Projected {
            own: named("t_own"),
            parents: vec![parent],
            comments: vec![comment],
            run: 1,
            claim: "host:1".to_owned(),
            workspace: "/w".into(),
            now: 1000,
        };
        let path = dir.join("kanban.db");
        let made = Projection::make(&path, &task).unwrap();
        (made, Connection::open(path).unwrap())
    }

    fn complete(conn: &Connection) {
        let end = "UPDATE task_runs SET outcome = 'completed', summary = 'done', ended_at = 9 WHERE id = 1";
        conn.execute(end, []).unwrap();
    }

    #[test]
    fn a_worker_finds_its_task_and_each_of_its_changes_is_returned_once() {
        let dir = tempfile::tempdir().unwrap();
        let (mut board, conn) = board(dir.path());
        let open = "SELECT count(*) FROM tasks t JOIN task_runs r ON r.id = t.current_run_id
                     WHERE t.id = 't_own' AND r.status = 'running' AND r.claim_lock = 'host:1' AND t.claim_lock = 'host:1'";
        assert_eq!(conn.query_row(open, [], |row| row.get::<_, i64>(0)).unwrap(), 1);
        assert_eq!(board.look().unwrap(), ProjectedWork::default(), "what was there is no change");

        conn.execute_batch(
            "INSERT INTO tasks (id, title, status, created_at, skills) VALUES ('t_new', 'mend', 'todo', 9, '[\"a\"]');
             INSERT INTO task_links VALUES ('t_own', 't_new');
             INSERT INTO task_comments (task_id, author, body, created_at) VALUES ('t_own', 'hermes', 'hm', 9);
             INSERT INTO task_events (task_id, run_id, kind, payload, created_at) VALUES ('t_own', 1, 'heartbeat', '{\"note\":\"half\"}', 9);",
        )
        .unwrap();
        let done = board.look().unwrap();
        assert_eq!(done.created[0].id, "t_new");
        assert_eq!(done.linked, [("t_own".to_owned(), "t_new".to_owned())]);
        assert_eq!(done.said, [ProjectedRemark { task: "t_own".to_owned(), body: "hm".to_owned() }]);
        assert_eq!((done.alive.as_deref(), done.verdict), (Some("half"), None));
        let own_beat = "INSERT INTO task_events (task_id, run_id, kind, payload, created_at)
                        VALUES ('t_own', 1, 'heartbeat', 'null', 9), ('t_own', 1, 'heartbeat', NULL, 9), ('t_own', 1, 'heartbeat', '{', 9)";
        conn.execute(own_beat, []).unwrap();
        assert_eq!(
            board.look().unwrap(),
            ProjectedWork::default(),
            "that of the program itself is no progress"
        );
        complete(&conn);
        assert!(matches!(board.look().unwrap().verdict, Some(ProjectedEnd::Completed { .. })));
        assert_eq!(board.look().unwrap(), ProjectedWork::default());
    }

    #[test]
    fn an_answer_is_no_word_of_the_worker_and_a_reopened_task_can_end_anew() {
        let dir = tempfile::tempdir().unwrap();
        let (mut board, conn) = board(dir.path());
        complete(&conn);
        assert!(board.look().unwrap().verdict.is_some());
        board.answer("refused", 10).unwrap();
        board.reopen().unwrap();
        assert_eq!(board.look().unwrap(), ProjectedWork::default());
        let status: String =
            conn.query_row("SELECT status FROM tasks WHERE id = 't_own'", [], |row| row.get(0)).unwrap();
        assert_eq!(status, "running");
        complete(&conn);
        assert!(board.look().unwrap().verdict.is_some());
    }

    #[test]
    fn more_rows_than_are_read_are_said_once_and_the_verdict_is_read_all_the_same() {
        let dir = tempfile::tempdir().unwrap();
        let (mut board, conn) = board(dir.path());
        for n in 0..2 * ROWS {
            conn.execute("INSERT INTO task_links VALUES (?1, 't_own')", [format!("t_{n}")]).unwrap();
        }
        complete(&conn);
        let done = board.look().unwrap();
        assert!(done.more && done.verdict.is_some());
        assert_eq!(i64::try_from(done.linked.len()).unwrap(), ROWS - 1, "with that of the parent");
        assert_eq!(board.look().unwrap(), ProjectedWork::default());
    }

    #[test]
    fn a_board_that_rests_is_not_read_and_one_that_is_written_again_is() {
        let dir = tempfile::tempdir().unwrap();
        let (mut board, conn) = board(dir.path());
        assert_eq!(board.look().unwrap(), ProjectedWork::default());
        assert!(board.rest.is_none(), "it was written a moment ago");
        let link = "INSERT INTO task_links VALUES (?1, 't_own')";
        conn.execute(link, ["t_1"]).unwrap();
        // Pretend that the times of the files are equal to the times of the last look.
        board.rest = Some(Stamp::read(&board.path));
        assert_eq!(board.look().unwrap(), ProjectedWork::default());
        conn.execute(link, ["t_2"]).unwrap();
        assert_eq!(board.look().unwrap().linked.len(), 2);
        assert!(board.rest.is_none());
    }

    #[test]
    fn what_is_no_table_or_no_database_is_not_read() {
        for damage in ["view", "dropped", "text", "gone", "link"] {
            let dir = tempfile::tempdir().unwrap();
            let (mut board, conn) = board(dir.path());
            let path = dir.path().join("kanban.db");
            let run = |sql: &str| conn.execute_batch(sql).unwrap();
            match damage {
                "view" => run(
                    "DROP TABLE task_links; CREATE VIEW task_links AS SELECT 'a' AS parent_id, 'b' AS child_id;",
                ),
                "dropped" => run("DROP TABLE task_runs;"),
                "text" => std::fs::write(&path, [b'x'; 9000]).unwrap(),
                "gone" => std::fs::remove_file(&path).unwrap(),
                _ => {
                    std::fs::remove_file(&path).unwrap();
                    std::os::unix::fs::symlink("/dev/zero", &path).unwrap();
                }
            }
            assert!(board.look().is_err(), "{damage}");
        }
    }
}
