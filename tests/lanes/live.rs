//! Messages of a live run's agent are known before its end.

use serde_json::json;

use crate::harness::Fleet;

/// A lane whose workers are scripts that write what an agent would.
const AGENT: &str = r#"argv = ["/bin/sh", "{prompt_file}"]
prompt = "body-file"
stdout = "claude-stream-json"
account = "main"
retry_limit = "1s"
"#;

fn running(script: &str) -> (Fleet, String) {
    saying("claude-stream-json", script)
}

/// A run of a script that writes what an agent would, in a format.
fn saying(format: &str, script: &str) -> (Fleet, String) {
    let fleet = Fleet::offline();
    fleet.lane("agent", &AGENT.replace("claude-stream-json", format));
    fleet.start();
    let create = ["create", "fix it", "--assignee", "agent", "--max-retries", "1", "--body", script];
    let id = fleet.json(create)["id"].as_str().unwrap().to_owned();
    (fleet, id)
}

#[test]
fn what_a_live_run_has_used_is_in_status_and_in_show() {
    let (fleet, id) = running(
        r#"echo '{"type":"system","subtype":"init","session_id":"s-1"}'
           echo '{"type":"assistant","message":{"id":"a","usage":{"input_tokens":7,"output_tokens":2}}}'
           sleep 600"#,
    );
    fleet.eventually("its usage is shown", || {
        let spent = fleet.show(&id)["runs"][0]["spent"].clone();
        (spent["input_tokens"] == json!(7) && spent["session"] == json!("s-1")).then_some(())
    });
    let status = fleet.json(["status"]);
    assert_eq!(status["workers"][0]["spent"]["output_tokens"], json!(2), "{status:#}");
    let text = fleet.cli(["status"]).ok().stdout;
    assert!(text.contains("7 tokens in, 2 out"), "{text}");
}

#[test]
fn a_service_that_refuses_an_agent_for_too_long_ends_its_run_as_a_rate_limit_and_holds_the_account() {
    let (fleet, id) = running(
        r#"echo '{"type":"system","subtype":"init","session_id":"s-1"}'
           while :; do echo '{"type":"system","subtype":"api_retry","error_status":429}'; sleep 1; done"#,
    );
    let shown = fleet.wait_for(&id, "scheduled");
    assert_eq!(shown["runs"][0]["outcome"], "rate_limited", "{shown:#}");
    assert_eq!(shown["task"]["consecutive_failures"], json!(0), "{shown:#}");
    let holds = fleet.json(["holds"]);
    assert_eq!(holds[0]["name"], "main", "{holds:#}");
}

#[test]
fn an_agent_of_codex_that_only_reconnects_is_ended_as_after_an_outage() {
    let (fleet, id) = saying(
        "codex-jsonl",
        r#"echo '{"type":"thread.started","thread_id":"t-1"}'
           echo '{"type":"turn.started"}'
           while :; do echo '{"type":"error","message":"Reconnecting... waiting for network"}'; sleep 1; done"#,
    );
    let shown = fleet.wait_for(&id, "scheduled");
    let run = &shown["runs"][0];
    assert_eq!(run["outcome"], "rate_limited", "{shown:#}");
    assert!(run["error"].as_str().unwrap().contains("waiting for network"), "{run:#}");
    assert_eq!(shown["task"]["consecutive_failures"], json!(0), "{shown:#}");
}
