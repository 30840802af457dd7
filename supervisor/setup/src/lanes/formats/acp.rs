//! `acp`: the JSON-RPC lines of the Agent Client Protocol.
//!
//! The result of `session/new` names the session. The agent's words arrive in chunks, and form its final message if
//! no tool call follows. The result of a prompt names the reason for the end of the turn. The protocol reports no
//! usage.

use kernel::OwnLimit;
use serde::Deserialize;
use serde_json::Value;

use super::events::each;
use super::{Finish, MESSAGE_BYTES, WorkerReport, final_message, name, service, trouble};
use shim::rundir::Stdout;

#[derive(Deserialize)]
struct AcpLine {
    id: Option<Value>,
    method: Option<String>,
    #[serde(default)]
    params: Value,
    #[serde(default)]
    result: Value,
    error: Option<Value>,
}

pub(super) fn read(stdout: &Stdout) -> WorkerReport {
    let mut report = WorkerReport::default();
    let mut words = String::new();
    each(stdout, |line: AcpLine| {
        if line.method.as_deref() == Some("session/update") {
            let update = &line.params["update"];
            match update["sessionUpdate"].as_str() {
                Some("agent_message_chunk") => {
                    report.finish = Finish::Unsaid;
                    words.push_str(update["content"]["text"].as_str().unwrap_or_default());
                    // Only the end of the text counts.
                    let from = words.len().saturating_sub(2 * MESSAGE_BYTES);
                    words.drain(..words.ceil_char_boundary(from));
                }
                Some("tool_call") => {
                    report.finish = Finish::Unsaid;
                    words.clear();
                }
                Some(_) | None => {}
            }
            return;
        }
        if line.method.is_some() || line.id.is_none() {
            return;
        }
        if let Some(session) = line.result["sessionId"].as_str() {
            report.spent.session = name(session);
        }
        if let Some(error) = &line.error {
            let text = error["message"].as_str().unwrap_or_default();
            let details = error["data"].as_str().or(error["data"]["details"].as_str());
            let text = [Some(text), details].into_iter().flatten().collect::<Vec<_>>().join(": ");
            // JSON-RPC codes are negative: a code in the range of HTTP is the status of the agent's service (Gemini
            // CLI 0.61).
            let status = error["code"].as_u64().filter(|code| (400..600).contains(code));
            report.finish = match (service::by_words(&text), status) {
                (Finish::Failed, Some(status)) => service::by_status(status, None),
                (by_words, _) => by_words,
            };
            report.trouble = trouble(&text);
        } else if let Some(reason) = line.result["stopReason"].as_str() {
            report.finish = match reason {
                "end_turn" => Finish::Well,
                "max_turn_requests" => Finish::OwnLimit(OwnLimit::Turns),
                _ => Finish::Failed,
            };
            let why = Some(reason).filter(|_| report.finish == Finish::Failed);
            report.trouble = why.and_then(|reason| trouble(&format!("its turn ended with {reason}")));
            report.message = final_message(&words);
            report.spent.turns = Some(report.spent.turns.unwrap_or_default().saturating_add(1));
            words.clear();
        } else {
            // Result of another request, such as `session/load`: drops words that a resumed session replays.
            words.clear();
        }
    });
    report
}

#[cfg(test)]
mod tests {
    use super::super::Refuser;
    use super::*;

    fn report_of(lines: &[&str]) -> WorkerReport {
        super::super::tests::report_of("acp", lines.join("\n").as_bytes())
    }

    fn chunk(text: &str) -> String {
        format!(
            r#"{{"method":"session/update","params":{{"update":{{"sessionUpdate":"agent_message_chunk","content":{{"type":"text","text":"{text}"}}}}}}}}"#
        )
    }

    const NEW: &str = r#"{"id":1,"result":{"sessionId":"s-1"}}"#;
    const TOOL: &str =
        r#"{"method":"session/update","params":{"update":{"sessionUpdate":"tool_call","title":"ls"}}}"#;
    const END: &str = r#"{"id":2,"result":{"stopReason":"end_turn"}}"#;

    #[test]
    fn the_words_after_the_last_tool_are_the_final_message() {
        let report = report_of(&[NEW, &chunk("I look"), TOOL, &chunk("all "), &chunk("done"), END]);
        assert_eq!((report.finish, report.message.as_deref()), (Finish::Well, Some("all done")));
        assert_eq!((report.spent.session.as_deref(), report.spent.turns), (Some("s-1"), Some(1)));
        assert_eq!(
            report_of(&[NEW, END, &chunk("more")]).finish,
            Finish::Unsaid,
            "a message has begun another turn"
        );
    }

    #[test]
    fn each_end_has_one_meaning() {
        let of = |line: &str| report_of(&[NEW, line]).finish;
        assert_eq!(
            of(r#"{"id":2,"result":{"stopReason":"max_turn_requests"}}"#),
            Finish::OwnLimit(OwnLimit::Turns)
        );
        assert_eq!(of(r#"{"id":2,"result":{"stopReason":"refusal"}}"#), Finish::Failed);
        assert_eq!(of(r#"{"id":2,"error":{"message":"quota exceeded"}}"#), Finish::RateLimited(None));
        assert_eq!(
            of(r#"{"id":2,"error":{"message":"Internal error","data":{"details":"status: 401"}}}"#),
            Finish::NotLoggedIn(Refuser::Service)
        );
        let by_code = |code: i32| of(&format!(r#"{{"id":2,"error":{{"code":{code},"message":"no"}}}}"#));
        assert_eq!(by_code(401), Finish::NotLoggedIn(Refuser::Service));
        assert_eq!(by_code(429), Finish::RateLimited(None));
        assert_eq!(by_code(500), Finish::Unavailable);
        assert_eq!(by_code(-32603), Finish::Failed);
        assert_eq!(of(r#"{"id":7,"method":"session/request_permission","params":{}}"#), Finish::Unsaid);
    }
}
