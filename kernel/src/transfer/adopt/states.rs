//! States of imported tasks: derives the changes that lead to each state, and logs them, so that the log replays to the
//! same state.

use serde_json::json;

use super::convert::{Notes, moment};
use crate::model::actor::{Actor, ActorKind, Label};
use crate::model::clock::Timestamp;
use crate::model::error::Error;
use crate::model::event::EventKind;
use crate::model::id::{RunId, TaskId, Tenant};
use crate::model::outcome::{BlockKind, Outcome};
use crate::model::state::{Change, Gate, InitialState, State, Then};
use crate::rules::transition::next;
use crate::store::events::NewEvent;
use crate::store::tasks::ImportedState;
use crate::store::tx::Tx;
use crate::transfer::cells::{number, text, word};
use crate::transfer::peer::PeerRow;

/// Columns that decide the state of a task.
pub(super) const COLUMNS: [&str; 9] = [
    "id",
    "status",
    "assignee",
    "block_kind",
    "last_failure_error",
    "consecutive_failures",
    "created_at",
    "started_at",
    "completed_at",
];

/// Returns the changes that lead to the state of a task, and the block reason.
fn changes_to(
    tx: &Tx<'_>,
    id: &TaskId,
    row: &PeerRow,
    notes: &mut Notes,
) -> Result<(Vec<Change>, Option<String>), Error> {
    let open = Change::Created { initial: InitialState::Normal, gate: Gate::Open };
    let blocked = |kind, why: &str| (vec![open, Change::Blocked { kind }], Some(why.to_owned()));
    let status = text(row, "status").unwrap_or_default();
    Ok(match status.as_str() {
        "todo" | "ready" | "running" => {
            // A running task has no process here, so it returns to the queue.
            if status == "running" {
                notes.changed(row, "tasks were running: they wait to be started again");
            }
            let gate = if tx.open_parents(id)?.is_empty() { Gate::Open } else { Gate::Parents };
            if status == "todo" && gate == Gate::Open {
                notes.changed(row, "tasks were todo and wait for no parent: they are ready");
            } else if status == "ready" && gate == Gate::Parents {
                notes.changed(row, "tasks were ready before their parents were done: they are todo");
            }
            (vec![Change::Created { initial: InitialState::Normal, gate }], None)
        }
        "blocked" => {
            let stored_kind = word(row, "block_kind");
            let kind = stored_kind.as_ref().and_then(|kind| kind.parse().ok());
            if stored_kind.is_some() && kind.is_none() {
                notes.changed(row, "tasks were blocked for a kind of reason that has no word here");
            }
            let failed = word(row, "last_failure_error");
            let gave_up = failed.is_some() && number(row, "consecutive_failures").unwrap_or(0) > 0;
            let kind = kind.unwrap_or(if gave_up { BlockKind::GaveUp } else { BlockKind::NeedsInput });
            blocked(kind, &failed.unwrap_or_else(|| "blocked when it was imported".to_owned()))
        }
        "scheduled" => {
            notes.changed(
                row,
                "tasks were scheduled without a time: they are blocked until somebody gives them one",
            );
            blocked(BlockKind::NeedsInput, "it was scheduled without a time")
        }
        "review" => {
            if let Some(run) = tx.runs_of(id)?.last().map(|run| run.id) {
                let ended = Change::Ended { run, outcome: Outcome::ReviewRequested, then: Then::Review };
                (vec![open, Change::Started { run }, ended], None)
            } else {
                let what =
                    "tasks were in review without a run: the assignee counts as the one who did the work";
                notes.changed(row, what);
                (vec![open, Change::ReviewRequested], None)
            }
        }
        "done" => (vec![open, Change::Completed], None),
        "archived" if moment(row, "completed_at").is_some() => {
            (vec![open, Change::Completed, Change::Archived], None)
        }
        "archived" => (vec![open, Change::Archived], None),
        status => {
            if status != "triage" {
                notes.changed(row, "tasks had a status that does not exist: they are in triage");
            }
            (vec![Change::Created { initial: InitialState::Triage, gate: Gate::Open }], None)
        }
    })
}

/// Returns true if a task is done or archived.
pub(super) fn is_over(row: &PeerRow) -> bool {
    matches!(text(row, "status").as_deref(), Some("done" | "archived"))
}

/// Moves a task to its state, with an event for each change.
pub(super) fn enter(
    tx: &Tx<'_>,
    id: &TaskId,
    tenant: Option<&Tenant>,
    row: &PeerRow,
    actor: &Actor,
    now: Timestamp,
    notes: &mut Notes,
) -> Result<(), Error> {
    let (changes, why) = changes_to(tx, id, row, notes)?;
    let actor = actor.label();
    let mut state = None;
    for (at, change) in changes.iter().enumerate() {
        state =
            Some(next(state, *change).map_err(|error| Error::conflict(error.to_string(), "report this"))?);
        let run = if let Change::Started { run } | Change::Ended { run, .. } = change {
            Some(*run)
        } else {
            None::<RunId>
        };
        let payload = (at == 0).then(|| json!({ "status": text(row, "status"), "from": "import" }));
        tx.append_event(&NewEvent {
            task: Some(id),
            run,
            tenant,
            kind: EventKind::Imported,
            payload,
            change: Some(*change),
            actor: &actor,
            now,
        })?;
    }
    let Some(state) = state else { return Ok(()) };
    let work_by = if state == State::Review {
        // The worker of the last run, else the assignee, is the author and may not approve the work.
        let assignee = word(row, "assignee").and_then(|name| name.parse().ok());
        let worker = tx.runs_of(id)?.last().and_then(|run| run.profile.clone()).or(assignee);
        let name = worker.as_ref().map_or("unknown", |worker| worker.as_str());
        Some(Label { kind: Some(ActorKind::Worker), name }.to_string())
    } else {
        None
    };
    let known =
        ["completed_at", "started_at", "created_at"].into_iter().find_map(|column| moment(row, column));
    let completed_at = state.is_finished().then(|| known.unwrap_or(now));
    let (why, work_by) = (why.as_deref(), work_by.as_deref());
    tx.place_task(id, &ImportedState { state, why, completed_at, work_by })
}
