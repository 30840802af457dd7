//! `events`: returns the append-only log from a cursor on, and can wait for new events. `watch` and `tail` use it.

use std::time::Duration;

use kernel::{Event, EventFilter, EventId, EventKind, Horizon, Profile, TaskId, Tenant};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use api::command::Command;
use api::{Call, REPLY_TIME, Verb, confine_to, verb};
use base::failure::Failure;
use base::terminal::{Ink, Screen, printable};
use base::time::timestamp;

/// The longest wait of one call.
const LONGEST_WAIT: Duration = Duration::from_secs(30);

/// The most events of one page.
const LONGEST_PAGE: u32 = 10_000;

/// Show the event log
#[derive(Clone, Debug, Default, clap::Args, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[command(after_help = "\
Examples:
  supervisor events --since 0 --json
  supervisor events --tenant acme --kind completed --kind blocked")]
pub struct Events {
    /// Only events after this id
    #[arg(long, value_name = "ID", default_value = "0")]
    pub since: EventId,
    /// At most this many, up to 10000; a page of long events has fewer
    #[arg(long, value_name = "N", default_value_t = 1000)]
    #[serde(default = "page")]
    pub limit: u32,
    /// Only events of this task
    #[arg(long, value_name = "TASK")]
    pub task: Option<TaskId>,
    /// Only events of this tenant
    #[arg(long, value_name = "NAME")]
    pub tenant: Option<Tenant>,
    /// Only events of tasks of this assignee
    #[arg(long, value_name = "NAME")]
    pub assignee: Option<Profile>,
    /// Only events of this kind, such as completed (repeatable)
    #[arg(long = "kind", value_name = "KIND")]
    pub kinds: Vec<String>,
    /// Wait up to this many seconds for the first one
    #[arg(long, value_name = "SECONDS", default_value_t = 0)]
    pub wait: u64,
}

fn page() -> u32 {
    1000
}

#[derive(Debug, Serialize, Deserialize)]
pub struct EventPage {
    /// The events, oldest first.
    pub events: Vec<Event>,
    /// Value to pass as `since` next.
    pub cursor: EventId,
    /// The last event of the board, whatever the filter.
    pub last_event: EventId,
    /// Start of the log, where it is later than the request's: earlier events were folded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub folded: Option<Horizon>,
}

impl Events {
    fn filter(&self) -> EventFilter {
        EventFilter {
            since: self.since,
            limit: self.limit,
            task: self.task.clone(),
            tenant: self.tenant.clone(),
            assignee: self.assignee.clone(),
            kinds: self.kinds.clone(),
            ..EventFilter::default()
        }
    }
}

impl Verb for Events {
    verb! { "events": Operator, Read, members => EventPage }

    fn answered_within(&self) -> Duration {
        REPLY_TIME + Duration::from_secs(self.wait).min(LONGEST_WAIT)
    }

    fn confine(&mut self, tenant: &Tenant) -> Result<(), Failure> {
        confine_to(tenant, &mut self.tenant)
    }

    async fn run(self, call: Call) -> Result<EventPage, Failure> {
        if !(1..=LONGEST_PAGE).contains(&self.limit) {
            return Err(Failure::usage(format!("the limit {} is out of range", self.limit))
                .hint(format!("use 1 to {LONGEST_PAGE}, and continue with --since")));
        }
        let kinds = self.kinds.clone();
        call.read(move |view| view.require_event_kinds(&kinds)).await?;
        let wait = Duration::from_secs(self.wait).min(LONGEST_WAIT);
        let until = tokio::time::Instant::now() + wait;
        // The subscription precedes the first read, so that no change is missed in between.
        let mut news = call.board()?.changes();
        let mut version = None;
        loop {
            news.mark_unchanged();
            let filter = self.filter();
            let (events, last, horizon) = call
                .read(move |view| Ok((view.some_events(&filter)?, view.last_event()?, view.horizon()?)))
                .await?;
            let kernel::Excerpt { rows: events, more } = events;
            if !events.is_empty() || call.board()?.is_closing() || tokio::time::Instant::now() >= until {
                // An exhausted filter has seen everything up to the last event of the board.
                let cursor = match events.last() {
                    Some(event) if more => event.id,
                    _ => last.max(self.since),
                };
                let folded = horizon.filter(|horizon| self.since < horizon.through);
                return Ok(EventPage { events, cursor, last_event: last, folded });
            }
            if call.service.daemon().is_some() {
                // Cancel-safe: a change that is missed by the timeout is seen by the next look.
                tokio::select! {
                    changed = news.changed() => drop(changed),
                    () = tokio::time::sleep_until(until) => {}
                }
            } else {
                // Without a daemon, other processes write to the board. SQLite's `data_version` shows their commits.
                loop {
                    let now = call.board()?.readers().data_version()?;
                    if version.replace(now).is_some_and(|seen| seen != now)
                        || tokio::time::Instant::now() >= until
                    {
                        break;
                    }
                    tokio::time::sleep(Duration::from_millis(250)).await;
                }
            }
        }
    }
}

impl Command for Events {
    fn show(reply: &EventPage, screen: &mut Screen) {
        if let Some(horizon) = &reply.folded {
            screen.line(screen.paint(Ink::Dim, &starts_later(horizon)));
        }
        if reply.events.is_empty() {
            screen.line("No events.");
        }
        for event in &reply.events {
            line(event, screen);
        }
    }
}

/// Says that the log starts later than requested.
pub fn starts_later(horizon: &Horizon) -> String {
    format!(
        "(the log starts after event {}: earlier ones were folded on {})",
        horizon.through,
        timestamp::local(horizon.at)
    )
}

pub fn line(event: &Event, screen: &mut Screen) {
    use EventKind as E;
    let ink = match event.kind.parse() {
        Ok(E::Completed) => Ink::Green,
        Ok(E::Blocked | E::Crashed | E::TimedOut | E::SpawnFailed | E::GaveUp | E::ProtocolViolation) => {
            Ink::Red
        }
        Ok(E::Created | E::Promoted | E::Unblocked) => Ink::Yellow,
        Ok(_) | Err(_) => Ink::Cyan,
    };
    let kind = screen.paint(ink, &format!("{:<12}", event.kind));
    let time = screen.paint(Ink::Dim, &timestamp::clock(event.created_at));
    let run = event.run_id.map(|run| format!("run {run}")).unwrap_or_default();
    let task = event.task_id.as_ref().map_or("-", kernel::TaskId::as_str);
    let payload = event.payload.as_ref().map(payload_text).unwrap_or_default();
    screen.line_cut(&format!("{time}  {task:<10}  {kind}  {run:<7}  "), &printable(&payload));
}

/// Returns an event as one line: its text, or its facts if it has none. JSON output has the whole event.
fn payload_text(payload: &serde_json::Value) -> String {
    let Some(facts) = payload.as_object() else { return String::new() };
    let texts = ["summary", "reason", "error", "note"];
    if let Some(text) = texts.iter().find_map(|name| facts.get(*name)?.as_str()) {
        return text.lines().next().unwrap_or_default().to_owned();
    }
    let mut pieces = Vec::new();
    for (name, value) in facts {
        let text = match value {
            serde_json::Value::String(text) if !text.is_empty() => text.clone(),
            serde_json::Value::Number(number) => number.to_string(),
            serde_json::Value::Array(items) if !items.is_empty() => value.to_string(),
            serde_json::Value::Object(_) => value.to_string(),
            _ => continue,
        };
        // The run has a column of its own, and locks interest nobody.
        if !matches!(name.as_str(), "lock" | "run_id" | "result_len") {
            pieces.push(format!("{} {text}", name.replace('_', " ")));
        }
    }
    pieces.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn an_event_is_told_by_its_text_or_else_by_its_facts() {
        assert_eq!(payload_text(&json!({ "summary": "one\ntwo", "result_len": 0 })), "one");
        let created = json!({ "by": "ann", "parents": [], "status": "ready", "tenant": null });
        assert_eq!(payload_text(&created), "by ann, status ready");
        assert_eq!(payload_text(&json!({ "lock": "h:1:x", "run_id": 1 })), "");
    }
}
