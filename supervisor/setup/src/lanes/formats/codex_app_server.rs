//! `codex-app-server`: the JSON-RPC lines of `codex app-server`.
//!
//! The result of the request that starts a thread names the thread and its model. `turn/completed` ends a turn, with
//! the error of a failed turn. The usage covers the whole thread so far, including turns of earlier runs. `error`
//! with `willRetry` reports an error that the program retries.

use kernel::{Counters, Spent};
use serde::Deserialize;
use serde_json::Value;

use super::events::{Count, each};
use super::{Finish, Refuser, WorkerReport, final_message, name, service, trouble};
use shim::rundir::Stdout;

#[derive(Deserialize)]
struct AppServerLine {
    method: Option<String>,
    #[serde(default)]
    params: Value,
    #[serde(default)]
    result: Value,
}

fn text<'a>(value: &'a Value, path: &str) -> Option<&'a str> {
    value.pointer(path).and_then(Value::as_str)
}

fn count(value: &Value) -> u64 {
    serde_json::from_value::<Count>(value.clone()).unwrap_or_default().0
}

/// Returns the meaning of an error: by its kind, the status of the service, or its message.
fn finish(error: &Value) -> Finish {
    let info = &error["codexErrorInfo"];
    let status = info.as_object().and_then(|kinds| kinds.values().next());
    let status = status.and_then(|kind| kind["httpStatusCode"].as_u64());
    let words = text(error, "/message").map_or(Finish::Failed, service::by_words);
    match (info.as_str(), status) {
        // The message contains the pause, if there is one.
        (Some("usageLimitExceeded" | "rateLimitExceeded"), _) => match words {
            limited @ Finish::RateLimited(_) => limited,
            _ => Finish::RateLimited(None),
        },
        (Some("unauthorized"), _) => Finish::NotLoggedIn(Refuser::Service),
        (Some("serverOverloaded" | "internalServerError"), _) => Finish::Unavailable,
        (_, Some(status)) if service::by_status(status, None) != Finish::Failed => {
            service::by_status(status, None)
        }
        _ => words,
    }
}

pub(super) fn read(stdout: &Stdout) -> WorkerReport {
    let mut report = WorkerReport::default();
    // An error that a retry overcame is followed by an item or the end of the turn.
    let mut tried: Option<Value> = None;
    each(stdout, |line: AppServerLine| {
        if let Some(thread) = text(&line.result, "/thread/id") {
            report.spent.session = name(thread);
            report.spent.model = text(&line.result, "/model").and_then(name);
        }
        match line.method.as_deref() {
            Some("turn/started") => {
                report.finish = Finish::Unsaid;
                report.spent.turns = Some(report.spent.turns.unwrap_or_default().saturating_add(1));
            }
            Some("error") => tried = line.params.get("error").cloned(),
            Some("item/completed") if text(&line.params, "/item/type") == Some("agentMessage") => {
                tried = None;
                report.message = text(&line.params, "/item/text").and_then(final_message);
            }
            Some("thread/tokenUsage/updated") => {
                let total = &line.params["tokenUsage"]["total"];
                report.spent = Spent {
                    input_tokens: count(&total["inputTokens"]),
                    cached_tokens: count(&total["cachedInputTokens"]),
                    output_tokens: count(&total["outputTokens"]),
                    counters: Counters::OfSession,
                    ..std::mem::take(&mut report.spent)
                };
            }
            Some("item/started" | "item/completed") => tried = None,
            Some("turn/completed") => {
                tried = None;
                let turn = &line.params["turn"];
                let error = &turn["error"];
                report.finish = if turn["status"] == "completed" { Finish::Well } else { finish(error) };
                report.trouble = text(error, "/message").and_then(trouble);
            }
            Some(_) | None => {}
        }
    });
    if let Some(error) = tried {
        report.finish = match finish(&error) {
            Finish::Failed => report.finish,
            known => known,
        };
        report.trouble = text(&error, "/message").and_then(trouble);
    }
    report
}

/// Returns true if the last event about the service reports a retry.
pub(super) fn is_refused(so_far: &Stdout) -> bool {
    let mut is_refused = false;
    each(so_far, |line: AppServerLine| match line.method.as_deref() {
        Some("error") => is_refused = line.params["willRetry"] == true,
        Some("item/started" | "item/completed" | "turn/completed" | "turn/started") => is_refused = false,
        Some(_) | None => {}
    });
    is_refused
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report_of(lines: &[&str]) -> WorkerReport {
        super::super::tests::report_of("codex-app-server", lines.join("\n").as_bytes())
    }

    const THREAD: &str = r#"{"id":1,"result":{"thread":{"id":"0199-a"},"model":"gpt"}}"#;
    const TURN: &str = r#"{"method":"turn/started","params":{}}"#;
    const DONE: &str = r#"{"method":"turn/completed","params":{"turn":{"status":"completed","error":null}}}"#;

    fn failed(info: &str, message: &str) -> String {
        format!(
            r#"{{"method":"turn/completed","params":{{"turn":{{"status":"failed","error":{{"message":"{message}","codexErrorInfo":{info}}}}}}}}}"#
        )
    }

    #[test]
    fn the_last_message_is_the_final_one_and_the_counters_are_those_of_the_thread() {
        let message = |text: &str| {
            format!(
                r#"{{"method":"item/completed","params":{{"item":{{"type":"agentMessage","text":"{text}"}}}}}}"#
            )
        };
        let usage = r#"{"method":"thread/tokenUsage/updated","params":{"tokenUsage":{"total":{"inputTokens":33,"cachedInputTokens":11,"outputTokens":7}}}}"#;
        let report = report_of(&[THREAD, TURN, &message("looking"), usage, &message("done"), DONE]);
        assert_eq!((report.finish, report.message.as_deref()), (Finish::Well, Some("done")));
        let spent = Spent {
            session: Some("0199-a".to_owned()),
            model: Some("gpt".to_owned()),
            input_tokens: 33,
            cached_tokens: 11,
            output_tokens: 7,
            turns: Some(1),
            counters: Counters::OfSession,
            ..Spent::default()
        };
        assert_eq!(report.spent, spent);
        assert_eq!(
            report_of(&[THREAD, TURN, DONE, TURN]).finish,
            Finish::Unsaid,
            "a message has begun another turn"
        );
    }

    #[test]
    fn an_error_that_it_still_tries_to_overcome_counts_until_something_follows() {
        let tried = r#"{"method":"error","params":{"willRetry":true,"error":{"message":"Reconnecting... 1/5","codexErrorInfo":{"responseStreamDisconnected":{"httpStatusCode":429}}}}}"#;
        assert_eq!(report_of(&[THREAD, TURN, tried]).finish, Finish::RateLimited(None));
        let item = r#"{"method":"item/started","params":{"item":{"type":"reasoning"}}}"#;
        assert_eq!(report_of(&[THREAD, TURN, tried, item]).finish, Finish::Unsaid);
        assert_eq!(report_of(&[THREAD, TURN, tried, DONE]).finish, Finish::Well);
    }

    #[test]
    fn each_error_has_one_meaning() {
        let table = [
            (r#""usageLimitExceeded""#, "no more", Finish::RateLimited(None)),
            (r#""unauthorized""#, "no", Finish::NotLoggedIn(Refuser::Service)),
            (r#""serverOverloaded""#, "no", Finish::Unavailable),
            (r#"{"responseTooManyFailedAttempts":{"httpStatusCode":429}}"#, "no", Finish::RateLimited(None)),
            (r#"{"responseTooManyFailedAttempts":{"httpStatusCode":500}}"#, "no", Finish::Unavailable),
            (
                r#"{"httpConnectionFailed":{"httpStatusCode":null}}"#,
                "stream disconnected",
                Finish::Unavailable,
            ),
            (r#""other""#, "odd", Finish::Failed),
        ];
        for (info, message, finish) in table {
            let report = report_of(&[THREAD, TURN, &failed(info, message)]);
            assert_eq!((report.finish, report.trouble.as_deref()), (finish, Some(message)), "{info}");
        }
    }
}
