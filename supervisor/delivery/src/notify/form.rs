//! JSON form of messages, for programs.

use kernel::{Letter, Notice};
use serde_json::{Value, json};

use super::batch::Batch;
use super::text;

/// Builds the JSON form. Text of workers appears only in JSON strings; `text` is the message for people.
pub(super) fn from_batch(batch: &Batch) -> Value {
    let messages: Vec<Value> = batch.letters.iter().map(|letter| message(&batch.id, letter)).collect();
    json!({
        "version": 1,
        "id": batch.id,
        "board": batch.board,
        "channel": batch.address.channel,
        "chat_id": batch.address.chat_id,
        "thread_id": batch.address.thread_id,
        "text": text::whole(batch, text::LONGEST, str::to_owned),
        "messages": messages,
    })
}

fn message(batch: &str, letter: &Letter) -> Value {
    let Letter { id, task_id, event_id, tenant, kind, notice, events, created_at, .. } = letter;
    let Notice { title, assignee, text, choices } = notice;
    let board = batch.get(..36).unwrap_or(batch);
    json!({
        "id": format!("{board}-{id}"),
        "kind": kind,
        "task_id": task_id,
        "event_id": event_id,
        "tenant": tenant,
        "title": title,
        "assignee": assignee,
        "text": text,
        "choices": choices,
        "needs_somebody": kind.needs_somebody(),
        "events": events,
        "created_at": created_at,
    })
}
