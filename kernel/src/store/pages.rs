//! Pages of tasks. A page begins at a cursor (the sort keys of the last task before it) and not at an offset, so that every
//! page costs as much as the first.

use std::cmp::Ordering;

use rusqlite::types::Value as Sql;
use rusqlite::{Rows, params_from_iter};
use serde_json::Value;

use super::statement::Statement as _;
use super::tasks::{COLUMNS, FROM, read};
use super::tx::Tx;
use crate::model::error::Error;
use crate::model::filter::{Archived, Excerpt as Found, Filter, Sort};
use crate::model::id::{Profile, Tenant};
use crate::model::limits::ReplyCapacity;
use crate::model::status::Status;
use crate::model::task::Task;

impl Tx<'_> {
    /// Returns a page of tasks, and the cursor of the next page.
    pub(crate) fn page_of_tasks(&self, filter: &Filter) -> Result<(Vec<Task>, Option<String>), Error> {
        let order = order(filter.sort);
        let limit = filter.limit.clamp(1, 10_000);
        let mut tasks = Vec::new();
        let mut more = false;
        for part in parts(filter) {
            let (sql, values) = query(part, filter, limit + 1)?;
            let page = self.conn.with("list tasks", &sql, |statement| {
                within(&mut statement.query(params_from_iter(values))?, filter.bytes)
            })?;
            more |= page.more;
            tasks.push(page);
        }
        // A part that was cut by size has more rows. A task of another part that sorts after its last row may have to follow
        // these rows, so it is left for the next page.
        let ends: Vec<Task> =
            tasks.iter().filter(|part| part.more).filter_map(|part| part.rows.last().cloned()).collect();
        let mut tasks: Vec<Task> = tasks.into_iter().flat_map(|part| part.rows).collect();
        tasks.retain(|task| ends.iter().all(|end| compare(order, task, end).is_le()));
        // Each part is in order, so sorting only merges the parts.
        tasks.sort_by(|one, other| compare(order, one, other));
        more |= tasks.len() > limit as usize;
        tasks.truncate(limit as usize);
        let next = tasks
            .last()
            .filter(|_| more)
            .map(|last| Value::Array(order.iter().map(|key| (key.value)(last)).collect()).to_string());
        Ok((tasks, next))
    }
}

/// Reads tasks until their texts reach a number of bytes. The task that exceeds the limit is left out, unless it is the
/// first.
fn within(rows: &mut Rows<'_>, bytes: usize) -> rusqlite::Result<Found<Task>> {
    let (mut page_rows, mut capacity) = (Vec::new(), ReplyCapacity::new(bytes));
    while let Some(row) = rows.next()? {
        let task = read(row)?;
        if !capacity.take(size_of_texts(&task)) && !page_rows.is_empty() {
            return Ok(Found { rows: page_rows, more: true });
        }
        page_rows.push(task);
    }
    Ok(Found { rows: page_rows, more: false })
}

fn size_of_texts(task: &Task) -> usize {
    let texts = [&task.body, &task.result, &task.notes, &task.block_reason, &task.last_failure_error];
    let lists = [&task.skills, &task.artifacts];
    let question = task.question.as_ref().and_then(|question| serde_json::to_string(question).ok());
    let texts = texts.into_iter().flatten().chain(lists.into_iter().flatten()).map(String::len);
    texts.chain(question.map(|text| text.len())).sum()
}

/// Set of statuses whose tasks one index has in the order of the page.
#[derive(Clone, Copy)]
enum Statuses {
    /// All statuses except archived.
    Live,
    In(Status),
}

/// Returns the parts of which a page is merged, each read by a query of its own.
fn parts(filter: &Filter) -> Vec<Statuses> {
    if !filter.statuses.is_empty() {
        let named = Status::ALL.iter().filter(|status| filter.statuses.contains(status));
        return named.map(|status| Statuses::In(*status)).collect();
    }
    match filter.archived {
        Archived::Hide => vec![Statuses::Live],
        Archived::Show => vec![Statuses::Live, Statuses::In(Status::Archived)],
    }
}

fn is_by_time(sort: Sort) -> bool {
    matches!(sort, Sort::Created | Sort::CreatedDesc | Sort::Updated)
}

/// Returns the query of a part of a page, with its values.
fn query(part: Statuses, filter: &Filter, limit: u32) -> Result<(String, Vec<Sql>), Error> {
    let order = order(filter.sort);
    // SQLite uses a partial index only if the query repeats its condition, so the text is the same as in the index.
    let (condition, assignee) = match part {
        Statuses::Live => ("t.status <> 'archived'".to_owned(), "ifnull(t.assignee, '')"),
        // The plus sign keeps the planner from using the index by status, which is in another order.
        Statuses::In(Status::Archived) if is_by_time(filter.sort) => {
            ("+t.status = 'archived'".to_owned(), "t.assignee")
        }
        Statuses::In(status) => (format!("t.status = '{status}'"), "t.assignee"),
    };
    let mut sql = format!("SELECT {COLUMNS} {FROM} WHERE {condition}");
    let mut values: Vec<Sql> = Vec::new();
    let mut equal = |column: &str, value: Option<&str>| {
        if let Some(value) = value {
            sql.push_str(" AND ");
            sql.push_str(column);
            sql.push_str(" = ?");
            values.push(value.to_owned().into());
        }
    };
    equal(assignee, filter.assignee.as_ref().map(Profile::as_str));
    equal("t.tenant", filter.tenant.as_ref().map(Tenant::as_str));
    equal("t.session_id", filter.session.as_deref());
    equal("t.workflow_template_id", filter.workflow.as_deref());
    equal("t.current_step_key", filter.step.as_deref());
    if let Some(text) = &filter.search {
        sql.push_str(" AND (t.title LIKE ? ESCAPE '\\' OR t.body LIKE ? ESCAPE '\\')");
        let pattern = format!("%{}%", literal(text));
        values.extend([pattern.clone().into(), pattern.into()]);
    }
    if let Some(since) = filter.since {
        sql.push_str(" AND t.updated_at >= ?");
        values.push(since.as_micros().into());
    }
    if let Some(cursor) = &filter.cursor {
        keyset(&mut sql, &mut values, order, cursor)?;
    }
    sql.push_str(" ORDER BY ");
    sql.push_str(&order.iter().map(Key::term).collect::<Vec<_>>().join(", "));
    sql.push_str(" LIMIT ?");
    values.push(i64::from(limit).into());
    Ok((sql, values))
}

/// Escapes a text as a pattern that matches itself.
fn literal(text: &str) -> String {
    text.replace('\\', r"\\").replace('%', r"\%").replace('_', r"\_")
}

/// Compares two tasks by the columns of an order.
fn compare(order: &[Key], one: &Task, other: &Task) -> Ordering {
    order
        .iter()
        .map(|key| {
            let ordering = match ((key.value)(one), (key.value)(other)) {
                (Value::Number(one), Value::Number(other)) => one.as_i64().cmp(&other.as_i64()),
                (one, other) => one.as_str().cmp(&other.as_str()),
            };
            if key.descending { ordering.reverse() } else { ordering }
        })
        .find(|ordering| ordering.is_ne())
        .unwrap_or(Ordering::Equal)
}

/// Column of an order.
struct Key {
    column: &'static str,
    descending: bool,
    value: fn(&Task) -> Value,
}

impl Key {
    fn term(&self) -> String {
        format!("{}{}", self.column, if self.descending { " DESC" } else { "" })
    }
}

const ID: Key = Key { column: "t.id", descending: false, value: |task| task.id.as_str().into() };
const PRIORITY: Key = Key { column: "t.priority", descending: true, value: |task| task.priority.into() };
const CREATED: Key =
    Key { column: "t.created_at", descending: false, value: |task| task.created_at.as_micros().into() };
const NEWEST: Key =
    Key { column: "t.created_at", descending: true, value: |task| task.created_at.as_micros().into() };
const LAST: Key = Key { column: "t.id", descending: true, value: |task| task.id.as_str().into() };
const UPDATED: Key =
    Key { column: "t.updated_at", descending: true, value: |task| task.updated_at.as_micros().into() };
const STATUS: Key = Key { column: "t.status", descending: false, value: |task| task.status.as_str().into() };
const TITLE: Key = Key { column: "t.title", descending: false, value: |task| task.title.as_str().into() };
const ASSIGNEE: Key = Key {
    column: "ifnull(t.assignee, '')",
    descending: false,
    value: |task| task.assignee.as_ref().map_or("", Profile::as_str).into(),
};

fn order(sort: Sort) -> &'static [Key] {
    match sort {
        Sort::Priority | Sort::PriorityDesc => &[PRIORITY, CREATED, ID],
        Sort::Created => &[CREATED, ID],
        Sort::CreatedDesc => &[NEWEST, LAST],
        Sort::Status => &[STATUS, PRIORITY, CREATED, ID],
        Sort::Assignee => &[ASSIGNEE, PRIORITY, CREATED, ID],
        Sort::Title => &[TITLE, ID],
        Sort::Updated => &[UPDATED, LAST],
    }
}

/// Adds the condition for rows after the cursor. The first column is compared alone too, so that the index can seek.
///
/// # Errors
/// The cursor is not the cursor of a page in this order.
fn keyset(sql: &mut String, values: &mut Vec<Sql>, order: &[Key], cursor: &str) -> Result<(), Error> {
    let bad = || Error::invalid("cursor", "it is not valid", "start again without a cursor");
    let last: Vec<Value> = serde_json::from_str(cursor).map_err(|_| bad())?;
    if last.len() != order.len() {
        return Err(bad());
    }
    let last: Vec<Sql> = last
        .into_iter()
        .map(|value| match value {
            Value::Number(number) => number.as_i64().map(Sql::from).ok_or_else(bad),
            Value::String(text) => Ok(text.into()),
            Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => Err(bad()),
        })
        .collect::<Result<_, _>>()?;
    let compare = |key: &Key| if key.descending { "<" } else { ">" };
    if let (Some(first), Some(value)) = (order.first(), last.first()) {
        sql.push_str(&[" AND ", first.column, " ", compare(first), "= ? AND ("].concat());
        values.push(value.clone());
    }
    for (depth, key) in order.iter().enumerate() {
        sql.push_str(if depth == 0 { "(" } else { " OR (" });
        for (before, value) in order.iter().zip(&last).take(depth) {
            sql.push_str(&[before.column, " = ? AND "].concat());
            values.push(value.clone());
        }
        sql.push_str(&[key.column, " ", compare(key), " ?)"].concat());
        values.push(last[depth].clone());
    }
    sql.push(')');
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Bench, alice, titled};
    use crate::{Detach, NewTask, TaskId};

    fn some_of_everything() -> Bench {
        let bench = Bench::new();
        for turn in 0..24 {
            bench.clock.advance(std::time::Duration::from_secs(turn % 5));
            let assignee = (turn % 3 != 0).then(|| format!("profile-{}", turn % 2).parse().unwrap());
            let priority = i64::try_from(turn % 4).unwrap();
            let task = bench
                .create(NewTask {
                    assignee,
                    priority,
                    body: Some("x".repeat(usize::try_from(turn % 9).unwrap())),
                    ..titled(&format!("task {}", turn % 7))
                })
                .id;
            if turn % 2 == 0 {
                bench.call(move |board| board.archive(&task, Detach::Refuse, &alice())).unwrap();
            }
        }
        bench
    }

    fn page(bench: &Bench, filter: &Filter) -> crate::Page {
        bench.readers.with(|view| view.tasks(filter)).unwrap()
    }

    #[test]
    fn pages_put_together_are_the_whole_list_in_every_order() {
        let bench = some_of_everything();
        for sort in Sort::ALL {
            for archived in [Archived::Hide, Archived::Show] {
                let all = Filter { sort: *sort, archived, limit: 1000, ..Filter::default() };
                let whole = page(&bench, &all).tasks;
                assert_eq!(whole.len(), if archived == Archived::Show { 24 } else { 12 });
                for (limit, bytes) in [(5, usize::MAX), (100, 12), (100, 0), (3, 12)] {
                    let mut cursor = None;
                    let mut pages = Vec::new();
                    loop {
                        let next = page(&bench, &Filter { limit, cursor, bytes, ..all.clone() });
                        pages.extend(next.tasks);
                        cursor = next.next;
                        if cursor.is_none() {
                            break;
                        }
                    }
                    assert_eq!(pages, whole, "{sort:?} {archived:?} {limit} {bytes}");
                }
                let sorted = whole.windows(2).all(|pair| compare(order(*sort), &pair[0], &pair[1]).is_lt());
                assert!(sorted, "{sort:?} {archived:?}");
            }
        }
    }

    #[test]
    fn a_list_has_several_statuses_a_text_and_what_has_changed_since() {
        let bench = Bench::new();
        let make = |title: &str, body: &str| {
            bench.clock.advance(std::time::Duration::from_secs(10));
            bench.create(NewTask { body: Some(body.to_owned()), ..titled(title) })
        };
        let old = make("Figures of May", "sum");
        let percent = make("plain", "100% of a_b");
        let new = make("other", "FIGURES too");
        let child = bench.child_of(&[&new.id]);
        let ids = |filter: Filter| -> Vec<TaskId> {
            let mut found: Vec<TaskId> =
                page(&bench, &filter).tasks.into_iter().map(|task| task.id).collect();
            found.sort();
            found
        };
        let sorted = |mut ids: Vec<TaskId>| {
            ids.sort();
            ids
        };
        let search = |text: &str| ids(Filter { search: Some(text.to_owned()), ..Filter::default() });
        assert_eq!(search("figures"), sorted(vec![old.id.clone(), new.id.clone()]));
        assert_eq!(search("0% of"), std::slice::from_ref(&percent.id));
        assert_eq!(search("a_b"), std::slice::from_ref(&percent.id));
        assert!(search("a%b").is_empty(), "a pattern is a text");
        let of = |statuses: &[Status]| ids(Filter { statuses: statuses.to_vec(), ..Filter::default() });
        assert_eq!(of(&[Status::Todo]), std::slice::from_ref(&child));
        assert_eq!(of(&[Status::Ready, Status::Todo, Status::Ready]).len(), 4);
        let since = ids(Filter { since: Some(new.created_at), ..Filter::default() });
        assert_eq!(since, sorted(vec![new.id, child]));
    }

    #[test]
    fn a_page_in_the_common_orders_is_read_from_an_index() {
        let bench = Bench::new();
        let conn = rusqlite::Connection::open(&bench.path).unwrap();
        let acme = Filter { tenant: Some("acme".parse().unwrap()), ..Filter::default() };
        let bob = Filter { assignee: Some("bob".parse().unwrap()), ..Filter::default() };
        let by = |sort| Filter { sort, ..Filter::default() };
        let orders = [Sort::Priority, Sort::Created, Sort::CreatedDesc, Sort::Updated].map(by);
        for filter in [acme, bob].into_iter().chain(orders) {
            for part in parts(&Filter { archived: Archived::Show, ..filter.clone() }) {
                let (sql, values) = query(part, &filter, 50).unwrap();
                let mut statement = conn.prepare(&format!("EXPLAIN QUERY PLAN {sql}")).unwrap();
                let plan: Vec<String> = statement
                    .query_map(params_from_iter(values), |row| row.get("detail"))
                    .unwrap()
                    .collect::<Result<_, _>>()
                    .unwrap();
                let sorts = plan.iter().any(|step| step.contains("TEMP B-TREE") || step.ends_with("SCAN t"));
                assert!(!sorts, "{filter:?}: {plan:?}");
            }
        }
    }
}
