//! Values of an import that the schema allows and no board has: times, keys and ids of other forms.
//!
//! See decision 0253.

use crate::model::cell::Cell;
use crate::model::clock::Timestamp;
use crate::model::id::TaskId;

/// Largest key of a row. JSON carries numbers up to here exactly, and many further rows still get keys.
const LAST_KEY: i64 = (1 << 53) - 1;

/// Returns the reason to refuse a value of this program's own tables, as the end of a sentence.
pub(super) fn unfit(table: &str, column: &str, cell: &Cell) -> Option<&'static str> {
    match cell {
        Cell::Integer(number) if is_time(table, column) => {
            (!is_in_time(*number)).then_some("is no time of the years 1970 to 9999")
        }
        Cell::Integer(number) if is_key(column) => {
            let least = i64::from(column == "id");
            (!(least..=LAST_KEY).contains(number)).then_some("is no key of a row")
        }
        Cell::Text(text) if is_task(table, column) => {
            TaskId::in_full(text.as_str()).is_err().then_some("is no id of a task")
        }
        Cell::Null | Cell::Integer(_) | Cell::Real(_) | Cell::Text(_) | Cell::Blob(_) => None,
    }
}

/// True for microseconds since the epoch in the years 1970 to 9999.
fn is_in_time(micros: i64) -> bool {
    (0..Timestamp::OPEN_END.as_micros() + 1_000_000).contains(&micros)
}

/// Returns a key that another program has given to a row.
pub(super) fn key(number: i64) -> Option<i64> {
    Some(number).filter(|number| (1..=LAST_KEY).contains(number))
}

fn is_time(table: &str, column: &str) -> bool {
    let words =
        ["not_before", "approval_until", "until", "ending_since", "failing_since", "claim_expires", "tick"];
    column.ends_with("_at")
        || words.contains(&column)
        || (table == "schedules" && matches!(column, "decided" | "next"))
}

fn is_key(column: &str) -> bool {
    column == "id"
        || column == "seq"
        || column.ends_with("_id")
        || matches!(column, "creator_run" | "unchecked_run" | "forked_run" | "probe_run")
}

fn is_task(table: &str, column: &str) -> bool {
    matches!((table, column), ("tasks" | "task_ids", "id"))
        || matches!(column, "task_id" | "parent_id" | "child_id" | "creator_task" | "met_by_task" | "subject")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_keys_and_ids_of_other_forms_are_refused() {
        for (table, column, cell) in [
            ("tasks", "created_at", Cell::Integer(-1)),
            ("tasks", "not_before", Cell::Integer(253_402_300_800_000_000)),
            ("holds", "until", Cell::Integer(i64::MAX)),
            ("schedules", "next", Cell::Integer(i64::MIN)),
            ("task_events", "id", Cell::Integer(0)),
            ("task_comments", "run_id", Cell::Integer(-3)),
            ("sqlite_sequence", "seq", Cell::Integer(i64::MAX)),
            ("task_ids", "id", Cell::Text("0123abcd".to_owned())),
            ("task_events", "task_id", Cell::Text("t_a/../b".to_owned())),
        ] {
            assert!(unfit(table, column, &cell).is_some(), "{table}.{column}: {cell:?}");
        }
        for (table, column, cell) in [
            ("tasks", "created_at", Cell::Integer(0)),
            ("holds", "until", Cell::Integer(Timestamp::OPEN_END.as_micros())),
            ("notify_subs", "last_event_id", Cell::Integer(0)),
            ("task_ids", "id", Cell::Text("t_9f2a".to_owned())),
            ("tasks", "priority", Cell::Integer(i64::MIN)),
            ("tasks", "session_id", Cell::Text("any".to_owned())),
            ("tasks", "started_at", Cell::Null),
        ] {
            assert_eq!(unfit(table, column, &cell), None, "{table}.{column}");
        }
    }
}
