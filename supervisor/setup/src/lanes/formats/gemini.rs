//! `gemini-stream-json` and `gemini-json`: the output of `gemini -o stream-json`, one event a line, and of `gemini -o
//! json`, one document.
//!
//! `init` names the session, and `result` is the last event. After a signal the program exits with 0 and without
//! `result`. The cause of a failure is often in the exit code alone; the lane's file defines the codes.

use std::collections::BTreeMap;

use kernel::{OwnLimit, Spent};
use serde::Deserialize;

use super::events::{Count, each};
use super::{Finish, MESSAGE_BYTES, Refuser, WorkerReport, final_message, name, service, trouble};
use shim::lenient;
use shim::rundir::Stdout;

#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Event {
    Init {
        session_id: Option<String>,
        model: Option<String>,
    },
    Message {
        role: Option<String>,
        content: Option<String>,
        #[serde(default)]
        delta: bool,
    },
    ToolUse {},
    ToolResult {
        #[serde(default)]
        error: Failure,
    },
    Result {
        status: Option<String>,
        #[serde(default)]
        error: Failure,
        #[serde(default)]
        stats: Stats,
    },
    #[serde(other)]
    Other,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Failure {
    #[serde(rename = "type")]
    kind: Option<String>,
    message: Option<String>,
    code: Count,
}

/// Usage of a run: the stream has totals, and both forms have counts per model.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Stats {
    input_tokens: Count,
    output_tokens: Count,
    cached: Count,
    models: BTreeMap<String, Model>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Model {
    input_tokens: Count,
    output_tokens: Count,
    cached: Count,
    tokens: Tokens,
}

/// Counts of a model in the document form.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Tokens {
    prompt: Count,
    candidates: Count,
    cached: Count,
    thoughts: Count,
}

#[derive(Deserialize)]
struct Document {
    session_id: Option<String>,
    response: Option<String>,
    #[serde(default)]
    stats: Stats,
    error: Option<Failure>,
}

/// Error type of a call that needs a permission.
const DENIED: &str = "policy_violation";

pub(super) fn read_stream(stdout: &Stdout) -> WorkerReport {
    let mut report = WorkerReport::default();
    let mut text = String::new();
    each(stdout, |event| match event {
        Event::Init { session_id, model } => {
            report.spent.session = session_id.as_deref().and_then(name);
            report.spent.model = model.as_deref().and_then(name);
        }
        Event::Message { role, content, delta } if role.as_deref() == Some("assistant") => {
            if !delta {
                text.clear();
            }
            // Twice the board's limit, to allow for blanks that are trimmed.
            let room = (2 * MESSAGE_BYTES).saturating_sub(text.len());
            let content = content.unwrap_or_default();
            text.push_str(&content[..content.floor_char_boundary(room)]);
        }
        Event::Message { .. } | Event::Other => {}
        // Words before a tool call are not the final message.
        Event::ToolUse {} => text.clear(),
        Event::ToolResult { error } => {
            let is_denied = error.kind.as_deref() == Some(DENIED);
            report.spent.denials = report.spent.denials.saturating_add(u64::from(is_denied));
        }
        Event::Result { status, error, stats } => {
            (report.finish, report.trouble) = match status.as_deref() {
                Some("success") => (Finish::Well, None),
                Some(_) | None => failed(&error),
            };
            report.spent = spent(&stats, std::mem::take(&mut report.spent));
        }
    });
    report.message = final_message(&text);
    report
}

pub(super) fn read_document(stdout: &Stdout) -> WorkerReport {
    let Some(document) = stdout.whole().and_then(|text| lenient::read::<Document>(&text)) else {
        return WorkerReport::default();
    };
    let (finish, trouble) = match (&document.error, &document.response) {
        (Some(error), _) => failed(error),
        (None, Some(_)) => (Finish::Well, None),
        (None, None) => (Finish::Unsaid, None),
    };
    let before = Spent { session: document.session_id.as_deref().and_then(name), ..Spent::default() };
    let message = document.response.as_deref().and_then(final_message);
    WorkerReport { finish, message, trouble, spent: spent(&document.stats, before) }
}

fn failed(error: &Failure) -> (Finish, Option<String>) {
    let words = error.message.as_deref().or(error.kind.as_deref()).unwrap_or_default();
    let finish = match (error.code.0, error.kind.as_deref()) {
        (53, _) | (_, Some("FatalTurnLimitedError")) => Finish::OwnLimit(OwnLimit::Turns),
        (41, _) | (_, Some("FatalAuthenticationError")) => Finish::NotLoggedIn(Refuser::Unclear),
        (status @ 100.., _) => service::by_status(status, None),
        _ => service::by_words(words),
    };
    (finish, trouble(words))
}

fn spent(stats: &Stats, before: Spent) -> Spent {
    let of_model = |model: &Model| {
        let Model { input_tokens, output_tokens, cached, tokens } = model;
        let output = tokens.candidates.0.saturating_add(tokens.thoughts.0);
        // Only one of the two forms is present; the other's counts are 0.
        (input_tokens.0.max(tokens.prompt.0), cached.0.max(tokens.cached.0), output_tokens.0.max(output))
    };
    let models = stats.models.values().map(of_model).reduce(|(a, b, c), (input, cached, output)| {
        (a.saturating_add(input), b.saturating_add(cached), c.saturating_add(output))
    });
    let all = (stats.input_tokens.0, stats.cached.0, stats.output_tokens.0);
    let (input_tokens, cached_tokens, output_tokens) = models.filter(|sum| sum.0 > 0).unwrap_or(all);
    let model = before.model.clone().or_else(|| match stats.models.len() {
        1 => stats.models.keys().next().and_then(|model| name(model)),
        _ => None,
    });
    Spent { input_tokens, cached_tokens, output_tokens, model, ..before }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report_of(lines: &[&str]) -> WorkerReport {
        super::super::tests::report_of("gemini-stream-json", lines.join("\n").as_bytes())
    }

    fn document(text: &str) -> WorkerReport {
        super::super::tests::report_of("gemini-json", text.as_bytes())
    }

    const INIT: &str = r#"{"type":"init","timestamp":"2026","session_id":"5d1e","model":"gemini-3-pro"}"#;

    #[test]
    fn the_final_message_is_what_was_said_after_the_last_tool() {
        let report = report_of(&[
            INIT,
            r#"{"type":"message","role":"user","content":"do it"}"#,
            r#"{"type":"message","role":"assistant","content":"I look.","delta":true}"#,
            r#"{"type":"tool_use","tool_name":"run_shell_command","tool_id":"1","parameters":{}}"#,
            r#"{"type":"tool_result","tool_id":"1","status":"error","error":{"type":"policy_violation","message":"denied"}}"#,
            r#"{"type":"message","role":"assistant","content":"It is ","delta":true}"#,
            r#"{"type":"message","role":"assistant","content":"fixed.","delta":true}"#,
            r#"{"type":"result","status":"success","stats":{"total_tokens":30,"input_tokens":20,"output_tokens":10,"cached":4,"tool_calls":1}}"#,
        ]);
        let spent = Spent {
            session: Some("5d1e".to_owned()),
            model: Some("gemini-3-pro".to_owned()),
            input_tokens: 20,
            cached_tokens: 4,
            output_tokens: 10,
            denials: 1,
            ..Spent::default()
        };
        let message = Some("It is fixed.".to_owned());
        assert_eq!(report, WorkerReport { finish: Finish::Well, message, trouble: None, spent });
    }

    #[test]
    fn each_end_has_one_meaning() {
        let error = |more: &str| format!(r#"{{"type":"result","status":"error","error":{{{more}}}}}"#);
        let table = [
            (vec![INIT.to_owned()], Finish::Unsaid),
            (
                vec![error(r#""type":"FatalTurnLimitedError","message":"Reached max session turns""#)],
                Finish::OwnLimit(OwnLimit::Turns),
            ),
            (
                vec![error(r#""type":"FatalAuthenticationError","message":"no key""#)],
                Finish::NotLoggedIn(Refuser::Unclear),
            ),
            (vec![error(r#""message":"Attempt 10 failed with status 429""#)], Finish::RateLimited(None)),
            (vec![error(r#""message":"got status: 503""#)], Finish::Unavailable),
            (vec![error(r#""type":"Error","message":"odd""#)], Finish::Failed),
            (vec![r#"{"type":"result"}"#.to_owned()], Finish::Failed),
        ];
        for (lines, finish) in table {
            let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
            assert_eq!(report_of(&lines).finish, finish, "{lines:?}");
        }
    }

    #[test]
    fn a_document_says_the_same_at_once() {
        let report = document(
            r#"{
  "session_id": "5d1e",
  "response": "fixed",
  "stats": { "models": { "gemini-3-pro": { "tokens": { "prompt": 20, "candidates": 8, "cached": 4, "thoughts": 2 } } } }
}"#,
        );
        assert_eq!((report.finish, report.message.as_deref()), (Finish::Well, Some("fixed")));
        let Spent { session, model, input_tokens, cached_tokens, output_tokens, .. } = report.spent;
        assert_eq!((session.as_deref(), model.as_deref()), (Some("5d1e"), Some("gemini-3-pro")));
        assert_eq!((input_tokens, cached_tokens, output_tokens), (20, 4, 10));
        let refused = document(r#"{"error":{"type":"Error","message":"no","code":41}}"#);
        assert_eq!(refused.finish, Finish::NotLoggedIn(Refuser::Unclear));
        let refused = document(r#"{"error":{"message":"no","code":429}}"#);
        assert_eq!(refused.finish, Finish::RateLimited(None));
        assert_eq!(document("{\"response\":").finish, Finish::Unsaid);
    }

    #[test]
    fn a_message_without_an_end_takes_no_memory() {
        let piece = format!(
            r#"{{"type":"message","role":"assistant","content":"{}","delta":true}}"#,
            "é".repeat(5000)
        );
        let report = report_of(&vec![piece.as_str(); 20]);
        assert_eq!(report.message.unwrap().len(), MESSAGE_BYTES);
    }
}
