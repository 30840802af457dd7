//! Duration of runs: the limits that apply, and the messages about them.

use serde_json::{Value, json};

use crate::harness::Fleet;

/// A lane whose workers run the body of their task.
const LANE: &str = r#"argv = ["/bin/sh", "{prompt_file}"]
prompt = "body-file"
on_clean_exit = "complete"
"#;

/// The time limit of a task in `show`: seconds, and what sets it.
fn limit(shown: &Value) -> (u64, &str) {
    let limit = &shown["time_limit"];
    (limit["seconds"].as_u64().unwrap_or_else(|| panic!("{shown:#}")), limit["from"].as_str().unwrap())
}

#[test]
fn the_most_specific_time_limit_holds_a_tenant_bounds_it_and_show_says_whose_it_is() {
    let fleet = Fleet::offline();
    fleet.configure(
        "[worker]\nmax_runtime = \"3h\"\n[runtime]\nper_tenant = \"90m\"\ntenants = { acme = \"1h\" }\n",
    );
    fleet.lane("timed", &format!("max_runtime = \"2h\"\n{LANE}"));
    fleet.write_config("profiles.d/ann.md", "---\nlane: timed\nlimits: {max_runtime: 7m}\n---\n");
    fleet.start();
    let asked = |words: &[&str]| {
        let mut all = vec!["create", "x", "--body", "true"];
        all.extend(words);
        fleet.json(all)["id"].as_str().unwrap().to_owned()
    };
    for (words, seconds, from) in [
        (&["--assignee", "shell"][..], 10_800, "configuration"),
        (&["--assignee", "timed"], 7_200, "lane"),
        (&["--assignee", "ann"], 420, "profile"),
        (&["--assignee", "ann", "--max-runtime", "8h"], 28_800, "task"),
        (&["--assignee", "ann", "--max-runtime", "8h", "--tenant", "acme"], 3_600, "tenant"),
        (&["--assignee", "timed", "--tenant", "other"], 5_400, "tenant"),
        (&["--assignee", "ann", "--tenant", "other"], 420, "profile"),
    ] {
        let waiting = asked(&[words, &["--triage"]].concat());
        assert_eq!(limit(&fleet.show(&waiting)), (seconds, from), "before it runs: {words:?}");
        let task = asked(words);
        let run = &fleet.wait_for(&task, "done")["runs"][0];
        let told = (&run["max_runtime_seconds"], &run["max_runtime_from"]);
        assert_eq!(told, (&json!(seconds), &json!(from)), "{words:?}");
    }
    let task = asked(&["--assignee", "ann", "--tenant", "acme", "--max-runtime", "5h", "--triage"]);
    let shown = fleet.cli(["show", &task]).ok().stdout;
    assert!(shown.contains("time limit 1h, the limit of its tenant"), "{shown}");
}

#[test]
fn a_run_that_meets_the_bound_of_its_tenant_is_ended_and_its_event_says_whose_limit_it_was() {
    let fleet = Fleet::offline();
    fleet.configure("[runtime]\ntenants = { acme = \"1s\" }\n");
    fleet.start();
    let task = fleet.create(
        "too long",
        "exec sleep 600",
        &["--tenant", "acme", "--max-retries", "1", "--max-runtime", "1h"],
    );
    let shown = fleet.wait_for(&task, "blocked");
    assert_eq!(shown["runs"][0]["outcome"], "timed_out", "{shown:#}");
    let events = shown["events"].as_array().unwrap();
    let event = events.iter().find(|event| event["kind"] == "timed_out").unwrap();
    assert_eq!(
        (&event["payload"]["limit_seconds"], &event["payload"]["limit_from"]),
        (&json!(1), &json!("tenant"))
    );
}

#[test]
fn a_bound_of_nothing_is_refused_by_its_name() {
    let fleet = Fleet::offline();
    fleet.write_config("supervisor.toml", "[runtime]\ntenants = { acme = 0 }\n");
    fleet.cli(["create", "x"]).refused(2, "runtime.tenants.acme is 0");
}

#[test]
fn a_heartbeat_is_progress_of_a_worker_that_does_nothing_else() {
    let fleet = Fleet::offline();
    fleet.write_config("profiles.d/ann.md", "---\nlane: timed\nlimits: {idle_limit: 6s}\n---\n");
    fleet.lane("timed", &format!("idle_limit = \"1h\"\n{LANE}"));
    fleet.start();
    let words = ["create", "x", "--assignee", "ann", "--max-retries", "1", "--body", "exec sleep 1000"];
    let task = fleet.json(words)["id"].as_str().unwrap().to_owned();
    fleet.wait_for(&task, "running");
    let silent = fleet.json(words)["id"].as_str().unwrap().to_owned();
    fleet.eventually("one that began later and has no heartbeats has stalled", || {
        fleet.cli(["heartbeat", &task]).ok();
        (fleet.status_of(&silent) == "blocked").then_some(())
    });
    assert_eq!(fleet.status_of(&task), "running");
    let shown = fleet.wait_for(&task, "blocked");
    assert_eq!(shown["runs"][0]["outcome"], "stalled", "{shown:#}");
}
