//! `opencode-jsonl`: the events of `opencode run --format json`.
//!
//! Each event names the session. No event marks the end of a run: the last step is the step that ended for another
//! reason than a tool call. The tokens and the cost of a run are the sums of its steps. `input` excludes tokens read
//! from or written to the cache.

use kernel::Spent;
use serde::Deserialize;
use std::time::Duration;

use super::events::{Count, Dollars, each};
use super::{Finish, Refuser, Reset, WorkerReport, final_message, name, service, trouble};
use shim::rundir::Stdout;

#[derive(Deserialize)]
struct Event {
    #[serde(rename = "type")]
    kind: Kind,
    #[serde(rename = "sessionID")]
    session: Option<String>,
    #[serde(default)]
    part: Part,
    #[serde(default)]
    error: Failure,
}

#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum Kind {
    Text,
    StepStart,
    StepFinish,
    ToolUse,
    Error,
    #[serde(other)]
    Other,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Part {
    text: Option<String>,
    reason: Option<String>,
    tokens: Tokens,
    cost: Dollars,
    state: ToolState,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Tokens {
    input: Count,
    output: Count,
    reasoning: Count,
    cache: Cache,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Cache {
    read: Count,
    write: Count,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct ToolState {
    status: Option<String>,
    error: Option<String>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Failure {
    name: Option<String>,
    data: FailureData,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct FailureData {
    message: Option<String>,
    status_code: Count,
    response_headers: Headers,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Headers {
    #[serde(rename = "retry-after")]
    retry_after: Option<String>,
}

/// Phrase in the error of a call that opencode itself refused.
const DENIED: &str = "rejected permission";

pub(super) fn read(stdout: &Stdout) -> WorkerReport {
    let mut report = WorkerReport::default();
    each(stdout, |Event { kind, session, part, error }| {
        if report.spent.session.is_none() {
            report.spent.session = session.as_deref().and_then(name);
        }
        match kind {
            Kind::Text => {
                report.message = part.text.as_deref().and_then(final_message).or(report.message.take());
            }
            Kind::StepStart => report.finish = Finish::Unsaid,
            Kind::StepFinish => {
                add(&mut report.spent, &part);
                let goes_on = part.reason.as_deref() == Some("tool-calls");
                report.finish = if goes_on { Finish::Unsaid } else { Finish::Well };
                // The program has overcome earlier errors if it finishes a step.
                report.trouble = None;
            }
            Kind::ToolUse => {
                let is_denied = part.state.status.as_deref() == Some("error")
                    && part.state.error.is_some_and(|error| error.contains(DENIED));
                report.spent.denials = report.spent.denials.saturating_add(u64::from(is_denied));
            }
            Kind::Error => {
                let words = error.data.message.as_deref().or(error.name.as_deref()).unwrap_or_default();
                let seconds =
                    error.data.response_headers.retry_after.and_then(|after| after.trim().parse().ok());
                let reset = seconds.map(|seconds| Reset::After(Duration::from_secs(seconds)));
                report.finish = match error.data.status_code.0 {
                    0 if error.name.as_deref() == Some("ProviderAuthError") => {
                        Finish::NotLoggedIn(Refuser::Unclear)
                    }
                    0 => service::by_words(words),
                    status => service::by_status(status, reset),
                };
                report.trouble = trouble(words);
            }
            Kind::Other => {}
        }
    });
    report
}

fn add(spent: &mut Spent, part: &Part) {
    let Tokens { input, output, reasoning, cache } = &part.tokens;
    let sum = |counts: &[u64]| counts.iter().copied().fold(0, u64::saturating_add);
    spent.input_tokens = sum(&[spent.input_tokens, input.0, cache.read.0, cache.write.0]);
    spent.cached_tokens = sum(&[spent.cached_tokens, cache.read.0]);
    spent.output_tokens = sum(&[spent.output_tokens, output.0, reasoning.0]);
    if let Some(cost) = part.cost.0 {
        spent.cost_micros = Some(spent.cost_micros.unwrap_or_default().saturating_add(cost));
    }
    spent.turns = Some(spent.turns.unwrap_or_default().saturating_add(1));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report_of(lines: &[&str]) -> WorkerReport {
        super::super::tests::report_of("opencode-jsonl", lines.join("\n").as_bytes())
    }

    const START: &str =
        r#"{"type":"step_start","timestamp":1,"sessionID":"ses_1","part":{"type":"step-start"}}"#;
    const TEXT: &str = r#"{"type":"text","sessionID":"ses_1","part":{"type":"text","text":"\nfixed\n"}}"#;

    fn step(reason: &str) -> String {
        format!(
            r#"{{"type":"step_finish","sessionID":"ses_1","part":{{"type":"step-finish","reason":"{reason}","cost":0.25,
                "tokens":{{"input":10,"output":3,"reasoning":1,"cache":{{"read":100,"write":5}}}}}}}}"#
        )
        .replace('\n', "")
    }

    #[test]
    fn the_usage_of_a_run_is_the_sum_of_its_steps_and_the_last_text_its_message() {
        let denied = r#"{"type":"tool_use","sessionID":"ses_1","part":{"tool":"read","state":{"status":"error","error":"The user rejected permission to use this specific tool call."}}}"#;
        let report = report_of(&[START, denied, &step("tool-calls"), START, TEXT, &step("stop")]);
        let spent = Spent {
            session: Some("ses_1".to_owned()),
            input_tokens: 230,
            cached_tokens: 200,
            output_tokens: 8,
            cost_micros: Some(500_000),
            turns: Some(2),
            denials: 1,
            ..Spent::default()
        };
        let message = Some("fixed".to_owned());
        assert_eq!(report, WorkerReport { finish: Finish::Well, message, trouble: None, spent });
    }

    #[test]
    fn each_end_has_one_meaning() {
        let error = |more: &str| {
            format!(
                r#"{{"type":"error","sessionID":"ses_1","error":{{"name":"APIError","data":{{"message":"no",{more}}}}}}}"#
            )
        };
        let after = Some(Reset::After(Duration::from_secs(30)));
        let table = [
            (vec![START.to_owned(), step("tool-calls")], Finish::Unsaid),
            (vec![step("stop"), START.to_owned()], Finish::Unsaid),
            (vec![error(r#""statusCode":401"#)], Finish::NotLoggedIn(Refuser::Service)),
            (
                vec![error(r#""statusCode":429,"isRetryable":true,"responseHeaders":{"retry-after":"30"}"#)],
                Finish::RateLimited(after),
            ),
            (vec![error(r#""statusCode":529"#)], Finish::RateLimited(None)),
            (vec![error(r#""statusCode":500"#)], Finish::Unavailable),
            (vec![error(r#""statusCode":400"#)], Finish::Failed),
            (
                vec![r#"{"type":"error","error":{"name":"ProviderAuthError","data":{}}}"#.to_owned()],
                Finish::NotLoggedIn(Refuser::Unclear),
            ),
            (vec![r#"{"type":"error","error":{"name":"UnknownError"}}"#.to_owned()], Finish::Failed),
        ];
        for (lines, finish) in table {
            let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
            assert_eq!(report_of(&lines).finish, finish, "{lines:?}");
        }
        assert_eq!(report_of(&[&error(r#""statusCode":400"#)]).trouble.as_deref(), Some("no"));
    }
}
