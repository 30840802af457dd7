//! The API on the operator's socket, as any HTTP client sees it.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::harness::{Fleet, User};
use crate::http::{Http, HttpAnswer};
use crate::listeners::{idle_worker, workers_door};

/// The operator's door. Where workers share the operator's uid it asks for the key.
fn operator(fleet: &Fleet) -> Http {
    let key = std::fs::read_to_string(fleet.root().join("operator.key")).unwrap();
    door(fleet).with("x-supervisor-key", &key)
}

fn door(fleet: &Fleet) -> Http {
    Http::at(fleet.root().join("run/supervisor.sock"))
}

fn id(created: &Value) -> String {
    created["id"].as_str().unwrap().to_owned()
}

/// Checks that an answer is a problem document of a class, and returns it.
#[track_caller]
fn problem(answer: &HttpAnswer, status: u16, code: &str) -> Value {
    let problem = answer.json(status);
    assert!(answer.head.contains("content-type: application/problem+json"), "{}", answer.head);
    assert_eq!((&problem["status"], &problem["code"]), (&json!(status), &json!(code)), "{problem}");
    assert!(problem["detail"].is_string() && problem["title"].is_string() && problem["type"].is_string());
    problem
}

#[test]
fn a_task_that_is_posted_is_found_under_its_id_in_the_list_and_on_the_board() {
    for user in User::all() {
        let fleet = Fleet::boot_as(user);
        let api = operator(&fleet);

        let created =
            api.post("/api/v1/tasks", &json!({"title": "look", "body": "x", "tenant": "acme"})).json(201);

        let id = id(&created);
        assert_eq!(api.get(&format!("/api/v1/tasks/{id}")).json(200)["task"]["title"], "look");
        assert_eq!(api.get("/api/v1/tasks?status=ready&tenant=acme").json(200)[0]["id"], id);
        assert_eq!(api.get("/api/v1/tasks?status=done").json(200), json!([]));
        let board = api.get("/api/v1/board").json(200);
        let column = board["columns"].as_array().unwrap().iter().find(|column| column["name"] == "ready");
        assert_eq!(column.unwrap()["tasks"][0]["id"], id, "{board:#}");
        assert_eq!(board["tenants"], json!(["acme"]));
        assert!(board["latest_event_id"].as_i64().unwrap() >= 1 && board["now"].is_number());
        assert_eq!(api.get("/api/v1/stats").json(200)["by_status"], json!({"ready": 1}));
        assert_eq!(api.get("/api/v1/stats?tenant=acme").json(200)["by_status"], json!({"ready": 1}));
        assert_eq!(api.get("/api/v1/stats?tenant=other").json(200)["by_status"], json!({}));
        assert_eq!(api.get("/api/v1/status").json(200)["daemon"]["pid"], fleet.daemon_pid());
    }
}

#[test]
fn an_idempotency_key_answers_a_second_post_with_the_first_task() {
    let fleet = Fleet::boot();
    let api = operator(&fleet);
    let body = json!({"title": "once", "idempotency_key": "k"});
    let first = api.post("/api/v1/tasks", &body).json(201);
    let second = api.post("/api/v1/tasks", &body).json(200);
    assert_eq!((&second["id"], &second["existing"]), (&first["id"], &json!(true)));
}

#[test]
fn a_patch_moves_and_assigns_a_task() {
    let fleet = Fleet::boot();
    let api = operator(&fleet);
    let task = format!("/api/v1/tasks/{}", id(&api.post("/api/v1/tasks", &json!({"title": "x"})).json(201)));
    let patch = |body: &Value| api.send("PATCH", &task, body.to_string().as_bytes());
    assert_eq!(patch(&json!({"assignee": "ghost"})).json(200)["assignee"], "ghost");
    assert_eq!(patch(&json!({"status": "blocked", "reason": "why"})).json(200)["block_reason"], "why");
    assert_eq!(patch(&json!({"status": "ready"})).json(200)["status"], "ready");
    let done =
        patch(&json!({"status": "done", "summary": "s", "metadata": {"n": 1}, "assignee": ""})).json(200);
    assert_eq!((&done["status"], &done["assignee"]), (&json!("done"), &Value::Null));
    assert_eq!(api.get(&task).json(200)["latest_summary"], "s");
    problem(&patch(&json!({"status": "moon"})), 422, "usage");
    problem(&patch(&json!({"status": "blocked", "reason": "late"})), 409, "conflict");
    problem(&patch(&json!({"colour": "red"})), 422, "usage");
    assert_eq!(patch(&json!({"status": "archived"})).json(200)["status"], "archived");
}

#[test]
fn a_patch_that_is_refused_in_part_changes_nothing() {
    let fleet = Fleet::boot();
    let api = operator(&fleet);
    let task = format!("/api/v1/tasks/{}", id(&api.post("/api/v1/tasks", &json!({"title": "x"})).json(201)));
    let body = json!({"assignee": "ghost", "status": "ready"}).to_string();
    problem(&api.send("PATCH", &task, body.as_bytes()), 409, "conflict");
    assert_eq!(api.get(&task).json(200)["task"]["assignee"], Value::Null);
}

#[test]
fn comments_and_links_have_resources_of_their_own() {
    let fleet = Fleet::boot();
    let api = operator(&fleet);
    let [a, b] = ["a", "b"].map(|title| id(&api.post("/api/v1/tasks", &json!({"title": title})).json(201)));
    let comment = api.post(&format!("/api/v1/tasks/{a}/comments"), &json!({"body": "hello"})).json(201);
    assert_eq!(comment["body"], "hello");
    let link = json!({"parent_id": a, "child_id": b});
    assert_eq!(api.post("/api/v1/links", &link).json(200)["status"], "todo");
    problem(&api.post("/api/v1/links", &json!({"parent_id": b, "child_id": a})), 409, "conflict");
    let unlinked = api.send("DELETE", &format!("/api/v1/links?parent_id={a}&child_id={b}"), b"").json(200);
    assert_eq!(unlinked["status"], "ready");
    problem(&api.send("DELETE", "/api/v1/links?parent_id=x", b""), 422, "usage");
}

#[test]
fn events_are_read_from_a_cursor_and_a_reader_may_wait_for_the_next() {
    let fleet = Fleet::boot();
    let api = operator(&fleet);
    let task = id(&api.post("/api/v1/tasks", &json!({"title": "x", "tenant": "acme"})).json(201));
    let page = api.get("/api/v1/events?since=0").json(200);
    assert_eq!(page["events"][0]["kind"], "created");
    let cursor = page["cursor"].as_i64().unwrap();
    let (reader, path) =
        (api.clone(), format!("/api/v1/events?since={cursor}&wait=30&kinds=commented,archived"));
    let waiting = std::thread::spawn(move || reader.get(&path).json(200));

    api.post(&format!("/api/v1/tasks/{task}/comments"), &json!({"body": "hello"})).json(201);

    let next = waiting.join().unwrap();
    assert_eq!(
        (&next["events"][0]["kind"], &next["events"][0]["tenant"]),
        (&json!("commented"), &json!("acme"))
    );
    let start = Instant::now();
    let cursor = next["cursor"].as_i64().unwrap();
    let empty = api.get(&format!("/api/v1/events?since={cursor}&wait=1")).json(200);
    assert_eq!(empty["events"], json!([]));
    assert!(start.elapsed() >= Duration::from_secs(1), "it waited");
}

#[test]
fn a_pass_is_asked_for_and_its_plan_is_told() {
    let fleet = Fleet::boot();
    let api = operator(&fleet);
    let ghost = api.post("/api/v1/tasks", &json!({"title": "x", "assignee": "ghost"})).json(201);
    let plan = api.send("POST", "/api/v1/dispatch?dry_run=true", b"").json(200);
    assert_eq!(plan["skipped_nonspawnable"], json!([ghost["id"]]));
    assert!(api.send("POST", "/api/v1/dispatch", b"").json(200)["spawned"].is_array());
}

#[test]
fn a_repeat_of_a_request_gets_the_first_reply_also_after_a_restart() {
    let fleet = Fleet::boot();
    let api = operator(&fleet).with("x-request-id", "one-and-the-same");
    let body = json!({"title": "once"});
    let first = api.post("/api/v1/tasks", &body).json(201);
    assert_eq!(api.post("/api/v1/tasks", &body).json(201), first);
    fleet.restart();
    assert_eq!(api.post("/api/v1/tasks", &body).json(201), first);
    assert_eq!(fleet.json(["list"]).as_array().unwrap().len(), 1);
    problem(&operator(&fleet).with("x-request-id", "a b").post("/api/v1/tasks", &body), 422, "usage");
}

#[test]
fn what_does_not_fit_is_refused_as_a_problem_document() {
    let fleet = Fleet::boot();
    let api = operator(&fleet);
    let task = id(&api.post("/api/v1/tasks", &json!({"title": "x"})).json(201));
    assert!(problem(&api.get("/api/v1/nowhere"), 404, "not_found")["hint"].is_string());
    problem(&api.get("/"), 404, "not_found");
    problem(&api.get("/api/v1/tasks/t_00000000"), 404, "not_found");
    problem(&api.get("/api/v1/tasks/seven"), 400, "usage");
    problem(&api.get("/api/v1/tasks?colour=red"), 422, "usage");
    problem(&api.get("/api/v1/events?since=yesterday"), 422, "usage");
    problem(&api.send("POST", "/api/v1/tasks", b"{"), 422, "usage");
    problem(&api.send("POST", "/api/v1/tasks", b"\xff\xfe"), 422, "usage");
    problem(&api.post("/api/v1/tasks", &json!({"title": "x", "colour": "red"})), 422, "usage");
    problem(&api.post("/api/v1/tasks", &json!({"title": 7})), 422, "usage");
    problem(&api.post("/api/v1/tasks", &json!({"title": "x\u{7}"})), 422, "usage");
    problem(&api.post("/api/v1/tasks", &json!({"title": "x", "body": "a".repeat(1_048_577)})), 422, "usage");
    problem(&api.post("/api/v1/tasks", &json!({"title": "x", "body": "a".repeat(10_000_000)})), 413, "usage");
    problem(
        &api.post("/api/v1/verbs/create", &json!({"title": "x", "body": "a".repeat(10_000_000)})),
        413,
        "usage",
    );
    problem(&api.post("/api/v1/verbs/nothing", &json!({})), 404, "not_found");
    problem(&api.post(&format!("/api/v1/tasks/{task}/comments"), &json!({"body": ""})), 422, "usage");
    problem(&api.with("x-supervisor-board", "nowhere").get("/api/v1/board"), 404, "not_found");
    problem(&api.with("x-supervisor-board", "No Name").get("/api/v1/board"), 422, "usage");
    problem(&api.send("DELETE", "/api/v1/board", b""), 405, "usage");
    assert_eq!(fleet.json(["list"]).as_array().unwrap().len(), 1, "nothing was made");
}

#[test]
fn where_workers_share_the_operators_uid_its_socket_asks_for_the_key() {
    let fleet = Fleet::boot_as(User::ordinary());
    let file = fleet.root().join("operator.key");
    let key = std::fs::read(&file).unwrap();
    fleet.cli(["list"]).ok();

    // Root is asked for nothing, so this goes through a command of that user with a wrong key.
    std::fs::write(&file, "0".repeat(64)).unwrap();
    fleet.cli(["list"]).refused(77, "operator's key");

    std::fs::write(&file, key).unwrap();
    fleet.cli(["list"]).ok();
}

#[test]
fn the_workers_socket_serves_nobody_without_a_token() {
    for user in User::all() {
        let fleet = Fleet::boot_as(user);
        let key = std::fs::read_to_string(fleet.root().join("operator.key")).unwrap();
        idle_worker(&fleet, &[]);
        let door = workers_door(&fleet);
        for api in [door.clone(), door.with("x-supervisor-key", &key)] {
            problem(&api.get("/api/v1/board"), 403, "not_permitted");
            problem(&api.post("/api/v1/tasks", &json!({"title": "x"})), 403, "not_permitted");
            problem(&api.post("/api/v1/verbs/stop", &json!({})), 403, "not_permitted");
        }
        assert_eq!(fleet.json(["list"]).as_array().unwrap().len(), 1, "nothing was made");
    }
}

#[test]
fn boards_are_made_changed_moved_and_removed_through_the_api() {
    let fleet = Fleet::boot();
    let api = operator(&fleet);
    let slugs = |api: &Http, path: &str| -> Vec<String> {
        let boards = api.get(path).json(200);
        boards.as_array().unwrap().iter().map(|board| board["slug"].as_str().unwrap().to_owned()).collect()
    };

    let made = api.post("/api/v1/boards", &json!({"slug": "two", "details": {"name": "Second"}})).json(201);
    assert_eq!((&made["slug"], &made["name"]), (&json!("two"), &json!("Second")));
    problem(&api.post("/api/v1/boards", &json!({"slug": "two"})), 409, "conflict");
    problem(&api.post("/api/v1/boards", &json!({"slug": "No Name"})), 422, "usage");
    let edited = api.send("PATCH", "/api/v1/boards/two", br#"{"description": "for tests"}"#).json(200);
    assert_eq!((&edited["name"], &edited["description"]), (&json!("Second"), &json!("for tests")));
    let cleared = api.send("PATCH", "/api/v1/boards/two", br#"{"name": ""}"#).json(200);
    assert_eq!((&cleared["name"], &cleared["description"]), (&json!("two"), &json!("for tests")));
    problem(&api.send("PATCH", "/api/v1/boards/none", b"{}"), 404, "not_found");
    problem(&api.send("PATCH", "/api/v1/boards/two", br#"{"default_workdir": "a/b"}"#), 422, "usage");
    assert_eq!(slugs(&api, "/api/v1/boards"), ["default", "two"]);

    let two = api.with("x-supervisor-board", "two");
    two.post("/api/v1/tasks", &json!({"title": "kept", "triage": true})).json(201);
    let export = two.get("/api/v1/export");
    assert_eq!(export.status, 200);
    assert_eq!(export.body, fleet.cli(["--board", "two", "export"]).ok().stdout);
    let file = fleet.home().join("two.jsonl");
    let wrote = two.post("/api/v1/verbs/export", &json!({"file": file})).json(200);
    assert_eq!(wrote["rows"]["tasks"], 1);
    problem(&two.post("/api/v1/verbs/export", &json!({"file": "two.jsonl"})), 422, "usage");
    let third = api.with("x-supervisor-board", "three");
    let none = fleet.home().join("none.jsonl");
    problem(&third.post("/api/v1/verbs/import", &json!({"file": none})), 404, "not_found");
    assert_eq!(
        slugs(&api, "/api/v1/boards"),
        ["default", "two"],
        "nothing is made for a file that is not there"
    );
    let read = third.post("/api/v1/verbs/import", &json!({"file": file})).json(200);
    assert_eq!((&read["board"], &read["rows"]), (&json!("three"), &wrote["rows"]));
    assert_eq!(third.get("/api/v1/tasks").json(200)[0]["title"], "kept");

    let gone = api.send("DELETE", "/api/v1/boards/three?delete=true", b"").json(200);
    assert_eq!(gone["deleted"], true);
    problem(&third.get("/api/v1/tasks"), 404, "not_found");
    problem(&api.send("DELETE", "/api/v1/boards/default", b""), 409, "conflict");
    assert_eq!(slugs(&api, "/api/v1/boards"), ["default", "two"]);
}

#[test]
fn the_daemon_examines_its_own_root_and_says_what_the_command_line_says() {
    let fleet = Fleet::boot();
    let examined = operator(&fleet).get("/api/v1/doctor?replay=true").json(200);
    let told = fleet.cli(["doctor", "--replay", "--json"]);
    let said = |report: &Value| -> Vec<(String, String)> {
        let checks = report["checks"].as_array().unwrap().iter();
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        checks.map(|check| (text(&check["subject"]), text(&check["severity"]))).collect()
    };
    assert_eq!(said(&examined), said(&told.json()));
    assert!(said(&examined).contains(&("replay default".to_owned(), "ok".to_owned())), "{examined:#}");
}

#[test]
fn an_export_with_an_open_run_is_not_imported_beside_a_daemon() {
    let fleet = Fleet::boot();
    let task = fleet.create("long", "sleep 1000", &[]);
    fleet.wait_for(&task, "running");
    fleet.cli(["export", "--file", "board.jsonl"]).ok();
    fleet.cli(["--board", "copy", "import", "board.jsonl"]).refused(4, "still open");
    assert_eq!(fleet.json(["--board", "copy", "list"]), json!([]));
}
