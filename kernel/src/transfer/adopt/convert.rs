//! Converts single cells of the other program's rows, and counts the changes.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use serde_json::{Value, json};

use crate::model::cell::Cell;
use crate::model::clock::Timestamp;
use crate::model::id::{Profile, TaskId, Tenant};
use crate::model::limits;
use crate::transfer::cells::{number, text, word};
use crate::transfer::peer::PeerRow;

/// Number of rows that a note names.
const NAMED: usize = 5;

/// Number of notes of one kind, with the first rows.
#[derive(Default)]
pub(super) struct Note {
    count: u64,
    named: Vec<String>,
}

/// Notes about changed and omitted values, counted by kind.
#[derive(Default)]
pub(super) struct Notes {
    pub(super) changed: BTreeMap<String, Note>,
    pub(super) left: BTreeMap<String, Note>,
}

impl Notes {
    pub(super) fn changed(&mut self, row: &PeerRow, what: &str) {
        note(&mut self.changed, row, what);
    }

    pub(super) fn omitted(&mut self, row: &PeerRow, what: &str) {
        note(&mut self.left, row, what);
    }
}

fn note(notes: &mut BTreeMap<String, Note>, row: &PeerRow, what: &str) {
    let note = notes.entry(what.to_owned()).or_default();
    note.count += 1;
    let name = name(row);
    if note.named.len() < NAMED && name.as_ref().is_some_and(|name| !note.named.contains(name)) {
        note.named.extend(name);
    }
}

/// Returns a name by which a reader can find a row.
fn name(row: &PeerRow) -> Option<String> {
    let name = match (text(row, "parent_id"), text(row, "child_id"), text(row, "task_id")) {
        (Some(parent), Some(child), _) => format!("{parent} → {child}"),
        (_, _, Some(task)) => text(row, "id").map_or(task.clone(), |id| format!("{id} of {task}")),
        _ => text(row, "id")?,
    };
    Some(name.chars().take(NAME).collect())
}

/// Longest name of a row, in characters. An id of the other program can be any text.
const NAME: usize = 80;

pub(super) fn report_lines(notes: BTreeMap<String, Note>) -> Vec<String> {
    let line = |(what, note): (String, Note)| {
        let more = if note.count > note.named.len() as u64 { ", …" } else { "" };
        match note.named.as_slice() {
            [] => format!("{} {what}", note.count),
            named => format!("{} {what} ({}{more})", note.count, named.join(", ")),
        }
    };
    notes.into_iter().map(line).collect()
}

/// Converts a time from seconds to microseconds.
pub(super) fn moment(row: &PeerRow, column: &str) -> Option<Timestamp> {
    let seconds = number(row, column).filter(|seconds| (0..=253_402_300_799).contains(seconds))?;
    Some(Timestamp::from_micros(seconds * 1_000_000))
}

pub(super) fn moment_or(row: &PeerRow, column: &str, now: Timestamp, notes: &mut Notes) -> Timestamp {
    moment(row, column).unwrap_or_else(|| {
        notes.changed(row, "times were invalid: the time of the import replaces them");
        now
    })
}

pub(super) fn object(row: &PeerRow, column: &str, notes: &mut Notes) -> Option<String> {
    let text = text(row, column)?;
    match serde_json::from_str::<Value>(&text) {
        Ok(Value::Null) => None,
        Ok(value @ Value::Object(_)) => Some(value.to_string()),
        Ok(_) | Err(_) => {
            notes.changed(row, "payloads or metadata were no JSON object: their text is kept under `text`");
            Some(json!({ "text": text }).to_string())
        }
    }
}

/// Returns a number that is a valid count.
pub(super) fn small(row: &PeerRow, column: &str, notes: &mut Notes) -> Option<i64> {
    let count = number(row, column).filter(|number| (0..=i64::from(u32::MAX)).contains(number));
    if count.is_none() && row.get(column).is_some_and(|value| *value != Cell::Null) {
        notes.changed(row, &format!("values of {column} are not counts and are left out"));
    }
    count
}

pub(super) fn truth(row: &PeerRow, column: &str) -> bool {
    number(row, column).is_some_and(|number| number != 0)
}

/// Parses a JSON list of texts.
pub(super) fn words(row: &PeerRow, column: &str, notes: &mut Notes) -> Vec<String> {
    let Some(text) = word(row, column) else { return Vec::new() };
    if let Ok(words) = serde_json::from_str::<Option<Vec<String>>>(&text) {
        return words.unwrap_or_default();
    }
    notes.changed(row, &format!("values of {column} are not lists of words and are left out"));
    Vec::new()
}

/// Longest id that is stored in place. The other program makes ids of ten bytes.
const SHORT: usize = 12;

/// Imported tasks, each with its tenant. A board may have millions of them, so an id is stored in place if it is short.
#[derive(Default)]
pub(super) struct ImportedTasks {
    short: HashMap<[u8; SHORT], u32>,
    long: HashMap<TaskId, u32>,
    /// Tenants by their numbers, from 1 on; 0 stands for none.
    tenants: Vec<Tenant>,
    numbers: HashMap<Tenant, u32>,
    /// Tasks that were archived unfinished.
    given_up: BTreeSet<TaskId>,
    tasks: u64,
}

impl ImportedTasks {
    pub(super) fn add(&mut self, id: &TaskId, tenant: Option<&Tenant>) {
        let number = tenant.map_or(0, |tenant| self.number(tenant));
        match short(id.as_str()) {
            Some(short) => drop(self.short.insert(short, number)),
            None => drop(self.long.insert(id.clone(), number)),
        }
        self.tasks += 1;
    }

    fn number(&mut self, tenant: &Tenant) -> u32 {
        if let Some(number) = self.numbers.get(tenant) {
            return *number;
        }
        self.tenants.push(tenant.clone());
        let number = u32::try_from(self.tenants.len()).unwrap_or(u32::MAX);
        self.numbers.insert(tenant.clone(), number);
        number
    }

    fn find(&self, id: &TaskId) -> Option<u32> {
        match short(id.as_str()) {
            Some(short) => self.short.get(&short).copied(),
            None => self.long.get(id).copied(),
        }
    }

    /// Returns the number of the tasks.
    pub(super) fn count(&self) -> u64 {
        self.tasks
    }

    /// Returns the tenant of a task.
    pub(super) fn tenant(&self, id: &TaskId) -> Option<&Tenant> {
        let number = self.find(id).and_then(|number| usize::try_from(number).ok())?;
        self.tenants.get(number.checked_sub(1)?)
    }

    /// Marks a task as archived unfinished.
    pub(super) fn give_up(&mut self, id: TaskId) {
        self.given_up.insert(id);
    }

    pub(super) fn is_given_up(&self, id: &TaskId) -> bool {
        self.given_up.contains(id)
    }
}

/// Returns an id in place, with zeros after it, which no id has.
fn short(id: &str) -> Option<[u8; SHORT]> {
    let mut place = [0; SHORT];
    place.get_mut(..id.len())?.copy_from_slice(id.as_bytes());
    Some(place)
}

/// Returns the imported task that a row belongs to.
pub(super) fn owner(row: &PeerRow, column: &str, known: &ImportedTasks) -> Option<TaskId> {
    TaskId::in_full(text(row, column)?.as_ref()).ok().filter(|id| known.find(id).is_some())
}

pub(super) fn title(row: &PeerRow, notes: &mut Notes) -> String {
    let given = text(row, "title").unwrap_or_default();
    let line: String =
        given.chars().map(|c| if c.is_control() { ' ' } else { c }).take(limits::TITLE).collect();
    let line = if line.trim().is_empty() { "(untitled)".to_owned() } else { line };
    if line != given {
        notes.changed(row, "titles were empty, too long or of several lines");
    }
    line
}

/// Returns the workspace in this program's form.
pub(super) fn workspace(row: &PeerRow, notes: &mut Notes) -> String {
    let path = word(row, "workspace_path");
    match (word(row, "workspace_kind").as_deref(), path) {
        (Some("dir"), Some(path)) => format!("dir:{path}"),
        (Some("worktree"), Some(path)) => {
            notes.changed(
                row,
                "worktrees are named by their path there and by their repository here: check them",
            );
            format!("worktree:{path}")
        }
        (Some("worktree"), None) => {
            notes.changed(row, "worktrees named no path: they are scratch directories here");
            "scratch".to_owned()
        }
        (kind, path) => {
            match kind {
                None | Some("scratch" | "dir") => {}
                Some(_) => notes.changed(
                    row,
                    "workspaces are of a kind that does not exist: they are scratch directories",
                ),
            }
            if kind == Some("dir") {
                notes.changed(row, "directories named no path: they are scratch directories here");
            }
            if path.is_some() {
                notes.omitted(row, "paths of scratch directories: each task gets a new one here");
            }
            "scratch".to_owned()
        }
    }
}

pub(super) fn profile(row: &PeerRow, column: &str, notes: &mut Notes) -> Option<String> {
    let name = word(row, column)?;
    if name.parse::<Profile>().is_err() {
        notes.changed(row, "assignees are not valid names here: the tasks have none");
        return None;
    }
    Some(name)
}
