//! Turns the state of an agent's task into a verdict of this run.

use serde_json::{Value, json};

use super::super::verdict::ServiceVerdict;
use super::NOTE;
use base::a2a_wire::State;
use base::failure::Failure;

/// Size limit of a summary and of a question, in bytes; the board has its own.
const TEXT: usize = 16 << 10;
/// Size limit of data, in bytes.
const DATA: usize = 16 << 10;
/// Size limit of a task's or a conversation's id, in bytes.
const NAME: usize = 256;

/// Returns the state of an agent's task. An unknown state counts as working.
pub(super) fn state(task: &Value) -> State {
    task["status"]["state"].as_str().and_then(State::parse).unwrap_or(State::Working)
}

/// Returns the verdict for the final state of the agent's task.
pub(super) fn ending(task: &Value) -> Result<ServiceVerdict, Failure> {
    let words = text(&task["status"]["message"]["parts"]);
    let words_or = |otherwise: &str| if words.is_empty() { otherwise.to_owned() } else { words.clone() };
    let verdict = match state(task) {
        State::Completed => {
            json!({ "complete": { "summary": summary(task, &words), "metadata": metadata(task) } })
        }
        State::InputRequired => json!({ "block": {
            "question": words_or("the agent needs an answer"), "free_text": true, "notes": note(task),
        } }),
        State::AuthRequired => json!({ "block": {
            "reason": words_or("the agent needs an authorization"), "kind": "capability", "notes": note(task),
        } }),
        State::Rejected => json!({ "block": {
            "reason": format!("the agent rejects the task: {}", words_or("it gives no reason")), "kind": "capability",
        } }),
        State::Failed => {
            return Err(Failure::failed(format!("the agent has failed: {}", words_or("it gives no reason"))));
        }
        State::Canceled => return Err(Failure::failed("the agent has cancelled the task")),
        State::Submitted | State::Working => return Err(Failure::failed("the agent names no task")),
    };
    ServiceVerdict::parse(verdict.to_string().as_bytes())
}

/// Returns the summary: the texts of a task's artifacts.
fn summary(task: &Value, words: &str) -> String {
    let artifacts = task["artifacts"].as_array().map(Vec::as_slice).unwrap_or_default();
    let texts: Vec<String> =
        artifacts.iter().map(|one| text(&one["parts"])).filter(|text| !text.is_empty()).collect();
    match (texts.is_empty(), words.is_empty()) {
        (false, _) => cut(texts.join("\n\n"), TEXT),
        (true, false) => words.to_owned(),
        (true, true) => "the agent has completed the task".to_owned(),
    }
}

/// Returns the metadata: the ids of the agent's task, and its data if within the limit.
fn metadata(task: &Value) -> Value {
    let name = |key: &str| task[key].as_str().map(|name| cut(name.to_owned(), NAME));
    let parts = task["artifacts"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|one| one["parts"].as_array())
        .flatten();
    let data: Vec<&Value> = parts.map(|part| &part["data"]).filter(|data| !data.is_null()).collect();
    let mut metadata = json!({ "a2a": { "task": name("id"), "context": name("contextId") } });
    let data = json!(data);
    if data != json!([]) && data.to_string().len() <= DATA {
        metadata["data"] = data;
    }
    metadata
}

fn note(task: &Value) -> Option<String> {
    let name = task["id"]
        .as_str()
        .filter(|name| !name.is_empty() && name.len() <= NAME && !name.contains(char::is_control));
    name.map(|name| format!("{NOTE}{name}"))
}

fn text(parts: &Value) -> String {
    let texts = parts.as_array().into_iter().flatten().filter_map(|part| part["text"].as_str());
    cut(texts.collect::<Vec<_>>().join("\n"), TEXT)
}

fn cut(mut text: String, most: usize) -> String {
    if text.len() > most {
        let end = (0..=most).rev().find(|at| text.is_char_boundary(*at)).unwrap_or_default();
        text.truncate(end);
        text.push('…');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reported(state: &str) -> String {
        let task = json!({
            "id": "t-1", "contextId": "c-1",
            "status": {"state": state, "message": {"parts": [{"text": "words"}]}},
            "artifacts": [{"parts": [{"text": "the result"}, {"data": {"pages": 3}}]}],
        });
        match ending(&task) {
            Ok(verdict) => format!("{verdict:?}"),
            Err(failure) => failure.message,
        }
    }

    #[test]
    fn each_state_is_a_verdict_or_a_failure() {
        let done = reported("TASK_STATE_COMPLETED");
        assert!(
            done.starts_with("Complete") && done.contains("the result") && done.contains("pages"),
            "{done}"
        );
        let asks = reported("TASK_STATE_INPUT_REQUIRED");
        assert!(
            asks.starts_with("Block") && asks.contains("words") && asks.contains("a2a-task: t-1"),
            "{asks}"
        );
        assert!(reported("TASK_STATE_AUTH_REQUIRED").contains("Capability"));
        assert!(reported("TASK_STATE_REJECTED").contains("the agent rejects the task: words"));
        assert_eq!(reported("TASK_STATE_FAILED"), "the agent has failed: words");
        assert_eq!(reported("TASK_STATE_CANCELED"), "the agent has cancelled the task");
        for state in ["TASK_STATE_SUBMITTED", "TASK_STATE_WORKING", "TASK_STATE_OF_TOMORROW"] {
            assert!(!super::state(&json!({"status": {"state": state}})).rests(), "{state}");
        }
    }

    #[test]
    fn what_is_too_long_is_cut() {
        assert_eq!(cut("ääää".to_owned(), 3), "ä…");
        let task = json!({"status": {"state": "TASK_STATE_COMPLETED"}, "artifacts": [{"parts": [{"text": "x".repeat(1 << 20)}]}]});
        assert!(summary(&task, "").len() < 17 << 10);
    }
}
