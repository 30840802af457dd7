//! Composes the spans of a run as OTLP JSON (opentelemetry-proto, `trace/v1/trace.proto`; 64-bit integers are
//! strings).

use kernel::{BoardId, BoardName, Outcome, Run, Timestamp};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use super::StartTimes;

/// Span kind: work inside one program.
const INTERNAL: u32 = 1;
/// Span status: failed.
const ERROR: u32 = 2;

/// Ids of a trace and its spans, derived from the run, so that a repeated message yields the same trace.
struct SpanIds(String);

impl SpanIds {
    fn for_run(board: BoardId, run: &Run) -> Self {
        SpanIds(format!("{board}/{}", run.id))
    }

    fn trace(&self) -> String {
        hex::encode(&Sha256::digest(&self.0)[..16])
    }

    fn span(&self, step: &str) -> String {
        hex::encode(&Sha256::digest(format!("{}/{step}", self.0))[..8])
    }
}

/// Time that a span takes.
struct Period {
    from: Timestamp,
    to: Timestamp,
}

/// Returns the spans of a run and its steps.
pub(super) fn for_run(
    board: &BoardName,
    id: BoardId,
    run: &Run,
    marks: StartTimes,
    recorded_at: Timestamp,
) -> Vec<Value> {
    let names = SpanIds::for_run(id, run);
    let begun = marks.claiming.unwrap_or(run.started_at).min(run.started_at);
    // A short worker may have ended before its start was recorded.
    let ended = run.ended_at.unwrap_or(recorded_at).max(run.spawned_at.unwrap_or(run.started_at));
    let prepared = marks.prepared.unwrap_or(run.started_at);
    let mut spans = vec![whole(&names, board, run, Period { from: begun, to: recorded_at.max(ended) })];
    let steps = [
        ("claim", marks.claiming, Some(run.started_at)),
        ("workspace", marks.prepared.map(|_| run.started_at), marks.prepared),
        ("start", Some(prepared), run.spawned_at.or(Some(ended))),
        ("work", run.spawned_at, Some(ended)),
        ("end", Some(ended), Some(recorded_at)),
    ];
    for (step, from, to) in steps {
        if let (Some(from), Some(to)) = (from, to) {
            let mut span = span(&names, step, Period { from, to });
            span["parentSpanId"] = names.span("run").into();
            spans.push(span);
        }
    }
    spans
}

fn whole(names: &SpanIds, board: &BoardName, run: &Run, during: Period) -> Value {
    let mut span = span(names, "run", during);
    let text = |key: &str, value: Option<&str>| {
        value.map(|value| json!({ "key": format!("supervisor.{key}"), "value": { "stringValue": value } }))
    };
    let number = |key: &str, value: Option<i64>| {
        let value = value?.to_string();
        Some(json!({ "key": format!("supervisor.{key}"), "value": { "intValue": value } }))
    };
    let attributes = [
        text("board", Some(board.as_str())),
        text("task", Some(run.task_id.as_str())),
        number("run", Some(run.id.0)),
        text("purpose", Some(run.purpose.as_str())),
        text("profile", run.profile.as_ref().map(kernel::Profile::as_str)),
        text("tenant", run.tenant.as_ref().map(kernel::Tenant::as_str)),
        text("account", run.account.as_deref()),
        text("policy", run.policy.as_deref()),
        text("outcome", run.outcome.map(Outcome::as_str)),
        number("exit_code", run.exit_code.map(i64::from)),
        number("signal", run.signal.map(i64::from)),
    ];
    span["attributes"] = attributes.into_iter().flatten().collect();
    if run.outcome.is_some_and(kernel::counts) {
        span["status"] = json!({ "code": ERROR, "message": run.outcome.map(Outcome::as_str) });
    }
    span
}

fn span(names: &SpanIds, step: &str, Period { from, to }: Period) -> Value {
    json!({
        "traceId": names.trace(),
        "spanId": names.span(step),
        "name": step,
        "kind": INTERNAL,
        "startTimeUnixNano": nanoseconds(from),
        // A clock that was set back must not yield a span that ends before it begins.
        "endTimeUnixNano": nanoseconds(to.max(from)),
    })
}

fn nanoseconds(at: Timestamp) -> String {
    (i128::from(at.as_micros()) * 1000).to_string()
}

/// Composes a message from the spans of several runs.
pub(crate) fn message(host: &str, spans: &[Value]) -> Value {
    let text = |key: &str, value: &str| json!({ "key": key, "value": { "stringValue": value } });
    let version = env!("CARGO_PKG_VERSION");
    let of = [text("service.name", "supervisor"), text("service.version", version), text("host.name", host)];
    let scope = json!({ "name": "supervisor", "version": version });
    json!({ "resourceSpans": [{ "resource": { "attributes": of }, "scopeSpans": [{ "scope": scope, "spans": spans }] }] })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_as_the_protocol_has_it() {
        let names = SpanIds("board/7".to_owned());
        let at = Timestamp::from_micros;
        let made = span(&names, "work", Period { from: at(5), to: at(3) });
        assert_eq!((&made["startTimeUnixNano"], &made["endTimeUnixNano"]), (&"5000".into(), &"5000".into()));
        assert_eq!(made["spanId"].as_str().map(str::len), Some(16));
        assert_ne!(names.span("work"), names.span("end"));
        assert_eq!(nanoseconds(at(i64::MAX)), "9223372036854775807000");
        let message = message("h", std::slice::from_ref(&made));
        assert_eq!(message["resourceSpans"][0]["scopeSpans"][0]["spans"][0], made);
    }
}
