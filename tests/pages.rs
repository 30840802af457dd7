//! No reply grows with the board: what has more rows, or longer ones, than a reply may have comes in pages.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::harness::Fleet;
use crate::listeners::operator;

/// The rows of one kind in one reply.
const ROWS: usize = 1000;

/// A board with more tasks than a page has, the last of them with more comments and children than are shown at once.
fn crowded() -> (Fleet, String) {
    let fleet = Fleet::boot();
    let api = operator(&fleet);
    let create = |title: String| {
        let made = api.post("/api/v1/tasks", &json!({"title": title, "triage": true})).json(201);
        made["id"].as_str().unwrap().to_owned()
    };
    let ids: Vec<String> = (0..ROWS + 5).map(|at| create(format!("task {at}"))).collect();
    let last = ids.last().unwrap().clone();
    for at in 0..ROWS + 5 {
        let path = format!("/api/v1/tasks/{last}/comments");
        api.post(&path, &json!({"body": format!("comment {at}")})).json(201);
    }
    (fleet, last)
}

fn ids(tasks: &Value) -> Vec<String> {
    tasks.as_array().unwrap().iter().map(|task| task["id"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn what_does_not_fit_into_a_reply_comes_in_pages_and_a_command_line_puts_them_together() {
    let (fleet, last) = crowded();
    let api = operator(&fleet);

    let first = api.get("/api/v1/tasks").json(200);
    assert_eq!(ids(&first["tasks"]).len(), ROWS, "an array would look like all of them");
    assert_eq!(ids(&api.get("/api/v1/tasks?limit=7").json(200)).len(), 7, "as many as were wanted");
    let next = first["next"].as_str().unwrap();
    let second = api.get(&format!("/api/v1/tasks?cursor={next}")).json(200);
    assert_eq!((ids(&second["tasks"]).len(), &second["next"]), (5, &Value::Null));
    let board = api.get("/api/v1/board").json(200);
    let on_it: usize =
        board["columns"].as_array().unwrap().iter().map(|column| ids(&column["tasks"]).len()).sum();
    assert_eq!((on_it, &board["next"]), (ROWS, &first["next"]));
    let rest = api.get(&format!("/api/v1/board?cursor={next}&limit=3")).json(200);
    assert_eq!(ids(&rest["columns"][0]["tasks"]).len(), 3);

    let listed = ids(&fleet.json(["list"]));
    let distinct: BTreeSet<&String> = listed.iter().collect();
    assert_eq!((listed.len(), distinct.len()), (ROWS + 5, ROWS + 5));
    assert_eq!(ids(&fleet.json(["list", "--limit", "1003"])).len(), 1003);
    let table = fleet.cli(["list", "--limit", "1003"]).ok().stdout;
    assert!(table.contains("--cursor "), "a person sees that there is more");
    assert!(!fleet.cli(["list"]).ok().stdout.contains("--cursor "));

    let shown = fleet.show(&last);
    let comments = shown["comments"].as_array().unwrap();
    assert_eq!((comments.len(), &comments[ROWS - 1]["body"]), (ROWS, &json!("comment 1004")));
    assert!(shown["more"].as_array().unwrap().contains(&json!("comments")), "{}", shown["more"]);
    let text = fleet.cli(["show", &last]).ok().stdout;
    let older = format!("supervisor show {last} --before-comment {}", comments[0]["id"]);
    assert!(text.contains(&older), "{text}");
    let older = fleet.json(["show", &last, "--before-comment", &comments[0]["id"].to_string()]);
    assert_eq!(older["comments"].as_array().unwrap().len(), 5);
    let path = format!("/api/v1/tasks/{last}?before_comment={}", comments[0]["id"]);
    assert_eq!(api.get(&path).json(200)["comments"], older["comments"]);
}

#[test]
fn the_runs_of_a_task_come_in_pages() {
    let fleet = Fleet::boot();
    let task = fleet.create("again", "supervisor block 'which one?' --kind needs_input", &[]);
    for _ in 0..2 {
        fleet.wait_for(&task, "blocked");
        fleet.cli(["unblock", &task]).ok();
    }
    fleet.wait_for(&task, "triage");
    let all = fleet.json(["runs", &task]);
    assert_eq!(all.as_array().unwrap().len(), 3);
    let first = fleet.json(["runs", &task, "--limit", "2", "--page"]);
    assert_eq!(first["runs"].as_array().unwrap()[..], all.as_array().unwrap()[..2]);
    let next = first["next"].as_str().unwrap();
    let second = fleet.json(["runs", &task, "--cursor", next]);
    assert_eq!((&second["runs"][0], &second["next"]), (&all[2], &Value::Null));
    let table = fleet.cli(["runs", &task, "--limit", "2"]).ok().stdout;
    assert!(table.contains(&format!("--cursor {next}")), "{table}");
    fleet.cli(["runs", &task, "--cursor", "zz"]).refused(2, "without --cursor");
}

#[test]
fn a_page_of_long_texts_is_shorter_than_one_of_short_ones() {
    let fleet = Fleet::boot();
    let api = operator(&fleet);
    let body = "x".repeat(1 << 20);
    for at in 0..20 {
        api.post("/api/v1/tasks", &json!({"title": format!("{at}"), "triage": true, "body": body})).json(201);
    }
    let first = api.get("/api/v1/tasks").json(200);
    let count = ids(&first["tasks"]).len();
    assert!((1..20).contains(&count) && first["next"].is_string(), "{count} tasks of 1 MiB");
    assert_eq!(ids(&fleet.json(["list"])).len(), 20);
}

#[test]
fn assignees_come_in_pages_and_stats_say_that_there_are_more() {
    let fleet = Fleet::boot();
    let api = operator(&fleet);
    for at in 0..ROWS + 5 {
        let task = json!({"title": "x", "triage": true, "assignee": format!("nobody-{at:04}")});
        api.post("/api/v1/tasks", &task).json(201);
    }
    let stats = api.get("/api/v1/stats").json(200);
    assert_eq!(stats["by_status"]["triage"], json!(ROWS + 5), "all are counted");
    assert_eq!(stats["by_assignee"].as_object().unwrap().len(), ROWS);
    assert_eq!(stats["more"], json!(["by_assignee"]));
    assert!(fleet.cli(["stats"]).ok().stdout.contains("supervisor assignees"));

    let names = |page: &Value| -> BTreeSet<String> {
        let lines = page.as_array().unwrap().iter();
        lines.map(|line| line["name"].as_str().unwrap().to_owned()).collect()
    };
    let ask = |body: Value| api.post("/api/v1/verbs/assignees", &body).json(200);
    let first = ask(json!({}));
    assert_eq!(names(&first["assignees"]).len(), ROWS, "an array would look like all of them");
    let second = ask(json!({"cursor": first["next"]}));
    assert_eq!(second["next"], Value::Null);
    let all = names(&fleet.json(["assignees"]));
    assert!(all.contains("shell") && all.contains("nobody-0000") && all.contains("nobody-1004"));
    assert_eq!(
        names(&first["assignees"]).union(&names(&second["assignees"])).cloned().collect::<BTreeSet<_>>(),
        all
    );
    assert_eq!(names(&fleet.json(["assignees", "--limit", "3"])).len(), 3);
    let next = fleet.json(["assignees", "--limit", "3", "--page"])["next"].as_str().unwrap().to_owned();
    let page = fleet.json(["assignees", "--limit", "3", "--cursor", &next]);
    assert_eq!(names(&page["assignees"]), all.iter().skip(3).take(3).cloned().collect());
    fleet.cli(["assignees", "--cursor", "zz"]).refused(2, "without --cursor");
}
