//! The runs of a task: their outcome as a colour and a word, exit, cost, tokens, duration, and what confined them.

use super::{open, part};
use crate::browser::board::cards::AGENT;
use crate::browser::{fleet, visit};
use crate::harness::User;

#[test]
fn a_run_is_a_coloured_row_with_exit_cost_tokens_duration_and_its_sandbox() {
    let Some(fleet) = fleet(User::current(), "") else { return };
    fleet.lane("agent", AGENT);
    fleet.cli(["service", "reload"]).ok();
    let script = r#"test -e again || { touch again; echo 'the disk is full' >&2; exit 3; }
        echo '{"type":"result","subtype":"success","result":"fixed","num_turns":3,"total_cost_usd":0.5,"usage":{"input_tokens":1200,"output_tokens":34}}'"#;
    let made = fleet.json(["create", "costs", "--assignee", "agent", "--body", script, "--max-retries", "3"]);
    let task = made["id"].as_str().unwrap();
    let page = visit(&fleet);
    open(&page, task);
    let runs = part("Runs");
    fleet.wait_for(task, "done");

    page.wait_text(&format!("{runs} .run:nth-child(1) .run-outcome"), "completed");
    page.wait_text(&format!("{runs} .run:nth-child(2) .run-outcome"), "crashed");
    let facts = page.texts(&format!("{runs} .run:nth-child(1) .run-fact"));
    assert_eq!(facts[..3], ["exit 0", "$0.50", "1.2k tokens"], "{facts:?}");
    assert!(facts[3].ends_with('s') || facts[3].contains('m'), "{facts:?}");
    assert_eq!(page.texts(&format!("{runs} .run:nth-child(2) .run-fact"))[0], "exit 3");
    let colour = |at: u32| page.style(&format!("{runs} .run:nth-child({at}) .run-dot"), "background-color");
    assert_ne!(colour(1), colour(2), "the outcome is a colour, too");

    page.click(&format!("{runs} .run:nth-child(2) summary"));
    page.wait_text(&format!("{runs} .run:nth-child(2) .run-detail"), "the disk is full");
    page.click(&format!("{runs} .run:nth-child(1) summary"));
    let detail = format!("{runs} .run:nth-child(1) .run-detail");
    page.wait_text(&detail, "34 out, 3 turns");
    let report = fleet.show(task)["runs"].as_array().unwrap().last().unwrap()["sandbox"].clone();
    let layers = report["layers"].as_array().unwrap_or_else(|| panic!("{report:#}"));
    assert!(!layers.is_empty(), "{report:#}");
    assert_eq!(page.count(&format!("{detail} .layer")), layers.len() as u64);
    let enforced = layers.iter().filter(|layer| layer["state"] == "enforced").count();
    page.wait_text(&format!("{detail} .sandbox"), &format!("{enforced} of {} layers enforced", layers.len()));
    let shown = page.texts(&format!("{detail} .layer-state")).join(" ");
    let states: Vec<_> =
        layers.iter().map(|layer| layer["state"].as_str().unwrap().replace('_', " ")).collect();
    assert_eq!(shown, states.join(" "));

    page.click(&format!("{runs} .run:nth-child(1) .run-log"));
    page.wait_address(&format!("/runs/{task}/"), true);
    page.is_content();
}

#[test]
fn a_live_run_is_shown_as_it_goes_and_older_runs_on_demand() {
    let Some(fleet) = fleet(User::current(), "") else { return };
    let task = fleet.create("runs often", "true", &[]);
    for run in 1..=12 {
        fleet.eventually(&format!("run {run} is over"), || {
            let shown = fleet.show(&task);
            (shown["task"]["status"] == "done" && shown["runs"].as_array()?.len() == run).then_some(())
        });
        if run < 12 {
            fleet.cli(["reopen", &task]).ok();
        }
    }
    fleet.cli(["edit", &task, "--body", "sleep 600"]).ok();
    let page = visit(&fleet);
    open(&page, &task);
    let runs = part("Runs");

    page.wait(&format!("{runs} .run"));
    assert_eq!(page.count(&format!("{runs} .run")), 10);
    page.click(&format!("{runs} .drawer-older"));
    page.eventually("all are there", |page| (page.count(&format!("{runs} .run")) == 12).then_some(()));

    fleet.cli(["reopen", &task]).ok();
    page.wait(&format!("{runs} .run[data-kind=live]:first-child"));
    let took = format!("{runs} .run:first-child [data-since]");
    // It goes on where nothing else happens, too.
    page.eventually("its time goes on", |page| {
        let seconds: u64 = page.text(&took)?.trim_end_matches('s').parse().ok()?;
        (seconds >= 4).then_some(())
    });
    fleet.cli(["cancel", &task]).ok();
    page.wait_text(&format!("{runs} .run:first-child .run-outcome"), "cancelled");
}
