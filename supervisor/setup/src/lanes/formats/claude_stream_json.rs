//! `claude-stream-json`: the events of `claude -p --output-format stream-json --verbose`.
//!
//! A `system` event with the subtype `init` names the session and the model. A `result` event ends a turn, and is the
//! last event of a run that ended by itself. Its `subtype` may be `success` although a request finally failed, so
//! `is_error` decides. A `rate_limit_event` reports the state of the account's limits, which may permit further
//! requests. A `system` event with the subtype `api_retry` reports a request that is retried. `usage` excludes
//! sub-agents, so the sum of `modelUsage` is used if present. Both cover one invocation, also in a resumed session.

use std::collections::BTreeMap;

use kernel::{OwnLimit, Spent};
use serde::Deserialize;
use serde::de::IgnoredAny;

use super::events::{Count, Dollars, Moment, each, or_default};
use super::{Finish, Refuser, Reset, WorkerReport, final_message, name, service, trouble};
use shim::rundir::Stdout;

#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Event {
    System {
        #[serde(default, deserialize_with = "or_default")]
        subtype: Option<String>,
        #[serde(default, deserialize_with = "or_default")]
        session_id: Option<String>,
        #[serde(default, deserialize_with = "or_default")]
        model: Option<String>,
        #[serde(default)]
        error_status: Count,
    },
    Assistant {
        #[serde(default, deserialize_with = "or_default")]
        message: Message,
    },
    Result(Box<Ended>),
    #[serde(rename = "rate_limit_event")]
    RateLimit {
        #[serde(default, deserialize_with = "or_default")]
        rate_limit_info: Option<Limit>,
        #[serde(flatten)]
        limit: Limit,
    },
    #[serde(other)]
    Other,
}

#[derive(Deserialize)]
struct Ended {
    #[serde(default, deserialize_with = "or_default")]
    is_error: bool,
    #[serde(default, deserialize_with = "or_default")]
    subtype: Option<String>,
    #[serde(default, deserialize_with = "or_default")]
    result: Option<String>,
    #[serde(default, deserialize_with = "or_default")]
    session_id: Option<String>,
    #[serde(default)]
    api_error_status: Count,
    #[serde(default, deserialize_with = "or_default")]
    terminal_reason: Option<String>,
    #[serde(default)]
    num_turns: Count,
    #[serde(default)]
    total_cost_usd: Dollars,
    #[serde(default, deserialize_with = "or_default")]
    usage: Usage,
    #[serde(default, rename = "modelUsage", deserialize_with = "or_default")]
    model_usage: BTreeMap<String, Usage>,
    #[serde(default, deserialize_with = "or_default")]
    permission_denials: Vec<IgnoredAny>,
}

/// Tokens of the agent without its sub-agents, or of all agents together with one model. `input` excludes tokens read
/// from or written to the cache.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Usage {
    #[serde(rename = "input_tokens", alias = "inputTokens")]
    input: Count,
    #[serde(rename = "cache_creation_input_tokens", alias = "cacheCreationInputTokens")]
    cache_creation: Count,
    #[serde(rename = "cache_read_input_tokens", alias = "cacheReadInputTokens")]
    cache_read: Count,
    #[serde(rename = "output_tokens", alias = "outputTokens")]
    output: Count,
}

/// Reply of the model. Several events may report the same reply, each with the usage of the reply so far.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Message {
    #[serde(deserialize_with = "or_default")]
    id: Option<String>,
    #[serde(deserialize_with = "or_default")]
    usage: Usage,
}

/// Usage of the replies, for a run without a `result` event. `of` is the id of the last reply, `last` its usage, and
/// `sum` the usage of the earlier replies.
#[derive(Default)]
struct Answers {
    of: Option<String>,
    last: Tokens,
    sum: Tokens,
}

/// Numbers of tokens. `input` includes tokens read from or written to the cache, `cached` is the number that was read
/// from it.
#[derive(Clone, Copy, Default)]
struct Tokens {
    input: u64,
    cached: u64,
    output: u64,
}

impl Tokens {
    /// Returns the sums of a reported usage.
    fn from_usage(usage: &Usage) -> Self {
        let input = [usage.input.0, usage.cache_creation.0, usage.cache_read.0];
        Tokens {
            input: input.into_iter().fold(0, u64::saturating_add),
            cached: usage.cache_read.0,
            output: usage.output.0,
        }
    }

    fn plus(self, more: Self) -> Self {
        Tokens {
            input: self.input.saturating_add(more.input),
            cached: self.cached.saturating_add(more.cached),
            output: self.output.saturating_add(more.output),
        }
    }
}

impl Answers {
    // A later event of the same reply replaces the usage of the earlier one; an event without an id is a new reply.
    fn add(&mut self, message: Message) {
        if message.id.is_none() || message.id != self.of {
            self.sum = self.sum.plus(self.last);
        }
        self.last = Tokens::from_usage(&message.usage);
        self.of = message.id;
    }

    fn count(&self, spent: &mut Spent) {
        let Tokens { input, cached, output } = self.sum.plus(self.last);
        (spent.input_tokens, spent.cached_tokens, spent.output_tokens) = (input, cached, output);
    }
}

/// State of a rate limit, in an object of its own or in the event itself.
#[derive(Default, Deserialize)]
struct Limit {
    #[serde(default, deserialize_with = "or_default")]
    status: Option<String>,
    #[serde(default, rename = "resetsAt")]
    resets_at: Moment,
}

/// State of the service after the events so far.
#[derive(Default)]
struct Service {
    is_rejected: bool,
    reset: Option<Reset>,
    /// Status of a request that is being retried.
    retried: Option<u64>,
}

pub(super) fn read(stdout: &Stdout) -> WorkerReport {
    let mut report = WorkerReport::default();
    let mut service = Service::default();
    let mut answers = Answers::default();
    each(stdout, |event| match event {
        Event::System { subtype, session_id, model, error_status } => match subtype.as_deref() {
            Some("init") => {
                report.spent.session = session_id.as_deref().and_then(name);
                report.spent.model = model.as_deref().and_then(name);
            }
            Some("api_retry") => service.retried = Some(error_status.0),
            Some(_) | None => {}
        },
        Event::Assistant { message } => {
            service.retried = None;
            // A message after a result begins another turn, so the run is not finished.
            report.finish = Finish::Unsaid;
            answers.add(message);
        }
        Event::Result(ended) => {
            report.finish = finish(&ended, &service);
            let text = ended.result.as_deref();
            report.message = text.and_then(final_message);
            report.trouble = text.filter(|_| report.finish != Finish::Well).and_then(trouble);
            let session = ended.session_id.as_deref().and_then(name).or(report.spent.session.take());
            report.spent = Spent { session, model: report.spent.model.take(), ..spent(&ended) };
        }
        Event::RateLimit { rate_limit_info, limit } => {
            let limit = rate_limit_info.unwrap_or(limit);
            service.is_rejected = limit.status.is_some_and(|status| status == "rejected");
            service.reset = limit.resets_at.0.filter(|_| service.is_rejected).map(Reset::At);
        }
        Event::Other => {}
    });
    if report.finish == Finish::Unsaid {
        answers.count(&mut report.spent);
        report.finish = match service.retried {
            _ if service.is_rejected => Finish::RateLimited(service.reset),
            Some(status) => service::by_status(status, service.reset),
            None => Finish::Unsaid,
        };
    }
    report
}

/// Returns true if the last event about the service reports a retry.
pub(super) fn is_refused(so_far: &Stdout) -> bool {
    let mut is_refused = false;
    each(so_far, |event| match event {
        Event::System { subtype, .. } => is_refused |= subtype.as_deref() == Some("api_retry"),
        Event::Assistant { .. } | Event::Result(_) => is_refused = false,
        Event::RateLimit { .. } | Event::Other => {}
    });
    is_refused
}

fn finish(ended: &Ended, service: &Service) -> Finish {
    match ended.subtype.as_deref() {
        Some("error_max_turns") => return Finish::OwnLimit(OwnLimit::Turns),
        Some("error_max_budget_usd") => return Finish::OwnLimit(OwnLimit::Cost),
        // For all other subtypes, the fields below are more specific.
        Some(_) | None => {}
    }
    if !ended.is_error {
        return Finish::Well;
    }
    if service.is_rejected || ended.terminal_reason.as_deref() == Some("blocking_limit") {
        return Finish::RateLimited(service.reset);
    }
    let by_words = ended.result.as_deref().map_or(Finish::Failed, service::by_words);
    match (service::by_status(ended.api_error_status.0, service.reset), by_words) {
        _ if ended.api_error_status.0 == 0 => by_words,
        // The text has the body of the reply.
        (Finish::NotLoggedIn(_), by_words @ Finish::NotLoggedIn(Refuser::Service)) => by_words,
        (by_status, _) => by_status,
    }
}

fn spent(ended: &Ended) -> Spent {
    let sum = ended.model_usage.values().map(Tokens::from_usage).reduce(Tokens::plus);
    let Tokens { input, cached, output } = sum.unwrap_or_else(|| Tokens::from_usage(&ended.usage));
    Spent {
        input_tokens: input,
        cached_tokens: cached,
        output_tokens: output,
        cost_micros: ended.total_cost_usd.0,
        turns: Some(ended.num_turns.0).filter(|turns| *turns > 0),
        denials: ended.permission_denials.len() as u64,
        ..Spent::default()
    }
}

#[cfg(test)]
mod tests {
    use kernel::Timestamp;

    use super::*;

    fn report_of(lines: &[&str]) -> WorkerReport {
        super::super::tests::report_of("claude-stream-json", lines.join("\n").as_bytes())
    }

    const INIT: &str = r#"{"type":"system","subtype":"init","session_id":"7f9c","model":"sonnet"}"#;
    const REJECTED: &str = r#"{"type":"rate_limit_event","rate_limit_info":{"status":"rejected","resetsAt":1000,"rateLimitType":"five_hour"}}"#;

    #[test]
    fn the_final_message_is_that_of_the_result_and_the_usage_that_of_all_models() {
        let report = report_of(&[
            INIT,
            "[supervisor: 7 bytes left out]",
            r#"{"type":"assis"#,
            r#"{"type":"result","subtype":"success","is_error":false,"result":" fixed \n","session_id":"7f9c","num_turns":3,
                "total_cost_usd":0.5,"usage":{"input_tokens":1,"output_tokens":1},"permission_denials":[{"tool_name":"Bash"}],
                "modelUsage":{"sonnet":{"inputTokens":10,"outputTokens":4,"cacheReadInputTokens":100,"cacheCreationInputTokens":7},
                "haiku":{"inputTokens":1,"outputTokens":1}}}"#
                .replace('\n', "")
                .as_str(),
        ]);
        let spent = Spent {
            session: Some("7f9c".to_owned()),
            model: Some("sonnet".to_owned()),
            input_tokens: 118,
            cached_tokens: 100,
            output_tokens: 5,
            cost_micros: Some(500_000),
            turns: Some(3),
            denials: 1,
            ..Spent::default()
        };
        let message = Some("fixed".to_owned());
        assert_eq!(report, WorkerReport { finish: Finish::Well, message, trouble: None, spent });
        let usage =
            r#"{"type":"result","usage":{"input_tokens":2,"cache_read_input_tokens":5,"output_tokens":3}}"#;
        let spent = report_of(&[usage]).spent;
        assert_eq!((spent.input_tokens, spent.cached_tokens, spent.output_tokens), (7, 5, 3));
    }

    #[test]
    fn an_output_without_a_result_says_no_more_than_its_session() {
        let report = report_of(&[INIT, r#"{"type":"result"#]);
        assert_eq!((report.finish, report.spent.session.as_deref()), (Finish::Unsaid, Some("7f9c")));
        assert_eq!(report_of(&[]), WorkerReport::default());
    }

    #[test]
    fn a_turn_that_a_message_has_begun_and_that_did_not_end_is_no_end() {
        let well = r#"{"type":"result","subtype":"success","is_error":false,"result":"first"}"#;
        let more = r#"{"type":"assistant","message":{"id":"b"}}"#;
        assert_eq!(report_of(&[INIT, well, more]).finish, Finish::Unsaid);
        let report =
            report_of(&[INIT, well, more, r#"{"type":"result","is_error":false,"result":"second"}"#]);
        assert_eq!((report.finish, report.message.as_deref()), (Finish::Well, Some("second")));
    }

    #[test]
    fn a_run_without_a_result_is_charged_for_each_answer_once() {
        let part = |id: &str, output: u64| {
            format!(
                r#"{{"type":"assistant","message":{{"id":"{id}","usage":{{"input_tokens":5,"cache_read_input_tokens":10,"output_tokens":{output}}}}}}}"#
            )
        };
        let spent = report_of(&[INIT, &part("a", 1), &part("a", 2), &part("b", 4)]).spent;
        assert_eq!((spent.input_tokens, spent.cached_tokens, spent.output_tokens), (30, 20, 6));
        let result = r#"{"type":"result","usage":{"input_tokens":7,"output_tokens":3}}"#;
        let spent = report_of(&[INIT, &part("a", 1), result]).spent;
        assert_eq!((spent.input_tokens, spent.output_tokens), (7, 3), "the result has the last word");
    }

    #[test]
    fn each_result_has_one_meaning() {
        let at = Some(Reset::At(Timestamp::from_secs(1000)));
        let error = |more: &str| format!(r#"{{"type":"result","subtype":"success","is_error":true,{more}}}"#);
        let limit = error(r#""result":"limit","api_error_status":429"#);
        let table = [
            (vec![error(r#""result":"no","api_error_status":401"#)], Finish::NotLoggedIn(Refuser::Service)),
            (
                vec![error(r#""result":"Not logged in · Please run /login""#)],
                Finish::NotLoggedIn(Refuser::Unclear),
            ),
            (
                vec![error(r#""result":"API Error: 403 {\"error\":1}","api_error_status":403"#)],
                Finish::NotLoggedIn(Refuser::Service),
            ),
            (
                vec![error(r#""result":"403 no","api_error_status":403"#)],
                Finish::NotLoggedIn(Refuser::Unclear),
            ),
            (vec![error(r#""result":"no","api_error_status":500"#)], Finish::Unavailable),
            (vec![error(r#""result":"odd","api_error_status":null"#)], Finish::Failed),
            (vec![limit.clone()], Finish::RateLimited(None)),
            (vec![error(r#""api_error_status":529"#)], Finish::RateLimited(None)),
            (vec![error(r#""terminal_reason":"blocking_limit""#)], Finish::RateLimited(None)),
            (vec![REJECTED.to_owned(), limit], Finish::RateLimited(at)),
            (
                vec![r#"{"type":"result","subtype":"error_max_turns","is_error":false}"#.to_owned()],
                Finish::OwnLimit(OwnLimit::Turns),
            ),
            (
                vec![r#"{"type":"result","subtype":"error_max_budget_usd","is_error":true}"#.to_owned()],
                Finish::OwnLimit(OwnLimit::Cost),
            ),
            (
                vec![r#"{"type":"result","subtype":"error_during_execution","is_error":true}"#.to_owned()],
                Finish::Failed,
            ),
        ];
        for (lines, finish) in table {
            let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
            assert_eq!(report_of(&lines).finish, finish, "{lines:?}");
        }
    }

    #[test]
    fn a_field_of_another_type_is_as_if_it_were_not_there() {
        let at = |resets_at: &str| {
            report_of(&[&format!(
                r#"{{"type":"rate_limit_event","status":"rejected","resetsAt":{resets_at}}}"#
            )])
            .finish
        };
        let known = Finish::RateLimited(Some(Reset::At(Timestamp::from_secs(1000))));
        for resets_at in ["1000", "999.5", "\"1970-01-01T00:16:40Z\""] {
            assert_eq!(at(resets_at), known, "{resets_at}");
        }
        assert_eq!(at("{}"), Finish::RateLimited(None));
        let nested =
            r#"{"type":"rate_limit_event","rate_limit_info":{"status":"rejected","resetsAt":999.5}}"#;
        assert_eq!(report_of(&[nested]).finish, known);
        let odd = r#"{"type":"result","subtype":7,"is_error":false,"result":"done","session_id":5,"num_turns":"x","total_cost_usd":0.5,"modelUsage":[],"permission_denials":{},"usage":{"input_tokens":2,"output_tokens":3}}"#;
        let report = report_of(&[INIT, odd]);
        assert_eq!((report.finish, report.message.as_deref()), (Finish::Well, Some("done")));
        assert_eq!(
            (report.spent.session.as_deref(), report.spent.cost_micros),
            (Some("7f9c"), Some(500_000))
        );
        assert_eq!((report.spent.input_tokens, report.spent.output_tokens), (2, 3));
    }

    #[test]
    fn a_limit_is_known_without_a_result_and_one_that_was_waited_for_is_none() {
        let at = |secs| Finish::RateLimited(Some(Reset::At(Timestamp::from_secs(secs))));
        assert_eq!(report_of(&[INIT, REJECTED]).finish, at(1000));
        let flat = r#"{"type":"rate_limit_event","status":"rejected","resetsAt":7}"#;
        assert_eq!(report_of(&[flat]).finish, at(7));
        let well = r#"{"type":"result","subtype":"success","is_error":false,"result":"done"}"#;
        assert_eq!(report_of(&[REJECTED, well]).finish, Finish::Well);
        let allowed =
            r#"{"type":"rate_limit_event","rate_limit_info":{"status":"allowed_warning","resetsAt":9}}"#;
        assert_eq!(report_of(&[REJECTED, allowed]).finish, Finish::Unsaid);
        let retry = r#"{"type":"system","subtype":"api_retry","error_status":429,"retry_delay_ms":500}"#;
        assert_eq!(report_of(&[INIT, retry]).finish, Finish::RateLimited(None));
        assert_eq!(report_of(&[INIT, retry, r#"{"type":"assistant","message":{}}"#]).finish, Finish::Unsaid);
    }
}
