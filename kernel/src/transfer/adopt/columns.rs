//! Treatment of each column in the tables of the other program (`hermes kanban`): its values are imported, or left out
//! for a reason.
//!
//! A column or a table without an entry here is reported as unknown, so that an import from a newer version of the other
//! program loses no data silently.

use super::convert::{Notes, moment};
use crate::model::cell::Cell;
use crate::model::error::Error;
use crate::transfer::cells::{key, number};
use crate::transfer::peer::{PeerBoard, PeerRow};

/// Treatment of the values of a column.
#[derive(Clone, Copy)]
enum ColumnUse {
    /// The values are imported.
    Imported,
    /// The values are left out, for this reason.
    Omitted(&'static str),
}

const CLAIM: ColumnUse = ColumnUse::Omitted("a claim of the other program is not valid here");
const PROCESS: ColumnUse = ColumnUse::Omitted("a process of the other program is not watched here");

/// Names of the imported columns, separated by spaces, for each table.
const TAKEN: [(&str, &str); 7] = [
    (
        "tasks",
        "id title body assignee status priority created_by created_at started_at completed_at workspace_kind \
         workspace_path branch_name project_id tenant result idempotency_key consecutive_failures \
         last_failure_error max_runtime_seconds last_heartbeat_at workflow_template_id current_step_key \
         skills model_override max_retries goal_mode goal_max_turns session_id block_kind block_recurrences",
    ),
    (
        "task_runs",
        "id task_id profile step_key status max_runtime_seconds last_heartbeat_at started_at ended_at outcome \
         summary metadata error",
    ),
    ("task_links", "parent_id child_id"),
    ("task_comments", "id task_id author body created_at"),
    ("task_events", "id task_id run_id kind payload created_at"),
    ("task_attachments", "id task_id filename stored_path content_type size uploaded_by created_at"),
    (
        "kanban_notify_subs",
        "task_id platform chat_id thread_id user_id notifier_profile created_at last_event_id",
    ),
];

/// Returns the treatment of a column.
fn fate(table: &str, column: &str) -> ColumnUse {
    match (table, column) {
        ("tasks" | "task_runs", "claim_lock" | "claim_expires") => CLAIM,
        ("tasks" | "task_runs", "worker_pid") => PROCESS,
        ("tasks", "current_run_id") => ColumnUse::Omitted("no run goes on after an import"),
        _ if TAKEN
            .iter()
            .any(|(name, taken)| *name == table && taken.split(' ').any(|one| one == column)) =>
        {
            ColumnUse::Imported
        }
        _ => ColumnUse::Omitted("this program does not know the column"),
    }
}

/// Notes each value that is not imported, and each text that is changed on import because its bytes are not UTF-8.
/// NULL is not noted.
pub(super) fn add_notes(peer: &PeerBoard, notes: &mut Notes) -> Result<(), Error> {
    for table in &peer.0.others {
        notes.omitted(&PeerRow::default(), &format!("table {table} is not known to this program"));
    }
    for (table, columns) in peer.0.tables() {
        let fates: Vec<ColumnUse> = columns.iter().map(|column| fate(table, column)).collect();
        let of_column: Vec<Form> = columns.iter().map(|column| form(table, column)).collect();
        peer.0.each(
            table,
            |_| true,
            |row| {
                for (at, value) in row.cells().iter().enumerate().filter(|(_, value)| **value != Cell::Null) {
                    let column = &columns[at];
                    if let ColumnUse::Omitted(why) = fates[at] {
                        notes.omitted(row, &format!("values of {table}.{column}: {why}"));
                    }
                    if let Some(why) = of_column[at].unfit(row, column) {
                        notes.omitted(row, &format!("values of {table}.{column} are {why}"));
                    }
                    if matches!(value, Cell::Text(text) if text.contains(['\0', '\u{fffd}'])) {
                        notes.changed(
                            row,
                            &format!(
                                "values of {table}.{column} have bytes that are not text: U+FFFD stands there"
                            ),
                        );
                    }
                }
                Ok(())
            },
        )?;
    }
    Ok(())
}

/// Form that the values of a column have to have.
#[derive(Clone, Copy)]
enum Form {
    Any,
    Time,
    Key,
    Number,
}

/// Returns the form of the values of a column.
fn form(table: &str, column: &str) -> Form {
    match column {
        // `created_at` is not among these columns: an unusable one is replaced, and the replacement has a note.
        "started_at" | "completed_at" | "ended_at" | "last_heartbeat_at" => Form::Time,
        "id" if table != "tasks" => Form::Key,
        "run_id" => Form::Key,
        "priority" => Form::Number,
        _ => Form::Any,
    }
}

impl Form {
    /// Returns the reason why a value is not imported as it is: it has another form.
    fn unfit(self, row: &PeerRow, column: &str) -> Option<&'static str> {
        match self {
            Form::Time if moment(row, column).is_none() => Some("no times of the years 1970 to 9999"),
            Form::Key if key(row, column).is_none() => Some("no keys of rows"),
            Form::Number if number(row, column).is_none() => Some("no numbers, and count as 0"),
            Form::Any | Form::Time | Form::Key | Form::Number => None,
        }
    }
}
