//! The paths of the API that pages use: changes of many tasks, Markdown, live runs, comments on lines, and who may use them.

use std::fs;

use serde_json::{Value, json};

use crate::harness::{Fleet, Repository};
use crate::http::Http;

fn operator(fleet: &Fleet) -> Http {
    let client = Http::at(fleet.root().join("run/supervisor.sock"));
    match fs::read_to_string(fleet.root().join("operator.key")) {
        Ok(key) => client.with("x-supervisor-key", &key),
        Err(_) => client,
    }
}

fn made(api: &Http, task: &Value) -> String {
    api.post("/api/v1/tasks", task).json(201)["id"].as_str().unwrap().to_owned()
}

#[test]
fn what_fails_for_one_task_fails_for_no_other_and_each_has_a_row() {
    let fleet = Fleet::boot();
    let api = operator(&fleet);
    let [a, b] = ["a", "b"].map(|title| made(&api, &json!({ "title": title })));
    let missing = "t_ffffffff";
    for prefix in ["/api/v1", "/api/plugins/kanban"] {
        let path = format!("{prefix}/tasks/bulk");
        let done = api.post(&path, &json!({ "ids": [a, missing, b, a], "priority": 7 })).json(200);
        let rows: Vec<(&str, bool)> = done["results"]
            .as_array()
            .unwrap()
            .iter()
            .map(|row| (row["id"].as_str().unwrap(), row["ok"].as_bool().unwrap()))
            .collect();
        assert_eq!(rows, [(a.as_str(), true), (missing, false), (b.as_str(), true)]);
        let refused = &done["results"][1];
        assert_eq!(refused["code"], "not_found");
        assert!(refused["error"].as_str().unwrap().contains(missing), "{refused}");
    }
    assert_eq!(fleet.show(&b)["task"]["priority"], 7);
    let one = api.post("/api/v1/tasks/bulk", &json!({ "ids": [missing], "archive": true })).json(200);
    assert_eq!((&one["results"][0]["ok"], &one["results"][0]["code"]), (&json!(false), &json!("not_found")));
    let gone = api.post("/api/v1/tasks/bulk", &json!({ "ids": [a, b], "archive": true })).json(200);
    assert_eq!(gone["results"][0]["status"], "archived");
    assert_eq!(fleet.status_of(&b), "archived");
    for wrong in [
        json!({ "ids": [] , "priority": 1 }),
        json!({ "ids": [a] }),
        json!({ "ids": [a], "status": "running" }),
        json!({ "ids": [a], "status": "done", "archive": true }),
        json!({ "ids": [a], "title": "x" }),
        json!({ "ids": vec!["t_00000000"; 501], "priority": 1 }),
    ] {
        assert_eq!(api.post("/api/v1/tasks/bulk", &wrong).status, 422, "{wrong}");
    }
}

#[test]
fn a_repeated_change_of_many_tasks_is_made_once() {
    let fleet = Fleet::boot();
    let api = operator(&fleet).with("x-request-id", "once");
    let [a, b] = ["a", "b"].map(|title| made(&operator(&fleet), &json!({ "title": title })));
    let change = json!({ "ids": [a, b], "status": "blocked", "reason": "later" });
    let first = api.post("/api/v1/tasks/bulk", &change).json(200);
    assert_eq!(first["results"][1]["ok"], true);
    assert_eq!(api.post("/api/v1/tasks/bulk", &change).json(200), first, "it would fail the second time");
}

#[test]
fn the_paths_of_the_other_board_are_there_and_no_others() {
    let fleet = Fleet::boot();
    let api = operator(&fleet);
    let at = |path: &str| format!("/api/plugins/kanban{path}");
    let id = api.post(&at("/tasks"), &json!({ "title": "x" })).json(201)["id"].as_str().unwrap().to_owned();
    let other = made(&api, &json!({ "title": "y" }));
    assert_eq!(api.get(&at(&format!("/tasks/{id}"))).json(200)["task"]["title"], "x");
    let board = api.get(&at("/board?include_archived=1")).json(200);
    let columns = board["columns"].as_array().unwrap().iter();
    let columns: Vec<(&str, usize)> = columns
        .map(|column| (column["name"].as_str().unwrap(), column["tasks"].as_array().unwrap().len()))
        .collect();
    assert!(columns.contains(&("ready", 2)) && columns.contains(&("archived", 0)), "{columns:?}");
    assert_eq!(columns.len(), 9, "those without a task are there, too");
    let patch = json!({ "title": "z" }).to_string();
    api.send("PATCH", &at(&format!("/tasks/{id}")), patch.as_bytes()).json(200);
    api.post(&at(&format!("/tasks/{id}/comments")), &json!({ "body": "hello" })).json(201);
    api.post(&at("/links"), &json!({ "parent_id": id, "child_id": other })).json(200);
    api.send("DELETE", &at(&format!("/links?parent_id={id}&child_id={other}")), b"").json(200);
    api.send("POST", &at("/dispatch?dry_run=True"), b"").json(200);
    api.post(&at("/tasks/bulk"), &json!({ "ids": [id], "assignee": "none" })).json(200);
    api.post(&at("/tasks/bulk"), &json!({ "ids": [id], "assignee": null })).json(200);
    assert_eq!(api.get(&at(&format!("/tasks/{id}"))).json(200)["task"]["assignee"], Value::Null);
    assert!(api.get(&at("/events?since=0")).json(200)["events"].as_array().unwrap().len() > 3);
    let begins = json!({ "default_tenant": null, "lane_by_profile": true, "include_archived_by_default": false, "render_markdown": true });
    assert_eq!(api.get(&at("/config")).json(200), begins);
    fleet.configure(
        "[dashboard]\ndefault_tenant = \"acme\"\nlane_by_profile = false\nrender_markdown = false\n",
    );
    fleet.restart();
    let begins = json!({ "default_tenant": "acme", "lane_by_profile": false, "include_archived_by_default": false, "render_markdown": false });
    assert_eq!(api.get("/api/v1/config").json(200), begins);
    assert_eq!(api.get(&at("/metrics")).status, 404);
}

#[test]
fn markdown_is_rendered_and_a_text_that_is_too_long_is_refused() {
    let fleet = Fleet::boot();
    let api = operator(&fleet);
    let render = |text: &str| api.post("/api/v1/markdown", &json!({ "text": text }));
    let html = render("**a** <script>alert(1)</script> [x](javascript:alert(1))").json(200)["html"].clone();
    assert_eq!(html, "<p><strong>a</strong> &lt;script&gt;alert(1)&lt;/script&gt; x</p>\n");
    assert_eq!(render(&"x".repeat((1 << 20) + 1)).status, 413);
}

#[test]
fn a_live_run_has_a_record_of_its_own() {
    let fleet = Fleet::boot();
    let api = operator(&fleet);
    let id = fleet.create("works", "supervisor heartbeat --note half; sleep 600", &["--tenant", "acme"]);
    let run = fleet.eventually("the worker has said something", || {
        let live = api.get("/api/v1/runs/live").json(200);
        let run = live["runs"].get(0)?.clone();
        // What it says can be heard before the daemon has seen its start.
        let works = run["health"] == "healthy" && run["memory_bytes"].as_u64() > Some(0);
        (works && run["last_note"] == "half").then_some(run)
    });
    assert_eq!((&run["task"], &run["title"]), (&json!(id), &json!("works")));
    assert_eq!((&run["lane"], &run["profile"]), (&json!("shell"), &json!("shell")));
    assert!(run["pid"].is_i64() && run["run"].is_i64() && run["cpu_us"].is_u64(), "{run}");
    assert_eq!(api.get("/api/v1/runs/live?tenant=globex").json(200)["runs"], json!([]));
    // The title is that of the task as it is now, and not that of its start.
    fleet.cli(["edit", &id, "--title", "works on"]).ok();
    assert_eq!(api.get("/api/v1/runs/live").json(200)["runs"][0]["title"], "works on");
    fleet.cli(["kill", &id]).ok();
}

#[test]
fn a_comment_on_a_line_reaches_the_next_run() {
    let fleet = Fleet::boot();
    let repository = Repository::new(&fleet, "repository");
    let flags = ["--workspace", &repository.workspace()];
    let id =
        fleet.create("work", "supervisor context > said; supervisor request-review --summary ready", &flags);
    fleet.wait_for(&id, "review");
    let comments = json!([{ "path": "src/a.rs", "line": 12, "text": "too long" }, { "path": "b", "line": 1, "text": "why?" }]);
    let asked = json!({ "task_id": id, "reason": "see the lines", "comments": comments });
    operator(&fleet).post("/api/v1/verbs/request-changes", &asked).json(200);
    let said = repository.tree(&id).join("said");
    fleet.eventually("the next run has read the comments", || {
        let said = fs::read_to_string(&said).ok()?;
        (said.contains("src/a.rs:12: too long") && said.contains("b:1: why?")).then_some(())
    });
    fleet.wait_for(&id, "review");
    let wrong = json!({ "task_id": id, "comments": [{ "path": "a", "line": 0, "text": "x" }] });
    assert_eq!(operator(&fleet).post("/api/v1/verbs/request-changes", &wrong).status, 422);
    fleet.cli(["request-changes", &id, "--comment", "a.rs:3:no"]).ok();
    fleet.eventually("it is said in words as well", || {
        fs::read_to_string(&said).ok()?.contains("a.rs:3: no").then_some(())
    });
}

#[test]
fn the_document_of_the_api_has_what_the_caller_may_use() {
    let fleet = Fleet::boot();
    let document = operator(&fleet).get("/api/v1/openapi.json").json(200);
    assert_eq!(document["openapi"], "3.1.0");
    for path in ["/api/v1/board", "/api/plugins/kanban/tasks/bulk", "/api/v1/verbs/diff"] {
        assert!(document["paths"][path].is_object(), "{path}");
    }
    let verbs = operator(&fleet).get("/api/v1/verbs").json(200);
    for verb in verbs.as_array().unwrap() {
        let path = format!("/api/v1/verbs/{}", verb["name"].as_str().unwrap());
        assert!(document["paths"][&path].is_object(), "{path}");
    }
}

#[test]
fn a_card_has_the_beginnings_of_long_texts_and_names_them() {
    let fleet = Fleet::boot();
    let api = operator(&fleet);
    let body = "日".repeat(100_000);
    let long = made(&api, &json!({ "title": "long", "body": body }));
    let short = made(&api, &json!({ "title": "short", "body": "all of it" }));
    let asked = fleet.cli(["block", &long, &"why ".repeat(5000)]);
    assert_eq!(asked.code, 0, "{asked:?}");
    for path in ["/api/v1/board".to_owned(), format!("/api/plugins/kanban/board?ids={short},{long}")] {
        let board = api.get(&path);
        assert!(board.body.len() < 20_000, "{path}: {} bytes", board.body.len());
        let board = board.json(200);
        let cards: Vec<&Value> = board["columns"]
            .as_array()
            .unwrap()
            .iter()
            .flat_map(|one| one["tasks"].as_array().unwrap())
            .collect();
        let card = |id: &str| *cards.iter().find(|card| card["id"] == id).unwrap();
        let text = card(&long)["body"].as_str().unwrap();
        assert!(text.ends_with("日…") && text.len() < 2100, "{}", text.len());
        assert_eq!(card(&long)["cut"], json!(["body", "block_reason"]), "{path}");
        assert_eq!((&card(&short)["body"], &card(&short)["cut"]), (&json!("all of it"), &Value::Null));
    }
    assert_eq!(fleet.show(&long)["task"]["body"].as_str().unwrap(), body, "the task itself has all of it");
}

#[test]
fn cards_of_named_tasks_are_those_that_there_are() {
    let fleet = Fleet::boot();
    let api = operator(&fleet);
    let [a, b, c] = ["a", "b", "c"].map(|title| made(&api, &json!({ "title": title })));
    fleet.cli(["archive", &b]).ok();
    let page = api.get(&format!("/api/v1/board?ids={a},{b},t_ffffffff,{a}")).json(200);
    let names: Vec<(&str, &str)> = page["columns"]
        .as_array()
        .unwrap()
        .iter()
        .flat_map(|one| one["tasks"].as_array().unwrap())
        .map(|card| (card["id"].as_str().unwrap(), card["status"].as_str().unwrap()))
        .collect();
    assert_eq!(names, [(a.as_str(), "ready"), (b.as_str(), "archived")], "and not {c}");
    assert_eq!((&page["next"], &page["counts"]), (&Value::Null, &Value::Null));
    let many = vec!["t_00000000"; 1].into_iter().map(str::to_owned);
    let many: Vec<String> = many.chain((1..=100).map(|at| format!("t_{at:08x}"))).collect();
    for wrong in [
        "ids=".to_owned(),
        "ids=nothing".to_owned(),
        format!("ids={a}&tenant=acme"),
        format!("ids={a}&limit=1"),
        format!("ids={}", many.join(",")),
    ] {
        let refused = api.get(&format!("/api/v1/board?{wrong}"));
        assert_eq!(refused.status, 422, "{wrong}");
        assert!(refused.body.contains("ids"), "{wrong}");
    }
}

#[test]
fn the_document_has_the_paths_whose_messages_have_a_form_of_their_own() {
    let fleet = Fleet::boot();
    let document = operator(&fleet).get("/api/v1/openapi.json").json(200);
    for path in ["/mcp", "/api/v1/chat/{name}"] {
        let post = &document["paths"][path]["post"];
        assert!(post["summary"].as_str().is_some_and(|about| !about.is_empty()), "{path}: {post}");
        let schema = &post["requestBody"]["content"]["application/json"]["schema"]["$ref"];
        let schema = document.pointer(schema.as_str().unwrap().strip_prefix('#').unwrap()).unwrap();
        assert_eq!(schema["type"], "object", "{path}");
    }
    let chat = &document["components"]["schemas"]["request.post_api_v1_chat__name_.body"];
    assert!(chat["required"].as_array().unwrap().contains(&json!("chat_id")), "{chat}");
}
