//! Counts for the cards of tasks. One statement serves any number of tasks, and reads a limited number of rows for each.

use std::collections::BTreeMap;

use rusqlite::{Row, params};

use super::convert::to_json;
use super::statement::Statement as _;
use super::tx::Tx;
use crate::model::card::{CardCounts, ChildCounts};
use crate::model::error::Error;
use crate::model::id::TaskId;
use crate::model::limits::COUNTED;

/// Counts for the tasks in the JSON list `?1`. Each count reads at most `?2` rows from the start of an index.
const COUNTS: &str = "SELECT j.value AS id, \
     (SELECT count(*) FROM (SELECT 1 FROM task_comments c WHERE c.task_id = j.value LIMIT ?2)) AS comments, \
     (SELECT count(*) FROM (SELECT 1 FROM task_links l WHERE l.child_id = j.value LIMIT ?2)) AS parents, \
     (SELECT count(*) FROM (SELECT 1 FROM task_links l WHERE l.parent_id = j.value LIMIT ?2)) AS children, \
     (SELECT count(completed_at) FROM (SELECT t.completed_at FROM task_links l JOIN tasks t ON t.id = l.child_id \
        WHERE l.parent_id = j.value LIMIT ?2)) AS done, \
     (SELECT ifnull(sum(cost_micros), 0) FROM (SELECT u.cost_micros FROM run_usage u WHERE u.task_id = j.value \
        ORDER BY u.run_id DESC LIMIT ?2)) AS cost \
     FROM json_each(?1) j ORDER BY j.key";

impl Tx<'_> {
    /// Returns the counts for the cards of these tasks, in the given order.
    pub(crate) fn card_counts(&self, tasks: &[&TaskId]) -> Result<Vec<CardCounts>, Error> {
        let params = params![to_json(&tasks)?, COUNTED];
        self.conn.list("count what the cards show", COUNTS, params, read)
    }

    /// Returns the titles of these tasks.
    pub(crate) fn titles(&self, tasks: &[&TaskId]) -> Result<BTreeMap<TaskId, String>, Error> {
        let sql = "SELECT t.id, t.title FROM json_each(?1) j JOIN tasks t ON t.id = j.value";
        let read = |row: &Row<'_>| Ok((row.get(0)?, row.get(1)?));
        let rows: Vec<(TaskId, String)> = self.conn.list("read the titles", sql, [to_json(&tasks)?], read)?;
        Ok(rows.into_iter().collect())
    }
}

fn read(row: &Row<'_>) -> rusqlite::Result<CardCounts> {
    let count = |column: &str| row.get::<_, i64>(column).map(|count| count.max(0).unsigned_abs());
    let (parents, total) = (count("parents")?, count("children")?);
    Ok(CardCounts {
        comments: count("comments")?,
        links: parents.saturating_add(total),
        children: ChildCounts { done: count("done")?, total },
        cost_usd_micros: count("cost")?,
    })
}

#[cfg(test)]
mod tests {
    use rusqlite::{Connection, StatementStatus};

    use super::*;
    use crate::testing::{Bench, alice, titled};

    /// Returns the work of the statement, in steps of the virtual machine of `SQLite`.
    fn steps(bench: &Bench, tasks: &[TaskId]) -> i32 {
        let conn = Connection::open(&bench.path).unwrap();
        let mut statement = conn.prepare(COUNTS).unwrap();
        let ids = serde_json::to_string(tasks).unwrap();
        let read = statement.query_map(params![ids, COUNTED], read).unwrap().count();
        assert_eq!(read, tasks.len());
        statement.get_status(StatementStatus::VmStep)
    }

    fn fill(bench: &Bench, from: usize, tasks: usize) {
        let to = from + tasks;
        let conn = Connection::open(&bench.path).unwrap();
        conn.execute_batch(&format!(
            "INSERT INTO tasks (id, title, status, created_at, updated_at) \
               WITH RECURSIVE n (i) AS (SELECT {from} UNION ALL SELECT i + 1 FROM n WHERE i + 1 < {to}) \
               SELECT printf('t_%08x', i), 'more', 'triage', 0, 0 FROM n; \
             INSERT INTO task_comments (task_id, author, author_kind, body, created_at) \
               SELECT id, 'ann', 'person', 'x', 0 FROM tasks WHERE title = 'more';"
        ))
        .unwrap();
    }

    #[test]
    fn the_counts_of_a_card_are_those_of_its_task_in_the_order_that_was_asked() {
        let bench = Bench::new();
        let parent = bench.create(titled("parent")).id;
        let child = bench.child_of(&[&parent]);
        let other = bench.create(titled("other")).id;
        let on = parent.clone();
        bench.call(move |board| board.comment(&on, "hello", None, &alice()).map(drop)).unwrap();
        let conn = Connection::open(&bench.path).unwrap();
        conn.execute("UPDATE tasks SET completed_at = 1, status = 'done' WHERE id = ?1", [&child]).unwrap();
        let ids = [&child, &other, &parent];
        let counts = bench.readers.with(|view| view.card_counts(&ids)).unwrap();
        let links = |done, total| ChildCounts { done, total };
        assert_eq!(
            counts,
            [
                CardCounts { links: 1, ..CardCounts::default() },
                CardCounts::default(),
                CardCounts { comments: 1, links: 1, children: links(1, 1), cost_usd_micros: 0 },
            ]
        );
    }

    #[test]
    fn the_cards_of_a_page_cost_the_same_among_ten_thousand_tasks_as_among_few() {
        let bench = Bench::new();
        fill(&bench, 0, 50);
        let page: Vec<TaskId> = (0..50).map(|at| format!("t_{at:08x}").parse().unwrap()).collect();
        let few = steps(&bench, &page);
        fill(&bench, 50, 10_000);
        // The second fill has given each task of the page a second comment.
        let many = steps(&bench, &page);
        assert!(many <= few + 50 * 20, "{few} steps among 50 tasks, {many} among 10,050");
    }

    #[test]
    fn a_task_with_more_than_is_counted_costs_no_more_than_what_is_counted() {
        let bench = Bench::new();
        let task = bench.create(titled("busy")).id;
        let add = |comments: i64| {
            let sql = "INSERT INTO task_comments (task_id, author, author_kind, body, created_at) \
                 WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?2) \
                 SELECT ?1, 'ann', 'person', 'x', 0 FROM n";
            Connection::open(&bench.path).unwrap().execute(sql, params![task, comments]).unwrap();
        };
        add(i64::from(COUNTED));
        let full = steps(&bench, std::slice::from_ref(&task));
        add(10 * i64::from(COUNTED));
        assert_eq!(steps(&bench, std::slice::from_ref(&task)), full);
        let counts = bench.readers.with(|view| view.card_counts(&[&task])).unwrap();
        assert_eq!(counts[0].comments, u64::from(COUNTED));
    }
}
