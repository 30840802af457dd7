//! `claude-stream-json`: the events of `claude -p --output-format stream-json --verbose`, of which two tell how it ended.
//!
//! `result` is the last event of a run that came to an end of its own. Its `subtype` is `success` also where a request
//! failed for good, so `is_error` counts. `rate_limit_event` tells of the limits of the account, whether they are met or not.

use kernel::Timestamp;
use serde::Deserialize;
use shim::rundir::Stdout;

use super::{Finish, Said, final_message};

/// The status of a request that is one too many, and that of a service with too many from everybody.
const REFUSED: [i64; 2] = [429, 529];

#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Event {
    Result {
        #[serde(default)]
        is_error: bool,
        result: Option<String>,
        api_error_status: Option<i64>,
    },
    #[serde(rename = "rate_limit_event")]
    RateLimit {
        rate_limit_info: Option<Limit>,
        #[serde(flatten)]
        limit: Limit,
    },
    #[serde(other)]
    Other,
}

/// What there is to know of a limit; in an object of its own or in the event itself.
#[derive(Default, Deserialize)]
struct Limit {
    status: Option<String>,
    /// Epoch seconds.
    #[serde(rename = "resetsAt")]
    resets_at: Option<i64>,
}

pub(super) fn read(stdout: &Stdout) -> Said {
    let mut said = Said::default();
    let (mut is_rejected, mut resets_at) = (false, None);
    stdout.each_line(|line| match serde_json::from_slice(line) {
        Ok(Event::Result { is_error, result, api_error_status }) => {
            let is_refused =
                is_error && (is_rejected || api_error_status.is_some_and(|status| REFUSED.contains(&status)));
            let finish = if is_refused {
                Finish::RateLimited(resets_at)
            } else if is_error {
                Finish::Failed
            } else {
                Finish::Well
            };
            said = Said { finish, message: result.as_deref().and_then(final_message) };
        }
        Ok(Event::RateLimit { rate_limit_info, limit }) => {
            let limit = rate_limit_info.unwrap_or(limit);
            is_rejected = limit.status.is_some_and(|status| status == "rejected");
            resets_at = limit.resets_at.filter(|_| is_rejected).map(Timestamp::from_secs);
        }
        Ok(Event::Other) | Err(_) => {}
    });
    if said.finish == Finish::Unsaid && is_rejected {
        said.finish = Finish::RateLimited(resets_at);
    }
    said
}

#[cfg(test)]
mod tests {
    use super::super::Format;
    use super::*;
    use shim::rundir::{Cause, ExitRecord, RunDir};

    fn said(lines: &[&str]) -> Said {
        let place = tempfile::tempdir().unwrap();
        std::fs::write(place.path().join("stdout"), lines.join("\n")).unwrap();
        let run = RunDir::open(place.path()).unwrap();
        Format::ClaudeStreamJson.read(&run.stdout(&ExitRecord::of(Cause::Exited, 1)).unwrap())
    }

    const INIT: &str = r#"{"type":"system","subtype":"init","session_id":"7f9c"}"#;
    const REJECTED: &str = r#"{"type":"rate_limit_event","rate_limit_info":{"status":"rejected","resetsAt":1000,"rateLimitType":"five_hour"}}"#;

    #[test]
    fn the_final_message_is_that_of_the_result() {
        let told = said(&[
            INIT,
            "[supervisor: 7 bytes left out]",
            r#"{"type":"assis"#,
            r#"{"type":"result","subtype":"success","is_error":false,"result":" fixed \n"}"#,
        ]);
        assert_eq!(told, Said { finish: Finish::Well, message: Some("fixed".to_owned()) });
    }

    #[test]
    fn an_output_without_a_result_says_nothing() {
        assert_eq!(said(&[INIT, r#"{"type":"result"#]), Said::default());
        assert_eq!(said(&[]), Said::default());
    }

    #[test]
    fn a_success_with_an_error_is_none() {
        let result =
            r#"{"type":"result","subtype":"success","is_error":true,"result":"no","api_error_status":401}"#;
        assert_eq!(said(&[result]).finish, Finish::Failed);
    }

    #[test]
    fn a_refusal_by_the_service_is_a_rate_limit_until_it_resets() {
        let result = r#"{"type":"result","subtype":"success","is_error":true,"result":"limit","api_error_status":429}"#;
        assert_eq!(said(&[INIT, result]).finish, Finish::RateLimited(None));
        assert_eq!(said(&[REJECTED, result]).finish, Finish::RateLimited(Some(Timestamp::from_secs(1000))));
        assert_eq!(said(&[INIT, REJECTED]).finish, Finish::RateLimited(Some(Timestamp::from_secs(1000))));
        let flat = r#"{"type":"rate_limit_event","status":"rejected","resetsAt":7}"#;
        assert_eq!(said(&[flat]).finish, Finish::RateLimited(Some(Timestamp::from_secs(7))));
    }

    #[test]
    fn a_limit_that_was_waited_for_is_none() {
        let well = r#"{"type":"result","subtype":"success","is_error":false,"result":"done"}"#;
        assert_eq!(said(&[REJECTED, well]).finish, Finish::Well);
        let allowed =
            r#"{"type":"rate_limit_event","rate_limit_info":{"status":"allowed_warning","resetsAt":9}}"#;
        assert_eq!(said(&[REJECTED, allowed]).finish, Finish::Unsaid);
    }

    #[test]
    fn a_message_as_long_as_it_likes_is_cut() {
        let long = format!(r#"{{"type":"result","is_error":false,"result":"{}"}}"#, "é".repeat(100_000));
        assert_eq!(said(&[&long]).message.unwrap().len(), 4096);
    }
}
