//! The refusal of a service, which a broker sees, is known even if the agent writes nothing of it.

use serde_json::json;

use super::{create, keyed, provider::Provider};
use crate::harness::User;

/// The line of a script that asks the service, which answers with a status.
fn ask(path: &str) -> String {
    format!("curl -s -o /dev/null -m 60 $SERVICE_URL/{path}")
}

#[test]
fn an_agent_that_fails_without_a_word_is_judged_by_what_its_service_has_answered_last() {
    let provider = Provider::start();
    let Some(fleet) = keyed(User::current(), &provider) else { return };
    fleet.start();
    for (path, pause) in [("status/429", 300), ("status/500", 60), ("busy", 5000)] {
        let task = create(&fleet, &format!("{}; exit 1", ask(path)));
        let shown = fleet.wait_for(&task, "scheduled");
        let run = &shown["runs"][0];
        assert_eq!(run["outcome"], "rate_limited", "{path}: {shown:#}");
        assert_eq!(shown["task"]["consecutive_failures"], 0, "{path}: {shown:#}");
        let told = shown["task"]["not_before"].as_i64().unwrap() - run["ended_at"].as_i64().unwrap();
        assert!((pause - 10..=pause + 1).contains(&told), "{path}: {told}");
    }
    // A service that has answered in between does not refuse it, and neither does one that refuses one request.
    for answers in [["status/429", "well"], ["well", "status/404"]] {
        let task = create(&fleet, &format!("{}; {}; exit 1", ask(answers[0]), ask(answers[1])));
        let shown = fleet.wait_for(&task, "blocked");
        assert_eq!(shown["runs"][0]["outcome"], "crashed", "{shown:#}");
    }
    let task = create(&fleet, &format!("{}; exit 1", ask("status/401")));
    let shown = fleet.eventually("it waits for a login", || {
        let shown = fleet.show(&task);
        shown["why"]["text"].as_str()?.contains("login").then_some(shown)
    });
    assert_eq!(shown["task"]["consecutive_failures"], 0, "{shown:#}");
    assert!(shown["runs"][0].to_string().contains("was HTTP 401"), "{shown:#}");
    assert_eq!(fleet.json(["holds"])[0]["kind"], "login");
}

#[test]
fn an_agent_that_asks_again_and_again_in_silence_is_ended_as_after_a_rate_limit() {
    let provider = Provider::start();
    let Some(fleet) = keyed(User::current(), &provider) else { return };
    let lane = std::fs::read_to_string(fleet.root().join("lanes.d/agent.toml")).unwrap();
    fleet.lane("agent", &format!("retry_limit = \"1s\"\n{lane}"));
    fleet.lane("waits", &format!("idle_limit = \"3s\"\n{lane}"));
    fleet.start();
    let retries = create(&fleet, &format!("while :; do {}; sleep 0.2; done", ask("status/529")));
    let script = format!("{}; sleep 600", ask("busy"));
    let words = ["create", "x", "--assignee", "waits", "--max-retries", "1", "--body", &script];
    let waits = fleet.json(words)["id"].as_str().unwrap().to_owned();
    for task in [retries, waits] {
        let shown = fleet.wait_for(&task, "scheduled");
        let run = &shown["runs"][0];
        assert_eq!(
            (&run["outcome"], &shown["task"]["consecutive_failures"]),
            (&json!("rate_limited"), &json!(0)),
            "{shown:#}"
        );
    }
}
