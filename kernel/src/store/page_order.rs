//! Orders of pages of tasks, by columns.

use std::cmp::Ordering;

use serde_json::Value;

use crate::model::filter::Sort;
use crate::model::id::Profile;
use crate::model::task::Task;

/// Compares two tasks by the columns of an order.
pub(super) fn compare(order: &[Key], one: &Task, other: &Task) -> Ordering {
    let orderings = order.iter().map(|key| {
        let ordering = (key.compare)(one, other);
        if key.descending { ordering.reverse() } else { ordering }
    });
    orderings.fold(Ordering::Equal, Ordering::then)
}

/// Column of an order.
pub(super) struct Key {
    pub(super) column: &'static str,
    pub(super) descending: bool,
    pub(super) value: fn(&Task) -> Value,
    compare: fn(&Task, &Task) -> Ordering,
}

impl Key {
    pub(super) fn term(&self) -> String {
        format!("{}{}", self.column, if self.descending { " DESC" } else { "" })
    }
}

/// Number of the keys at the end of an order by priority and age.
pub(super) const RANKS: usize = 3;

const ID: Key = Key {
    column: "t.id",
    descending: false,
    value: |task| task.id.as_str().into(),
    compare: |one, other| one.id.as_str().cmp(other.id.as_str()),
};
const PRIORITY: Key = Key {
    column: "t.priority",
    descending: true,
    value: |task| task.priority.into(),
    compare: |one, other| one.priority.cmp(&other.priority),
};
const CREATED: Key = Key {
    column: "t.created_at",
    descending: false,
    value: |task| task.created_at.as_micros().into(),
    compare: |one, other| one.created_at.cmp(&other.created_at),
};
const NEWEST: Key = Key { descending: true, ..CREATED };
const LAST: Key = Key { descending: true, ..ID };
const UPDATED: Key = Key {
    column: "t.updated_at",
    descending: true,
    value: |task| task.updated_at.as_micros().into(),
    compare: |one, other| one.updated_at.cmp(&other.updated_at),
};
const STATUS: Key = Key {
    column: "t.status",
    descending: false,
    value: |task| task.status.as_str().into(),
    compare: |one, other| one.status.as_str().cmp(other.status.as_str()),
};
const TITLE: Key = Key {
    column: "t.title",
    descending: false,
    value: |task| task.title.as_str().into(),
    compare: |one, other| one.title.cmp(&other.title),
};
const ASSIGNEE: Key = Key {
    column: "ifnull(t.assignee, '')",
    descending: false,
    value: |task| assignee_of(task).into(),
    compare: |one, other| assignee_of(one).cmp(assignee_of(other)),
};

fn assignee_of(task: &Task) -> &str {
    task.assignee.as_ref().map_or("", Profile::as_str)
}

pub(super) fn order(sort: Sort) -> &'static [Key] {
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
