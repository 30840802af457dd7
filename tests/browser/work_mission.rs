//! Missions as a graph with the states of its tasks, and the timeline of runs.

use serde_json::{Value, json};

use super::{fleet, visit};
use crate::harness::{Fleet, User};
use crate::http::Http;

/// The selector of a task in the graph.
fn node(task: &str) -> String {
    format!(".graph-node[data-task=\"{task}\"]")
}

/// A mission with room for many tasks, whose first task waits for a person.
fn mission(fleet: &Fleet) -> String {
    let made = fleet.json(["mission", "create", "the site", "--max-tasks", "400"]);
    made["id"].as_str().or(made["task"]["id"].as_str()).unwrap().to_owned()
}

#[test]
fn the_graph_of_a_mission_has_its_tasks_by_state_and_the_lines_between_them() {
    let Some(fleet) = fleet(User::current(), "") else { return };
    let mission = mission(&fleet);
    let design = fleet.create("design", "sleep 600", &["--mission", &mission]);
    let build = fleet.create("build", "true", &["--mission", &mission, "--parent", &design]);
    let words = fleet.create(
        "words",
        "supervisor ask 'Which words?' --choice few --choice many",
        &["--mission", &mission],
    );
    fleet.wait_for(&design, "running");
    fleet.wait_for(&words, "blocked");
    let page = visit(&fleet);
    page.go("/missions");
    page.wait_text("#main", "the site");
    page.click(&format!("#main a[href*=\"{mission}\"]"));

    page.wait(&format!("{}[data-status=running]", node(&design)));
    page.wait(&format!("{}[data-status=todo]", node(&build)));
    page.wait_text(&node(&words), "needs a person");
    page.wait_text(&node(&build), "todo");
    assert!(page.count(".graph-lines path") >= 1);
    let apart = page.script(
        "const [from, to] = [...arguments].map(css => document.querySelector(css).getBoundingClientRect()); return from.right < to.left",
        &[node(&design).into(), node(&build).into()],
    );
    assert_eq!(apart, true, "what waits stands to the right of what it waits for");

    // The arrow keys go along the lines.
    page.script("document.querySelector(arguments[0]).focus()", &[node(&design).into()]);
    page.press("\u{e014}");
    page.wait(&format!("{}:focus", node(&build)));
    page.press("\u{e012}");
    page.wait(&format!("{}:focus", node(&design)));

    // What happens is seen in the graph.
    fleet.cli(["complete", &design, "--summary", "drawn"]).ok();
    page.wait(&format!("{}[data-status=done]", node(&design)));
    page.wait(&format!("{}[data-status=done]", node(&build)));

    page.click(".asks-acts button");
    page.wait_gone(".asks");
    page.script("document.activeElement.blur()", &[]);
    page.press("v");
    page.wait_text(".mission-tasks", "design");
    page.press("p");
    page.wait("dialog[open]");
    page.press("later");
    page.press(super::driver::ENTER);
    page.wait_text(".mission-paused", "later");
    fleet.eventually("it is paused", || {
        (fleet.json(["mission", "show", &mission])["state"] == "paused").then_some(())
    });
    page.is_content();
}

#[test]
fn the_graph_of_two_hundred_tasks_is_drawn_without_overlaps() {
    let Some(fleet) = fleet(User::current(), "") else { return };
    let mission = mission(&fleet);
    let api = Http::at(fleet.root().join("run/supervisor.sock"));
    let mut tasks: Vec<String> = Vec::new();
    for number in 0..199_usize {
        // Twenty rows of ten, each of which waits for two of the row before.
        let parents: Vec<&String> = (number >= 10)
            .then(|| [&tasks[number - 10], &tasks[(number - 10) / 10 * 10]])
            .into_iter()
            .flatten()
            .collect();
        let body = json!({"title": format!("part {number}"), "assignee": "nobody-yet", "mission": mission, "parents": parents});
        let made = api.post("/api/v1/verbs/create", &body);
        let made: Value = serde_json::from_str(&made.body).unwrap();
        tasks.push(made["id"].as_str().unwrap_or_else(|| panic!("{made:#}")).to_owned());
    }
    let page = visit(&fleet);
    page.go(&format!("/missions/{mission}"));
    page.eventually("all are there", |page| (page.count(".graph-node") == 200).then_some(()));
    let overlaps = page.script(
        "const all = [...document.querySelectorAll('.graph-node')].map(node => node.getBoundingClientRect());
         let found = 0;
         for (const a of all) for (const b of all)
             if (a !== b && a.left < b.right - 1 && b.left < a.right - 1 && a.top < b.bottom - 1 && b.top < a.bottom - 1) found += 1;
         return found",
        &[],
    );
    assert_eq!(overlaps, 0);
    // One change of one task is one change of the graph.
    fleet.cli(["block", &tasks[0], "not now"]).ok();
    page.wait(&format!("{}[data-status=blocked]", node(&tasks[0])));
    page.is_content();
}

#[test]
fn the_timeline_has_a_bar_for_each_run_and_zooms() {
    let Some(fleet) = fleet(User::current(), "") else { return };
    fleet.cli(["profile", "create", "second", "--lane", "shell"]).ok();
    let done = fleet.create("was done", "true", &[]);
    let fails = fleet.create("fails", "exit 1", &["--max-retries", "1"]);
    fleet.cli(["create", "goes on", "--assignee", "second", "--body", "sleep 600"]).ok();
    fleet.wait_for(&done, "done");
    fleet.wait_for(&fails, "blocked");
    let page = visit(&fleet);
    page.go("/timeline");

    page.wait_text(".gantt", "second");
    page.wait(".gantt-bar.is-live[data-status=running]");
    page.wait(".gantt-bar[data-status=done]");
    page.wait(".gantt-bar[data-status=blocked]");
    page.eventually("there are three", |page| (page.count(".gantt-bar") == 3).then_some(()));

    // What is known of a run is seen with the keyboard, too.
    page.script("document.querySelector('.gantt-bar[data-status=blocked]').focus()", &[]);
    page.wait_text(".gantt-tip", "fails");
    page.script("document.activeElement.blur()", &[]);

    // No more time is shown than these runs take.
    assert_eq!(page.value("select[aria-label='Time shown']").as_deref(), Some("300"));
    page.press("+");
    page.eventually("the time is shorter", |page| page.address().contains("span=150").then_some(()));
    page.press("h");
    page.eventually("it is an earlier time", |page| page.address().contains("end=").then_some(()));
    page.press("0");
    page.eventually("it is now again", |page| (!page.address().contains("end=")).then_some(()));
    page.press("p");
    page.wait_text(".gantt", "was done");
    page.press("v");
    page.wait_text("table", "fails");
    page.wait_text("table", "running");

    // A run that begins meanwhile comes by itself.
    let later = fleet.create("came later", "true", &[]);
    fleet.wait_for(&later, "done");
    page.wait_text("table", "came later");
    page.is_content();
}
