//! Texts of columns and cards.

use super::{card_in, wait_column};
use crate::browser::driver::Browser;
use crate::browser::{card, column, fleet, visit, yard};
use crate::harness::{Fleet, User};

/// A lane whose workers are scripts that write what an agent would.
pub(in crate::browser) const AGENT: &str = r#"argv = ["/bin/sh", "{prompt_file}"]
prompt = "body-file"
stdout = "claude-stream-json"
on_clean_exit = "complete"
"#;

fn parked(fleet: &Fleet, title: &str, more: &[&str]) -> String {
    fleet.create(title, "true", &[&["--initial-status", "blocked"], more].concat())
}

#[test]
fn a_card_says_what_is_known_of_its_task() {
    let Some(fleet) = fleet(User::current(), "") else { return };
    let before = parked(&fleet, "before it", &["--tenant", "acme"]);
    let task =
        fleet.create("the release", "true", &["--parent", &before, "--priority", "5", "--tenant", "acme"]);
    let parts = ["first part", "second part"].map(|title| fleet.create(title, "true", &["--parent", &task]));
    fleet.cli(["complete", &parts[0]]).ok();
    fleet.cli(["comment", &task, "one"]).ok();
    fleet.cli(["comment", &task, "two"]).ok();
    let page = visit(&fleet);

    let its = |part: &str| format!("{} {part}", card_in("todo", &task));
    page.wait_text(&its(".card-title"), "the release");
    assert_eq!(page.text(&its(".id")).as_deref(), Some(task.as_str()));
    assert_eq!(page.texts(&its(".chip")), ["Priority P5", "Tenant acme"]);
    assert_eq!(page.texts(&its(".person .cut")), ["shell"]);
    let counters = page.texts(&its(".counter"));
    assert_eq!(counters, ["1/21 of 2 children done", "33 links", "22 comments"]);
    let age = page.texts(&its(".age")).concat();
    assert!(age.ends_with('s') || age.ends_with('m'), "{age}");
    assert_eq!(page.text(&its(".card-wait")).as_deref(), Some("Waits for before it (blocked)"));

    // What comes later is counted at once.
    fleet.cli(["comment", &task, "three"]).ok();
    page.wait_text(&its(".counters"), "3");
    page.eventually("three comments", |page| {
        page.texts(&its(".counter")).contains(&"33 comments".to_owned()).then_some(())
    });
    page.is_content();
}

#[test]
fn a_card_says_why_its_task_waits() {
    let Some(fleet) = fleet(User::current(), "") else { return };
    let nobody = fleet.json(["create", "nobody's"])["id"].as_str().unwrap().to_owned();
    let later = fleet.create("later", "true", &["--not-before", "3d"]);
    let stuck = fleet.create("stuck", "true", &[]);
    fleet.wait_for(&stuck, "done");
    let stuck = fleet.create("stuck", "true", &["--triage"]);
    fleet.cli(["block", &stuck, "the key is lost"]).ok();
    let unknown =
        fleet.json(["create", "no such worker", "--assignee", "ghost"])["id"].as_str().unwrap().to_owned();
    let page = visit(&fleet);

    page.wait_text(&format!("{} .card-wait", card(&nobody)), "Has no assignee");
    page.wait_text(&format!("{} .card-wait", card(&later)), "Starts in 2d 23h");
    page.wait_text(&format!("{} .card-wait", card(&stuck)), "The key is lost");
    page.wait_text(&format!("{} .card-wait", card(&unknown)), "ghost");
}

#[test]
fn a_running_card_says_what_its_run_costs_while_it_lives() {
    let Some(fleet) = fleet(User::current(), "") else { return };
    fleet.lane("agent", AGENT);
    fleet.cli(["service", "reload"]).ok();
    let yard = yard(&fleet);
    let go = yard.join("go");
    let script = format!(
        r#"echo '{{"type":"result","subtype":"success","result":"half","total_cost_usd":0.5,"usage":{{"input_tokens":7,"output_tokens":2}}}}'
           until test -e {}; do sleep 0.1; done
           echo '{{"type":"result","subtype":"success","result":"all","total_cost_usd":1.25,"usage":{{"input_tokens":9,"output_tokens":4}}}}'
           sleep 600"#,
        go.display()
    );
    let workspace = format!("dir:{}", yard.display());
    let task =
        fleet.json(["create", "costs", "--assignee", "agent", "--body", &script, "--workspace", &workspace]);
    let task = task["id"].as_str().unwrap();
    let page = visit(&fleet);

    page.wait_text(&format!("{} .cost", card_in("running", task)), "$0.50");
    page.wait_text(&format!("{} .card-wait", card_in("running", task)), "Running for");
    std::fs::write(&go, "").unwrap();
    page.wait_text(&format!("{} .cost", card_in("running", task)), "$1.25");
}

/// The colour of the dot before the word of a column.
fn colour(page: &Browser, status: &str) -> String {
    let colour = page.script(
        "return getComputedStyle(document.querySelector(arguments[0]), '::before').backgroundColor",
        &[format!("{} h2", column(status)).into()],
    );
    colour.as_str().unwrap().to_owned()
}

#[test]
fn a_column_per_status_has_its_word_its_count_and_its_colour_and_archived_tasks_are_shown_on_demand() {
    let Some(fleet) = fleet(User::current(), "") else { return };
    let parent = parked(&fleet, "blocked", &[]);
    fleet.create("todo", "true", &["--parent", &parent]);
    fleet.create("triage", "true", &["--triage"]);
    fleet.create("triage too", "true", &["--triage"]);
    fleet.create("scheduled", "true", &["--not-before", "1h"]);
    fleet.json(["create", "ready"]);
    fleet.create("running", "sleep 600", &[]);
    let review = fleet.create("review", "true", &["--triage"]);
    fleet.cli(["promote", &review]).ok();
    fleet.wait_for(&review, "done");
    let review = fleet.json(["create", "review"])["id"].as_str().unwrap().to_owned();
    fleet.cli(["request-review", &review]).ok();
    let archived = fleet.create("archived", "true", &["--triage"]);
    fleet.cli(["archive", &archived]).ok();
    let page = visit(&fleet);

    let counts = [
        ("triage", "Triage", 2),
        ("todo", "Todo", 1),
        ("scheduled", "Scheduled", 1),
        ("ready", "Ready", 1),
        ("running", "Running", 1),
        ("review", "Review", 1),
        ("blocked", "Blocked", 1),
        ("done", "Done", 1),
    ];
    for (status, word, count) in counts {
        page.wait_text(&format!("{} h2", column(status)), word);
        page.eventually(&format!("{status} has {count}"), |page| {
            (page.text(&format!("{} .column-head .count", column(status)))? == count.to_string())
                .then_some(())
        });
    }
    let mut colours: Vec<_> = counts.iter().map(|(status, ..)| colour(&page, status)).collect();
    colours.sort();
    colours.dedup();
    assert!(colours.len() >= 6 && !colours.contains(&"rgba(0, 0, 0, 0)".to_owned()), "{colours:?}");

    assert!(!page.sees(&column("archived")));
    page.click("[aria-label='Show archived tasks']");
    page.wait(&card_in("archived", &archived));
    page.wait_address("archived=1", true);
    page.reload();
    page.wait(&card_in("archived", &archived));
    page.back();
    page.wait_gone(&column("archived"));
}

#[test]
fn running_tasks_are_in_lanes_by_their_worker() {
    let Some(fleet) = fleet(User::current(), "") else { return };
    fleet.lane("agent", AGENT);
    fleet.cli(["service", "reload"]).ok();
    let of_shell = ["2", "1"].map(|priority| fleet.create("one", "sleep 600", &["--priority", priority]));
    let of_agent = fleet.json(["create", "three", "--assignee", "agent", "--body", "sleep 600"]);
    let of_agent = of_agent["id"].as_str().unwrap().to_owned();
    for task in of_shell.iter().chain([&of_agent]) {
        fleet.wait_for(task, "running");
    }
    let page = visit(&fleet);

    wait_column(&page, "running", &[&of_agent, &of_shell[0], &of_shell[1]]);
    assert_eq!(page.texts(&format!("{} .lane", column("running"))), ["agent1", "shell2"]);
    page.click("[aria-label='Lanes by profile in Running']");
    page.wait_gone(".lane");
    page.wait_address("lanes=0", true);
    wait_column(&page, "running", &[&of_shell[0], &of_shell[1], &of_agent]);

    // A task goes to another lane with its assignee.
    page.click("[aria-label='Lanes by profile in Running']");
    fleet.cli(["reassign", &of_shell[0], "agent", "--reclaim"]).ok();
    page.eventually("the lanes are as they are now", |page| {
        (page.texts(&format!("{} .lane", column("running"))) == ["agent2", "shell1"]).then_some(())
    });
}
