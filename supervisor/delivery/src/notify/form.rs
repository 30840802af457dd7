//! JSON form of a message, for programs. Workers' text is in strings.

use kernel::{Letter, Notice};
use serde_json::{Value, json};

use super::parcel::Parcel;
use super::text;

/// Builds the JSON form. Workers' text is in JSON strings, and `text` is the message for people.
pub(super) fn of(parcel: &Parcel) -> Value {
    let messages: Vec<Value> = parcel.letters.iter().map(|letter| message(&parcel.id, letter)).collect();
    json!({
        "version": 1,
        "id": parcel.id,
        "board": parcel.board,
        "channel": parcel.address.channel,
        "chat_id": parcel.address.chat_id,
        "thread_id": parcel.address.thread_id,
        "text": text::whole(parcel, text::LONGEST, str::to_owned),
        "messages": messages,
    })
}

fn message(parcel: &str, letter: &Letter) -> Value {
    let Letter { id, task_id, event_id, tenant, kind, notice, events, created_at, .. } = letter;
    let Notice { title, assignee, text, choices } = notice;
    let board = parcel.get(..36).unwrap_or(parcel);
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
