//! Pages of tasks, by key and not by offset: any page costs what the first does.

use rusqlite::types::Value as Sql;
use rusqlite::{Connection, params_from_iter};
use serde_json::Value;

use super::convert::Step as _;
use super::tasks::{TASK, read};
use crate::error::Error;
use crate::filter::{Archived, Filter, Sort};
use crate::id::{Profile, Tenant};
use crate::status::Status;
use crate::task::Task;

/// Lists tasks, and the cursor of the next page.
pub(crate) fn list(conn: &Connection, filter: &Filter) -> Result<(Vec<Task>, Option<String>), Error> {
    let mut sql = format!("{TASK} WHERE 1");
    let mut values: Vec<Sql> = Vec::new();
    let mut equal = |column: &str, value: Option<&str>| {
        if let Some(value) = value {
            sql.push_str(" AND ");
            sql.push_str(column);
            sql.push_str(" = ?");
            values.push(value.to_owned().into());
        }
    };
    equal(
        if filter.status.is_some() { "t.assignee" } else { "ifnull(t.assignee, '')" },
        filter.assignee.as_ref().map(Profile::as_str),
    );
    equal("t.status", filter.status.map(Status::as_str));
    equal("t.tenant", filter.tenant.as_ref().map(Tenant::as_str));
    equal("t.session_id", filter.session.as_deref());
    equal("t.workflow_template_id", filter.workflow.as_deref());
    equal("t.current_step_key", filter.step.as_deref());
    if let Some(me) = &filter.mine {
        sql.push_str(" AND (t.assignee = ? OR t.created_by = ?)");
        values.extend([Sql::from(me.clone()), Sql::from(me.clone())]);
    }
    if filter.archived == Archived::Hide && filter.status.is_none() {
        sql.push_str(" AND t.status <> 'archived'");
    }
    let order = order(filter.sort);
    if let Some(cursor) = &filter.cursor {
        keyset(&mut sql, &mut values, order, cursor)?;
    }
    sql.push_str(" ORDER BY ");
    sql.push_str(&order.iter().map(Key::term).collect::<Vec<_>>().join(", "));
    sql.push_str(" LIMIT ?");
    let limit = filter.limit.clamp(1, 10_000);
    values.push(i64::from(limit + 1).into());
    let mut tasks: Vec<Task> = conn
        .prepare_cached(&sql)
        .and_then(|mut statement| statement.query_map(params_from_iter(values), read)?.collect())
        .step("list tasks")?;
    let more = tasks.len() > limit as usize;
    tasks.truncate(limit as usize);
    let next = tasks
        .last()
        .filter(|_| more)
        .map(|last| Value::Array(order.iter().map(|key| (key.value)(last)).collect()).to_string());
    Ok((tasks, next))
}

/// One column of an order.
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

/// Continues after the row that the cursor names.
fn keyset(sql: &mut String, values: &mut Vec<Sql>, order: &[Key], cursor: &str) -> Result<(), Error> {
    let bad =
        || Error::invalid("cursor", "it is not one that a list returned", "start again without a cursor");
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
