//! Reads of a board whose cost does not grow with the board: the operations of `SQLite` are counted on a small board and on
//! one that is ten times as large.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::tx::Database;
use crate::board::view::View;
use crate::model::error::Error;
use crate::testing::{Bench, alice};
use crate::{
    EventFilter, Filter, Letters, ManualClock, MissionLimits, Profile, Sort, Status, TaskId, Tenant,
    Timestamp,
};

/// Tasks of the small board: more than a page of any read has.
const FEW: u32 = 3_000;

/// Makes tasks in every state but running, each with its events, comments and runs.
fn grow(path: &Path, tasks: u32) {
    let conn = rusqlite::Connection::open(path).unwrap();
    let rows = format!(
        "BEGIN;
         CREATE TEMP TABLE n (i INTEGER PRIMARY KEY);
         WITH RECURSIVE c (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM c WHERE i < {tasks}) INSERT INTO n SELECT i FROM c;
         INSERT INTO tasks (id, title, body, assignee, status, priority, tenant, workspace, created_at, updated_at, work_by,
             completed_at, block_kind, not_before, consecutive_failures, last_block_kind)
           SELECT printf('t_%08x', i * 7919 % 1000003), 'task ' || (i * 31 % 1009), 'What is to be done.',
             CASE WHEN i % 9 THEN 'profile-' || (i % 20) END, s, i % 5, CASE WHEN i % 2 THEN 'acme' ELSE '' END,
             CASE i % 50 WHEN 0 THEN 'dir:/w' WHEN 1 THEN 'worktree:/r' ELSE 'scratch' END, i, i, 'worker:bob',
             CASE WHEN s IN ('done', 'archived') THEN i END, CASE s WHEN 'blocked' THEN 'needs_input' END,
             CASE s WHEN 'scheduled' THEN 100 END, CASE WHEN i % 100 = 3 THEN 1 ELSE 0 END,
             CASE WHEN i % 70 = 5 THEN 'needs_input' END
           FROM (SELECT i, CASE i % 8 WHEN 0 THEN 'triage' WHEN 1 THEN 'todo' WHEN 2 THEN 'scheduled' WHEN 3 THEN 'ready'
             WHEN 4 THEN 'review' WHEN 5 THEN 'blocked' WHEN 6 THEN 'done' ELSE 'archived' END AS s FROM n);
         INSERT INTO task_events (task_id, tenant, kind, created_at) SELECT t.id, t.tenant, 'created', t.created_at FROM tasks t;
         INSERT INTO task_events (task_id, tenant, kind, created_at) SELECT t.id, t.tenant, 'edited', t.created_at FROM tasks t;
         INSERT INTO task_comments (task_id, author, author_kind, body, created_at)
           SELECT id, 'ann', 'person', 'A word.', created_at FROM tasks;
         INSERT INTO task_runs (task_id, profile, status, outcome, holder, started_at, ended_at)
           SELECT id, assignee, 'done', 'completed', 'hand', created_at, created_at FROM tasks;
         COMMIT;"
    );
    conn.execute_batch(&rows).unwrap();
}

/// Read of a board by a verb.
type Read = fn(&View<'_>) -> Result<(), Error>;

fn acme() -> Tenant {
    "acme".parse().unwrap()
}

fn bob() -> Profile {
    "profile-7".parse().unwrap()
}

/// Returns the id of a task that every board has.
fn first() -> TaskId {
    format!("t_{:08x}", 7919).parse().unwrap()
}

const READS: [(&str, Read); 29] = [
    ("status", |view| view.tasks_by_status(None, None).map(drop)),
    ("status of an assignee", |view| view.tasks_by_status(None, Some(&bob())).map(drop)),
    ("stats", |view| view.stats(None).map(drop)),
    ("assignees", |view| view.assignees("", 100).map(drop)),
    ("diagnostics", |view| view.diagnose(None).map(drop)),
    ("diagnostics of a task", |view| view.diagnose(Some(&first())).map(drop)),
    ("waiting tasks", |view| view.waiting_tasks(None, None, 50).map(drop)),
    ("waiting tasks of a tenant", |view| view.waiting_tasks(Some(&acme()), None, 50).map(drop)),
    ("show", |view| view.expect_task(&first()).map(drop)),
    ("comments", |view| view.thread(&first(), None, &alice()).map(drop)),
    ("runs", |view| view.history(&first(), &alice()).map(drop)),
    ("parents", |view| view.some_parents(&first()).map(drop)),
    ("children", |view| view.some_children(&first()).map(drop)),
    ("cards", |view| view.card_counts(&[&first()]).map(drop)),
    ("ids", |view| view.tasks_beginning(&"t_0".parse().unwrap(), None, 10).map(drop)),
    ("ids of a tenant", |view| view.tasks_beginning(&"t_0".parse().unwrap(), Some(&acme()), 10).map(drop)),
    ("events", |view| view.some_events(&EventFilter { limit: 50, ..EventFilter::default() }).map(drop)),
    ("events of a tenant", |view| {
        view.some_events(&EventFilter { limit: 50, tenant: Some(acme()), ..EventFilter::default() }).map(drop)
    }),
    ("events of a task", |view| {
        view.some_events(&EventFilter { task: Some(first()), ..EventFilter::default() }).map(drop)
    }),
    ("the last event", |view| view.last_event().map(drop)),
    ("holds", |view| view.holds().map(drop)),
    ("workplaces", |view| view.workplaces().map(drop)),
    ("directories", |view| view.directories_in_use().map(drop)),
    ("archived worktrees", |view| view.archived_worktrees("", 10).map(drop)),
    ("the next wake", |view| view.next_wake().map(drop)),
    ("messages to people", |view| {
        view.outbox(&Letters { limit: 50, ..Letters::default() }, &alice()).map(drop)
    }),
    ("missions", |view| view.missions(None, &MissionLimits::default(), &alice()).map(drop)),
    ("missions to review", |view| view.tx.due_reviews(Some(1), Some(view.now()), 9).map(drop)),
    ("the oldest ready task", |view| view.tx.oldest_ready().map(drop)),
];

/// Returns the number of operations of each read.
fn operations(path: &Path) -> Vec<u64> {
    let clock = ManualClock::new(Timestamp::from_secs(1_000_000));
    let database = Database::reader(path).unwrap();
    let count = Arc::new(AtomicU64::new(0));
    let counted = Arc::clone(&count);
    let step = move || {
        counted.fetch_add(1, Ordering::Relaxed);
        false
    };
    database.conn.progress_handler(1, Some(step)).unwrap();
    let count_of = |read: Read| {
        let before = count.load(Ordering::Relaxed);
        let tx = database.read().unwrap();
        read(&View { tx: &tx, clock: &clock }).unwrap();
        count.load(Ordering::Relaxed) - before
    };
    let pages = Sort::ALL.iter().map(|sort| {
        let before = count.load(Ordering::Relaxed);
        let tx = database.read().unwrap();
        let view = View { tx: &tx, clock: &clock };
        let filter = Filter { sort: *sort, limit: 50, ..Filter::default() };
        let second = Filter { cursor: view.tasks(&filter).unwrap().next, ..filter.clone() };
        assert!(second.cursor.is_some());
        view.tasks(&second).unwrap();
        if !matches!(sort, Sort::Priority | Sort::PriorityDesc | Sort::Status | Sort::Assignee) {
            // Of few tasks that a filter selects, these orders sort all.
            return count.load(Ordering::Relaxed) - before;
        }
        view.tasks(&Filter { statuses: vec![Status::Ready], ..filter.clone() }).unwrap();
        view.tasks(&Filter { assignee: Some(bob()), ..filter.clone() }).unwrap();
        view.tasks(&Filter { tenant: Some(acme()), ..filter }).unwrap();
        count.load(Ordering::Relaxed) - before
    });
    READS.iter().map(|(_, read)| count_of(*read)).chain(pages.collect::<Vec<_>>()).collect()
}

#[test]
fn a_board_ten_times_as_large_is_read_with_at_most_twice_the_operations() {
    let [small, large] = [FEW, 10 * FEW].map(|tasks| {
        let bench = Bench::new();
        grow(&bench.path, tasks);
        operations(&bench.path)
    });
    let sorts = Sort::ALL.iter().map(|sort| sort.as_str());
    for (name, (small, large)) in
        READS.iter().map(|(name, _)| *name).chain(sorts).zip(small.iter().zip(&large))
    {
        assert!(*large <= 2 * small + 500, "{name}: {small} operations, and {large} on the larger board");
    }
}
