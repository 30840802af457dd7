//! Inward: what an agent says that is no friend. It is bounded and checked, and its run ends.

use serde_json::{Value, json};

use crate::harness::Fleet;
use crate::notify::played::{Played, PlayedAnswer, ReceivedPost};
use crate::proxy::is_possible;

fn text(value: &Value) -> PlayedAnswer {
    ("200 OK", "", value.to_string().leak())
}

fn task(name: &str, state: &str) -> Value {
    json!({ "id": name, "contextId": "c", "status": { "state": state, "message": { "parts": [{ "text": "no key" }] } } })
}

/// An agent whose answers depend on its address.
fn answer(asked: &ReceivedPost) -> PlayedAnswer {
    let of = asked.path.split('/').nth(1).unwrap_or_default();
    if asked.path.ends_with("/card") {
        let host = asked.header("host").unwrap_or_default();
        let url = format!("http://{host}/{of}/rpc");
        return text(
            &json!({ "supportedInterfaces": [{ "url": url, "protocolBinding": "JSONRPC", "protocolVersion": "1.0" }] }),
        );
    }
    let is_new = asked.json()["method"] == "SendMessage";
    let said = match (of, is_new) {
        ("rejects", _) => task("a", "TASK_STATE_REJECTED"),
        ("locked", _) => task("a", "TASK_STATE_AUTH_REQUIRED"),
        ("elsewhere", _) => return ("307 Temporary Redirect", "location: http://127.0.0.1:9/\r\n", ""),
        (_, true) => task("a", "TASK_STATE_WORKING"),
        (_, false) => task("b", "TASK_STATE_COMPLETED"),
    };
    text(&json!({ "jsonrpc": "2.0", "id": 1, "result": if is_new { json!({ "task": said }) } else { said } }))
}

#[test]
fn an_agent_that_rejects_is_locked_sends_elsewhere_or_speaks_of_another_task_ends_its_run() {
    let fleet = Fleet::offline();
    if !is_possible(&fleet) {
        return;
    }
    let played = Played::start(|asked: &ReceivedPost, _| answer(asked));
    for of in ["rejects", "locked", "elsewhere", "confused"] {
        fleet.lane(of, &format!("extends = \"a2a\"\n[service]\nurl = \"{}/{of}/card\"\n", played.url()));
    }
    fleet.start();
    for (of, why) in [
        ("rejects", "the agent rejects the task: no key"),
        ("locked", "no key"),
        ("elsewhere", "no redirection is followed"),
        ("confused", "another task than the one asked for"),
    ] {
        let words = ["create", "a page", "--assignee", of, "--max-retries", "1"];
        let id = fleet.json(words)["id"].as_str().unwrap().to_owned();
        let shown = fleet.wait_for(&id, "blocked");
        assert!(shown.to_string().contains(why), "{of}: {shown:#}");
        let kind = &shown["task"]["block_kind"];
        let expected = if matches!(of, "rejects" | "locked") { "capability" } else { "gave_up" };
        assert_eq!(kind, expected, "{of}: {shown:#}");
    }
}
