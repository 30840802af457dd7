//! Single cells of another program's rows in this one's terms, and how often one had to be put right.

use std::collections::{BTreeMap, BTreeSet};

use rusqlite::types::Value as Sql;
use serde_json::{Value, json};

use super::peer::PeerRow;
use crate::clock::Timestamp;
use crate::id::{Profile, TaskId};
use crate::limits;

/// Counts each kind of change.
#[derive(Default)]
pub(super) struct Notes {
    pub(super) changed: BTreeMap<String, u64>,
    pub(super) left: BTreeMap<String, u64>,
}

impl Notes {
    pub(super) fn changed(&mut self, what: &str) {
        *self.changed.entry(what.to_owned()).or_default() += 1;
    }

    pub(super) fn left(&mut self, what: &str) {
        *self.left.entry(what.to_owned()).or_default() += 1;
    }
}

pub(super) fn told(notes: BTreeMap<String, u64>) -> Vec<String> {
    notes.into_iter().map(|(what, count)| format!("{count} {what}")).collect()
}

pub(super) fn text(row: &PeerRow, column: &str) -> Option<String> {
    match row.get(column)? {
        Sql::Text(text) => Some(text.replace('\0', "\u{fffd}")),
        Sql::Integer(number) => Some(number.to_string()),
        Sql::Real(number) => Some(number.to_string()),
        Sql::Null | Sql::Blob(_) => None,
    }
}

/// Text that is worth a column.
pub(super) fn word(row: &PeerRow, column: &str) -> Option<String> {
    text(row, column).filter(|text| !text.is_empty())
}

pub(super) fn number(row: &PeerRow, column: &str) -> Option<i64> {
    match row.get(column)? {
        Sql::Integer(number) => Some(*number),
        Sql::Text(text) => text.trim().parse().ok(),
        #[expect(clippy::cast_possible_truncation, reason = "whole seconds are meant")]
        Sql::Real(number) => Some(*number as i64),
        Sql::Null | Sql::Blob(_) => None,
    }
}

/// Seconds there, microseconds here.
pub(super) fn moment(row: &PeerRow, column: &str) -> Option<Timestamp> {
    let seconds = number(row, column).filter(|seconds| (0..=253_402_300_799).contains(seconds))?;
    Some(Timestamp::from_micros(seconds * 1_000_000))
}

pub(super) fn moment_or(row: &PeerRow, column: &str, now: Timestamp, notes: &mut Notes) -> Timestamp {
    moment(row, column).unwrap_or_else(|| {
        notes.changed("moments made no sense: the time of the import stands for them");
        now
    })
}

pub(super) fn object(row: &PeerRow, column: &str, notes: &mut Notes) -> Option<String> {
    let text = text(row, column)?;
    match serde_json::from_str::<Value>(&text) {
        Ok(Value::Null) => None,
        Ok(value @ Value::Object(_)) => Some(value.to_string()),
        Ok(_) | Err(_) => {
            notes.changed("payloads or metadata were no JSON object: their text is kept under `text`");
            Some(json!({ "text": text }).to_string())
        }
    }
}

/// The task of a row that belongs to one.
pub(super) fn owner(row: &PeerRow, column: &str, known: &BTreeSet<TaskId>) -> Option<TaskId> {
    text(row, column)?.parse::<TaskId>().ok().filter(|id| known.contains(id))
}

pub(super) fn title(row: &PeerRow, notes: &mut Notes) -> String {
    let given = text(row, "title").unwrap_or_default();
    let line: String =
        given.chars().map(|c| if c.is_control() { ' ' } else { c }).take(limits::TITLE).collect();
    let line = if line.trim().is_empty() { "(untitled)".to_owned() } else { line };
    if line != given {
        notes.changed("titles were empty, too long or of several lines");
    }
    line
}

/// The workspace in this program's words.
pub(super) fn workspace(row: &PeerRow, notes: &mut Notes) -> String {
    let path = word(row, "workspace_path");
    match (word(row, "workspace_kind").as_deref(), path) {
        (Some("dir"), Some(path)) => format!("dir:{path}"),
        (Some("worktree"), Some(path)) => {
            notes.changed("worktrees are named by their path there and by their repository here: check them");
            format!("worktree:{path}")
        }
        (Some("worktree"), None) => {
            notes.changed("worktrees named no path: they are scratch directories here");
            "scratch".to_owned()
        }
        _ => "scratch".to_owned(),
    }
}

pub(super) fn profile(row: &PeerRow, column: &str, notes: &mut Notes) -> Option<String> {
    let name = word(row, column)?;
    if name.parse::<Profile>().is_err() {
        notes.changed("assignees are no names of profiles here: the tasks have none");
        return None;
    }
    Some(name)
}
