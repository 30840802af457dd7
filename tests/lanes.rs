//! Lanes of one's own: what an agent says about its ending on its standard output.

use serde_json::{Value, json};

use crate::harness::Fleet;

/// A lane whose workers are scripts that write what an agent would.
const AGENT: &str = r#"argv = ["/bin/sh", "{prompt_file}"]
prompt = "body-file"
stdout = "claude-stream-json"
on_clean_exit = "complete"
"#;

/// Runs a script in that lane until its task has a status, and returns all about it.
fn run(script: &str, status: &str) -> Value {
    let fleet = Fleet::offline();
    fleet.lane("agent", AGENT);
    fleet.start();
    let create = ["create", "fix it", "--assignee", "agent", "--max-retries", "1", "--body", script];
    let id = fleet.json(create)["id"].as_str().unwrap().to_owned();
    fleet.wait_for(&id, status)
}

#[test]
fn the_summary_is_the_final_message_however_much_else_there_is() {
    let shown = run(
        r#"echo '{"type":"system","subtype":"init"}'
           echo 'a warning' >&2
           echo '{"type":"result","subtype":"success","is_error":false,"result":"fixed the parser"}'
           head -c 20000 /dev/zero | tr '\0' x; echo
           head -c 20000 /dev/zero | tr '\0' y >&2"#,
        "done",
    );
    assert_eq!(shown["latest_summary"], "fixed the parser", "{shown:#}");
}

#[test]
fn an_agent_that_ends_well_without_a_result_has_not_reported() {
    let shown = run("echo '{\"type\":\"system\",\"subtype\":\"init\"}'", "blocked");
    assert_eq!(shown["runs"][0]["outcome"], "unreported", "{shown:#}");
}

#[test]
fn a_rate_limit_that_an_agent_reports_is_no_failure() {
    let shown = run(
        r#"echo '{"type":"result","subtype":"success","is_error":true,"result":"limit","api_error_status":429}'; exit 1"#,
        "scheduled",
    );
    assert_eq!(shown["runs"][0]["outcome"], "rate_limited", "{shown:#}");
    assert_eq!(shown["task"]["consecutive_failures"], json!(0), "{shown:#}");
}

#[test]
fn what_a_worker_tells_the_board_goes_before_what_it_writes() {
    let shown = run(
        r#"supervisor complete --summary 'told the board'
           echo '{"type":"result","is_error":true,"result":"no","api_error_status":429}'; exit 1"#,
        "done",
    );
    assert_eq!(shown["latest_summary"], "told the board", "{shown:#}");
}
