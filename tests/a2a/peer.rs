//! Inward: one root works for another. The lane `a2a` gives its tasks to the agent of a card.

use std::os::unix::fs::PermissionsExt as _;

use serde_json::{Value, json};

use super::wire::{Offering, PARTNER};
use crate::harness::Fleet;
use crate::proxy::is_possible;

/// A root whose lane `partner` is the profile `writer` of another one; none where the host lacks what the lane needs.
fn pair() -> Option<(Fleet, Offering)> {
    let fleet = Fleet::offline();
    if !is_possible(&fleet) {
        return None;
    }
    let offering = Offering::start("");
    fleet.write_config("secrets/partner-token", &format!("{PARTNER}\n"));
    let secret = fleet.root().join("secrets/partner-token");
    std::fs::set_permissions(secret, std::fs::Permissions::from_mode(0o600)).unwrap();
    lane(&fleet, "partner", offering.port, "/writer/.well-known/agent-card.json");
    fleet.start();
    Some((fleet, offering))
}

fn lane(fleet: &Fleet, name: &str, port: u16, card: &str) {
    fleet.lane(
        name,
        &format!(
            "extends = \"a2a\"\n[service]\nurl = \"http://127.0.0.1:{port}{card}\"\n\
             [service.headers]\nauthorization = \"Bearer ${{PARTNER_TOKEN}}\"\n[secrets]\nPARTNER_TOKEN = \"partner-token\"\n"
        ),
    );
}

fn create(fleet: &Fleet, body: &str) -> String {
    let words = ["create", "a page", "--assignee", "partner", "--max-retries", "1", "--body", body];
    fleet.json(words)["id"].as_str().unwrap().to_owned()
}

/// The one task that the other root has.
fn theirs(offering: &Offering) -> Value {
    offering.fleet.eventually("the other root has the task", || {
        let listed = offering.fleet.json(["list", "--tenant", "acme", "--archived"]);
        listed.as_array().unwrap().first().cloned()
    })
}

#[test]
fn an_agent_of_another_root_does_a_task() {
    let Some((fleet, offering)) = pair() else { return };
    let task = create(&fleet, "about trains");

    let shown = fleet.wait_for(&task, "done");

    assert_eq!(shown["latest_summary"], "the work is done", "{shown:#}");
    let metadata = &shown["runs"][0]["metadata"];
    assert_eq!(metadata["data"], json!([{"pages": 3}]), "{metadata}");
    let other = theirs(&offering);
    assert_eq!(metadata["a2a"]["task"], other["id"], "{metadata}");
    let body = other["body"].as_str().unwrap();
    assert!(body.contains("about trains"), "{other}");
    let root = fleet.root().display().to_string();
    assert!(!body.contains(&root) && !body.contains("Workspace:"), "it has no path of this host: {body}");
    assert!(!fleet.cli(["log", &task]).stdout.contains(PARTNER), "the log has no token");
}

#[test]
fn a_question_of_the_agent_is_one_of_the_task_and_its_answer_goes_to_the_same_task() {
    let Some((fleet, offering)) = pair() else { return };
    let task = create(&fleet, "ask first");
    let asks = fleet.wait_for(&task, "blocked");
    let question = asks["task"]["question"]["text"].as_str().unwrap().to_owned();
    assert!(question.contains("which database?") && question.contains("2. PostgreSQL"), "{asks:#}");

    fleet.cli(["answer", &task, "2"]).ok();

    let shown = fleet.wait_for(&task, "done");
    assert_eq!(shown["latest_summary"], "with PostgreSQL", "{shown:#}");
    let listed = offering.fleet.json(["list", "--tenant", "acme", "--archived"]);
    assert_eq!(listed.as_array().unwrap().len(), 1, "one task of the agent: {listed}");
}

#[test]
fn a_run_that_is_ended_cancels_the_task_of_the_agent() {
    let Some((fleet, offering)) = pair() else { return };
    let task = create(&fleet, "wait there");
    let other = theirs(&offering)["id"].as_str().unwrap().to_owned();
    offering
        .fleet
        .eventually("the agent works", || (offering.fleet.status_of(&other) == "running").then_some(()));

    fleet.cli(["cancel", &task]).ok();

    offering.fleet.eventually("the task of the agent is cancelled", || {
        (offering.fleet.status_of(&other) == "archived").then_some(())
    });
}

#[test]
fn an_agent_that_is_no_agent_or_does_not_know_us_is_refused_with_the_reason() {
    let Some((fleet, offering)) = pair() else { return };
    lane(&fleet, "ghost", offering.port, "/ghost/.well-known/agent-card.json");
    fleet.write_config("secrets/partner-token", "wrong\n");
    fleet.cli(["service", "reload"]);
    let of = |lane: &str| {
        let words = ["create", "a page", "--assignee", lane, "--max-retries", "1"];
        fleet.json(words)["id"].as_str().unwrap().to_owned()
    };
    let (absent, unknown) = (of("ghost"), of("partner"));

    let shown = fleet.wait_for(&absent, "blocked");

    assert!(shown["runs"][0].to_string().contains("has answered 404"), "{shown:#}");
    fleet.eventually("the account waits for a login", || {
        fleet.json(["holds"]).to_string().contains("\"login\"").then_some(())
    });
    assert_eq!(fleet.status_of(&unknown), "ready");
}
