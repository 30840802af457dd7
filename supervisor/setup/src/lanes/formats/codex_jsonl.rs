//! `codex-jsonl`: the events of `codex exec --json`.
//!
//! `thread.started` names the session, and each turn ends with `turn.completed` or `turn.failed`. The usage of a turn is the
//! sum over the thread so far, including turns of earlier runs. An error has a message and no code. A refused tool call
//! leaves the exit code at 0.
//!
//! Without a network the program writes the event `error` again and again until its deadline. It writes the same event for an
//! error that a retry overcomes. So an `error` counts as a refusal until an event of an item or a turn follows.

use kernel::{Counters, Spent};
use serde::Deserialize;

use super::events::{Count, each};
use super::{Finish, WorkerReport, final_message, name, service, trouble};
use shim::rundir::Stdout;

#[derive(Deserialize)]
#[serde(tag = "type")]
enum Event {
    #[serde(rename = "thread.started")]
    Thread { thread_id: Option<String> },
    #[serde(rename = "turn.started")]
    TurnStarted {},
    #[serde(rename = "turn.completed")]
    TurnCompleted {
        #[serde(default)]
        usage: Usage,
    },
    #[serde(rename = "turn.failed")]
    TurnFailed {
        #[serde(default)]
        error: Failure,
    },
    #[serde(rename = "error")]
    Error {
        #[serde(default)]
        message: Option<String>,
    },
    #[serde(rename = "item.completed")]
    Item { item: Item },
    #[serde(other)]
    Other,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Usage {
    /// Includes cached tokens.
    #[serde(rename = "input_tokens")]
    input: Count,
    #[serde(rename = "cached_input_tokens")]
    cached: Count,
    #[serde(rename = "output_tokens")]
    output: Count,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Failure {
    message: Option<String>,
}

#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Item {
    AgentMessage {
        text: Option<String>,
    },
    CommandExecution {},
    McpToolCall {
        error: Option<Failure>,
    },
    #[serde(other)]
    Other,
}

/// Phrases in the error of a tool call that codex itself has refused.
const DENIED: [&str; 2] = ["requires approval", "rejected by user"];

pub(super) fn read(stdout: &Stdout) -> WorkerReport {
    let mut report = WorkerReport::default();
    // An error that a retry overcame is followed by work of the turn or by its end.
    let mut failed: Option<String> = None;
    each(stdout, |event| match event {
        Event::Thread { thread_id } => report.spent.session = thread_id.as_deref().and_then(name),
        Event::TurnStarted {} => {
            report.finish = Finish::Unsaid;
            report.spent.turns = Some(report.spent.turns.unwrap_or_default().saturating_add(1));
        }
        Event::TurnCompleted { usage } => {
            report.finish = Finish::Well;
            failed = None;
            report.spent = Spent {
                input_tokens: usage.input.0,
                cached_tokens: usage.cached.0,
                output_tokens: usage.output.0,
                counters: Counters::OfSession,
                ..std::mem::take(&mut report.spent)
            };
        }
        Event::TurnFailed { error } => {
            report.finish = Finish::Failed;
            failed = error.message.or_else(|| failed.take());
        }
        Event::Error { message } => failed = message.or_else(|| failed.take()),
        Event::Item { item: Item::AgentMessage { text } } => {
            failed = None;
            report.message = text.as_deref().and_then(final_message);
        }
        Event::Item { item: Item::McpToolCall { error: Some(Failure { message: Some(message) }) } }
            if DENIED.iter().any(|words| message.contains(words)) =>
        {
            report.spent.denials = report.spent.denials.saturating_add(1);
        }
        Event::Item { item: Item::CommandExecution {} } => failed = None,
        Event::Item { .. } | Event::Other => {}
    });
    if let Some(error) = failed {
        report.finish = service::by_words(&error);
        report.trouble = trouble(&error);
    }
    report
}

/// Returns true if the last event about the service is an error. An event of an item or a turn follows once a retry has
/// overcome the error.
pub(super) fn is_refused(so_far: &Stdout) -> bool {
    let mut is_refused = false;
    each(so_far, |Kind { kind }| {
        if kind == "error" {
            is_refused = true;
        } else if ["item.", "turn."].iter().any(|goes_on| kind.starts_with(goes_on)) {
            is_refused = false;
        }
    });
    is_refused
}

/// Type of an event; other fields are ignored.
#[derive(Deserialize)]
struct Kind {
    #[serde(rename = "type")]
    kind: String,
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::super::Refuser;
    use super::super::Reset;
    use super::*;

    fn report_of(lines: &[&str]) -> WorkerReport {
        super::super::tests::report_of("codex-jsonl", lines.join("\n").as_bytes())
    }

    const THREAD: &str = r#"{"type":"thread.started","thread_id":"0199-a"}"#;
    const TURN: &str = r#"{"type":"turn.started"}"#;
    const DONE: &str =
        r#"{"type":"turn.completed","usage":{"input_tokens":33,"cached_input_tokens":11,"output_tokens":7}}"#;

    #[test]
    fn the_last_message_is_the_final_one_and_the_counters_are_those_of_the_thread() {
        let report = report_of(&[
            THREAD,
            TURN,
            r#"{"type":"item.completed","item":{"id":"item_0","type":"agent_message","text":"looking"}}"#,
            r#"{"type":"item.completed","item":{"id":"item_1","type":"command_execution","command":"ls","exit_code":0}}"#,
            r#"{"type":"item.completed","item":{"id":"item_2","type":"mcp_tool_call","server":"board","tool":"kanban_complete","status":"failed","error":{"message":"MCP tool call requires approval, but approval policy is never"}}}"#,
            r#"{"type":"item.completed","item":{"id":"item_3","type":"agent_message","text":"fixed"}}"#,
            DONE,
        ]);
        let spent = Spent {
            session: Some("0199-a".to_owned()),
            input_tokens: 33,
            cached_tokens: 11,
            output_tokens: 7,
            turns: Some(1),
            denials: 1,
            counters: Counters::OfSession,
            ..Spent::default()
        };
        let message = Some("fixed".to_owned());
        assert_eq!(report, WorkerReport { finish: Finish::Well, message, trouble: None, spent });
    }

    #[test]
    fn each_end_has_one_meaning() {
        let failed = |words: &str| format!(r#"{{"type":"turn.failed","error":{{"message":"{words}"}}}}"#);
        let error = |words: &str| format!(r#"{{"type":"error","message":"{words}"}}"#);
        let ran =
            r#"{"type":"item.completed","item":{"type":"command_execution","command":"ls","exit_code":0}}"#;
        let after = |secs| Finish::RateLimited(Some(Reset::After(Duration::from_secs(secs))));
        let table = [
            (vec![TURN.to_owned()], Finish::Unsaid),
            (vec![TURN.to_owned(), DONE.to_owned(), TURN.to_owned()], Finish::Unsaid),
            (vec![error("Reconnecting... 1/5"), DONE.to_owned()], Finish::Well),
            (vec![error("Reconnecting... 5/5 (last status: 503)"), ran.to_owned()], Finish::Unsaid),
            (vec![failed("odd")], Finish::Failed),
            (vec![failed("exceeded retry limit, last status: 429")], Finish::RateLimited(None)),
            (vec![failed("usage limit reached, try again in 20 minutes")], after(1200)),
            (vec![error("unexpected status 401 Unauthorized")], Finish::NotLoggedIn(Refuser::Service)),
            (
                vec![error("exceeded retry limit, last status: 502"), r#"{"type":"turn.failed"}"#.to_owned()],
                Finish::Unavailable,
            ),
        ];
        for (lines, finish) in table {
            let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
            assert_eq!(report_of(&lines).finish, finish, "{lines:?}");
        }
        assert_eq!(report_of(&[&failed("the why\\nmore")]).trouble.as_deref(), Some("the why"));
    }

    #[test]
    fn an_error_that_nothing_follows_is_a_request_that_is_tried_again() {
        let is_refused =
            |lines: &[&str]| super::super::tests::is_refused("codex-jsonl", lines.join("\n").as_bytes());
        let waits = r#"{"type":"error","message":"Reconnecting... waiting for network connection"}"#;
        let item = r#"{"type":"item.started","item":{"id":"item_0","type":"command_execution"}}"#;
        assert!(is_refused(&[THREAD, TURN, waits]) && is_refused(&[TURN, item, waits, waits]));
        assert!(!is_refused(&[THREAD, TURN]) && !is_refused(&[TURN, waits, item]));
        assert!(!is_refused(&[TURN, waits, DONE]) && !is_refused(&[]));
        assert_eq!(report_of(&[TURN, waits]).finish, Finish::Unavailable);
    }

    #[test]
    fn the_words_of_a_model_are_no_error() {
        let message =
            r#"{"type":"item.completed","item":{"type":"agent_message","text":"status 429, rate limit"}}"#;
        assert_eq!(report_of(&[message, DONE]).finish, Finish::Well);
    }
}
