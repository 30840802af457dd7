//! Queries of a page of tasks: which index has the tasks of a filter, and from which place on.

use std::cmp::Ordering;

use rusqlite::types::Value as Sql;
use serde_json::Value;

use super::page_order::{Key, RANKS, order};
use super::tasks::{COLUMNS, FROM};
use crate::model::error::Error;
use crate::model::filter::{Archived, Filter, Sort};
use crate::model::id::{Profile, Tenant};
use crate::model::status::Status;

pub(super) fn limit(filter: &Filter) -> u32 {
    filter.limit.clamp(1, 10_000)
}

/// Query whose rows are in the order of a page.
pub(super) struct Source {
    pub(super) sql: String,
    pub(super) values: Vec<Sql>,
}

/// Conditions, joined by AND, with their values.
#[derive(Clone, Default)]
struct Condition {
    sql: String,
    values: Vec<Sql>,
}

impl Condition {
    fn and(mut self, sql: &str, values: impl IntoIterator<Item = Sql>) -> Self {
        if !self.sql.is_empty() {
            self.sql.push_str(" AND ");
        }
        self.sql.push_str(sql);
        self.values.extend(values);
        self
    }

    fn with(self, other: &Condition) -> Self {
        if other.sql.is_empty() { self } else { self.and(&other.sql, other.values.iter().cloned()) }
    }

    fn equal(self, column: &str, value: Option<&str>) -> Self {
        match value {
            Some(value) => self.and(&format!("{column} = ?"), [value.to_owned().into()]),
            None => self,
        }
    }

    fn one_of(self, statuses: &[Status]) -> Self {
        let names: Vec<String> = statuses.iter().map(|status| format!("'{status}'")).collect();
        self.and(&format!("t.status IN ({})", names.join(", ")), [])
    }
}

/// Tasks that an index has, by the condition that selects them there.
pub(super) struct Part {
    index: &'static str,
    condition: Condition,
}

impl Part {
    /// Returns the query of the number of tasks of the part, which counts at most one more than `few`.
    pub(super) fn count(&self, few: u32) -> Source {
        let Part { index, condition: Condition { sql, values } } = self;
        let sql =
            format!("SELECT count(*) FROM (SELECT 1 FROM tasks t INDEXED BY {index} WHERE {sql} LIMIT ?)");
        let limit = i64::from(few) + 1;
        Source { sql, values: values.iter().cloned().chain([limit.into()]).collect() }
    }

    /// Returns the query of the tasks of the part, with further conditions.
    fn source(&self, further: &[&Condition], order: &[Key], limit: u32) -> Source {
        let condition = further.iter().fold(self.condition.clone(), |all, one| all.with(one));
        let from = FROM.replacen("tasks t", &format!("tasks t INDEXED BY {}", self.index), 1);
        let terms: Vec<String> = order.iter().map(Key::term).collect();
        let sql =
            format!("SELECT {COLUMNS} {from} WHERE {} ORDER BY {} LIMIT ?", condition.sql, terms.join(", "));
        let mut values = condition.values;
        values.push(i64::from(limit).into());
        Source { sql, values }
    }
}

/// Filter, with the statuses that it selects and the sort keys of its cursor.
pub(super) struct Selection<'a> {
    filter: &'a Filter,
    statuses: Vec<Status>,
    after: Option<Vec<Sql>>,
}

impl<'a> Selection<'a> {
    /// # Errors
    /// The cursor is not the cursor of a page in this order.
    pub(super) fn of(filter: &'a Filter) -> Result<Self, Error> {
        let is_selected = |status: &&Status| {
            if filter.statuses.is_empty() {
                **status != Status::Archived || filter.archived == Archived::Show
            } else {
                filter.statuses.contains(status)
            }
        };
        let statuses = Status::ALL.iter().filter(is_selected).copied().collect();
        let after = filter.cursor.as_deref().map(|cursor| opened(order(filter.sort), cursor)).transpose()?;
        Ok(Self { filter, statuses, after })
    }

    /// Returns true if the page is in the order of assignees, and has the tasks of any of them.
    pub(super) fn is_by_assignee(&self) -> bool {
        self.filter.sort == Sort::Assignee && self.filter.assignee.is_none()
    }

    fn assignee(&self) -> Option<&str> {
        self.filter.assignee.as_ref().map(Profile::as_str)
    }

    fn tenant(&self) -> Option<&str> {
        self.filter.tenant.as_ref().map(Tenant::as_str)
    }

    /// Returns the first sort key of the cursor, if it is a text.
    pub(super) fn first_key(&self) -> Option<&str> {
        match self.after.as_deref()?.first()? {
            Sql::Text(text) => Some(text),
            Sql::Null | Sql::Integer(_) | Sql::Real(_) | Sql::Blob(_) => None,
        }
    }

    /// Returns all conditions but those on the status and on the place in the order.
    fn rest(&self) -> Condition {
        let filter = self.filter;
        let mut rest = Condition::default()
            .equal("t.assignee", self.assignee())
            .equal("t.tenant", self.tenant())
            .equal("t.session_id", filter.session.as_deref())
            .equal("t.workflow_template_id", filter.workflow.as_deref())
            .equal("t.current_step_key", filter.step.as_deref());
        if let Some(text) = &filter.search {
            let pattern = Sql::from(format!("%{}%", literal(text)));
            let like = "(t.title LIKE ? ESCAPE '\\' OR t.body LIKE ? ESCAPE '\\')";
            rest = rest.and(like, [pattern.clone(), pattern]);
        }
        if let Some(since) = filter.since {
            rest = rest.and("t.updated_at >= ?", [since.as_micros().into()]);
        }
        rest
    }

    /// Returns the conditions that may select few tasks, each with the parts that have them. A condition is left out if an
    /// index has its tasks in the order of the page.
    pub(super) fn narrow_conditions(&self) -> Vec<Vec<Part>> {
        let filter = self.filter;
        let of_client = [
            ("tasks_session", "t.session_id", filter.session.as_deref()),
            ("tasks_workflow", "t.workflow_template_id", filter.workflow.as_deref()),
            ("tasks_step", "t.current_step_key", filter.step.as_deref()),
        ];
        let mut narrow: Vec<Vec<Part>> = of_client
            .into_iter()
            .filter(|(_, _, value)| value.is_some())
            .map(|(index, column, value)| {
                vec![Part { index, condition: Condition::default().equal(column, value) }]
            })
            .collect();
        let is_ranked = is_ranked(filter.sort);
        let with_status = |index, column, value: Option<&str>| {
            vec![Part { index, condition: Condition::default().equal(column, value).one_of(&self.statuses) }]
        };
        // The tasks of each status are read by the time, or by the assignee or the tenant if these have few of them.
        let is_timed = is_timed(filter.sort);
        if self.assignee().is_some() && !is_ranked && !is_timed {
            narrow.push(with_status("tasks_assignee", "t.assignee", self.assignee()));
        }
        if self.tenant().is_some()
            && !is_timed
            && (!is_ranked || self.assignee().is_some() || filter.sort == Sort::Assignee)
        {
            narrow.push(with_status("tasks_tenant", "t.tenant", self.tenant()));
        }
        // The index of titles has the tasks of all statuses.
        if filter.sort == Sort::Title && self.statuses.len() < Status::ALL.len() {
            narrow.push(with_status("tasks_status", "", None));
        }
        if let Some(since) = filter.since.filter(|_| filter.sort != Sort::Updated) {
            let changed = Condition::default().and("t.updated_at >= ?", [since.as_micros().into()]);
            narrow.push(self.by_status("tasks_updated", &changed));
        }
        narrow
    }

    /// Returns the tasks of each status as parts, with a further condition.
    fn by_status(&self, index: &'static str, further: &Condition) -> Vec<Part> {
        let statuses = self.statuses.iter();
        let condition =
            |status| Condition::default().and(&format!("t.status = '{status}'"), []).with(further);
        statuses.map(|status| Part { index, condition: condition(status) }).collect()
    }

    /// Returns the tasks of the assignee or of the tenant, by status, for an order by a time. Their index has another order.
    pub(super) fn of_owner(&self) -> Vec<Part> {
        let base = self.base();
        if is_timed(self.filter.sort) && (self.assignee().is_some() || self.tenant().is_some()) {
            self.by_status(base.index, &base.condition)
        } else {
            Vec::new()
        }
    }

    /// Returns the queries of few tasks, which sort them.
    pub(super) fn sorted(&self, parts: &[Part]) -> Vec<Source> {
        let order = order(self.filter.sort);
        let (statuses, rest) = (Condition::default().one_of(&self.statuses), self.rest());
        let place = self.after.as_deref().map_or_else(Condition::default, |after| keyset(order, after));
        let limit = limit(self.filter) + 1;
        parts.iter().map(|part| part.source(&[&statuses, &rest, &place], order, limit)).collect()
    }

    /// Returns the queries that read the page in its order.
    pub(super) fn in_order(&self) -> Vec<Source> {
        let order = order(self.filter.sort);
        let limit = limit(self.filter) + 1;
        let rest = self.rest();
        match self.filter.sort {
            Sort::Priority | Sort::PriorityDesc | Sort::Status | Sort::Assignee => {
                self.ranked(&self.base(), &rest)
            }
            Sort::Created | Sort::CreatedDesc | Sort::Updated => {
                let index = if self.filter.sort == Sort::Updated { "tasks_updated" } else { "tasks_created" };
                let parts = self.by_status(index, &self.after_row(order)).into_iter();
                parts.map(|part| part.source(&[&rest], order, limit)).collect()
            }
            Sort::Title => {
                let part =
                    Part { index: "tasks_title", condition: Condition::default().one_of(&self.statuses) };
                vec![part.source(&[&self.after_row(order), &rest], order, limit)]
            }
        }
    }

    /// Returns the queries of the tasks of one assignee, in the order of the page. The empty name stands for none.
    pub(super) fn of_assignee(&self, assignee: &str) -> Vec<Source> {
        let condition = Condition::default();
        let condition = if assignee.is_empty() {
            condition.and("t.assignee IS NULL", [])
        } else {
            condition.equal("t.assignee", Some(assignee))
        };
        let of_cursor = self.first_key().is_none_or(|first| first == assignee);
        let one = Selection { filter: self.filter, statuses: self.statuses.clone(), after: None };
        let selection = if of_cursor { self } else { &one };
        selection.ranked(&Part { index: "tasks_assignee", condition }, &self.rest())
    }

    /// Returns the index of the tasks of a status by priority and age: of an assignee, of a tenant, or of all tasks.
    fn base(&self) -> Part {
        let condition = Condition::default();
        match (self.assignee(), self.tenant()) {
            (Some(_), _) => {
                Part { index: "tasks_assignee", condition: condition.equal("t.assignee", self.assignee()) }
            }
            (None, Some(_)) => {
                Part { index: "tasks_tenant", condition: condition.equal("t.tenant", self.tenant()) }
            }
            (None, None) => Part { index: "tasks_status", condition },
        }
    }

    /// Returns the queries of the tasks of each status by priority and age.
    fn ranked(&self, base: &Part, rest: &Condition) -> Vec<Source> {
        let (order, limit) = (order(self.filter.sort), limit(self.filter) + 1);
        let mut sources = Vec::new();
        for status in &self.statuses {
            let condition = base.condition.clone().and(&format!("t.status = '{status}'"), []);
            let part = Part { index: base.index, condition };
            // The order of the index begins after the columns that have one value in the part.
            let ranks = &order[order.len() - RANKS..];
            for place in self.places(*status) {
                sources.push(part.source(&[&place, rest], ranks, limit));
            }
        }
        sources
    }

    /// Returns the ranges of the tasks of a status after the cursor. The order descends in the priority and ascends in the
    /// age, so that a range of one index is not enough: the same priority is one, and the lower ones are another.
    fn places(&self, status: Status) -> Vec<Condition> {
        let Some(after) = &self.after else { return vec![Condition::default()] };
        if self.filter.sort == Sort::Status {
            match self.first_key().map(|first| status.as_str().cmp(first)) {
                Some(Ordering::Less) => return Vec::new(),
                Some(Ordering::Greater) => return vec![Condition::default()],
                Some(Ordering::Equal) | None => {}
            }
        }
        let [priority, created, id] = &after[after.len() - RANKS..] else { return Vec::new() };
        let same = "t.priority = ? AND (t.created_at, t.id) > (?, ?)";
        vec![
            Condition::default().and(same, [priority.clone(), created.clone(), id.clone()]),
            Condition::default().and("t.priority < ?", [priority.clone()]),
        ]
    }

    /// Returns the condition for tasks after the cursor, for an order that has one direction.
    fn after_row(&self, order: &[Key]) -> Condition {
        let Some(after) = &self.after else { return Condition::default() };
        let columns: Vec<&str> = order.iter().map(|key| key.column).collect();
        let marks = vec!["?"; order.len()].join(", ");
        let sign = if order.iter().any(|key| key.descending) { "<" } else { ">" };
        Condition::default().and(&format!("({}) {sign} ({marks})", columns.join(", ")), after.iter().cloned())
    }
}

/// Returns true for an order by priority and age, within a status or an assignee.
fn is_ranked(sort: Sort) -> bool {
    match sort {
        Sort::Priority | Sort::PriorityDesc | Sort::Status | Sort::Assignee => true,
        Sort::Created | Sort::CreatedDesc | Sort::Title | Sort::Updated => false,
    }
}

/// Returns true for an order by a time.
fn is_timed(sort: Sort) -> bool {
    matches!(sort, Sort::Created | Sort::CreatedDesc | Sort::Updated)
}

/// Escapes a text as a pattern that matches itself.
fn literal(text: &str) -> String {
    text.replace('\\', r"\\").replace('%', r"\%").replace('_', r"\_")
}

/// Returns the sort keys of the task before a page.
///
/// # Errors
/// The cursor is not the cursor of a page in this order.
fn opened(order: &[Key], cursor: &str) -> Result<Vec<Sql>, Error> {
    let bad = || Error::invalid("cursor", "it is not valid", "start again without a cursor");
    let last: Vec<Value> = serde_json::from_str(cursor).map_err(|_| bad())?;
    if last.len() != order.len() {
        return Err(bad());
    }
    let opened = last.into_iter().map(|value| match value {
        Value::Number(number) => number.as_i64().map(Sql::from).ok_or_else(bad),
        Value::String(text) => Ok(text.into()),
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => Err(bad()),
    });
    opened.collect()
}

/// Returns the condition for rows after the cursor, for an order of any directions. No index seeks by it.
fn keyset(order: &[Key], after: &[Sql]) -> Condition {
    let mut places = Vec::new();
    let mut values = Vec::new();
    for (depth, key) in order.iter().enumerate() {
        let mut place: Vec<String> =
            order.iter().take(depth).map(|before| format!("{} = ?", before.column)).collect();
        place.push(format!("{} {} ?", key.column, if key.descending { "<" } else { ">" }));
        places.push(format!("({})", place.join(" AND ")));
        values.extend(after.iter().take(depth + 1).cloned());
    }
    Condition::default().and(&format!("({})", places.join(" OR ")), values)
}
