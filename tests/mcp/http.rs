//! Over HTTP: one message a request, through the same doors as every other path.

use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixStream;

use serde_json::{Value, json};

use super::agent::{names, text};
use super::stdio::OF_A_WORKER;
use super::versions::meta;
use crate::harness::Fleet;
use crate::http::{Http, HttpAnswer};
use crate::listeners::{as_worker, first_socket, idle_worker, operator, workers_door};
use crate::worker::Worker;

fn accepting(door: &Http) -> Http {
    door.with("accept", "application/json, text/event-stream")
}

/// Sends a message and returns the answer.
fn sent(door: &Http, method: &str, params: &Value) -> HttpAnswer {
    let message = json!({"jsonrpc": "2.0", "id": 7, "method": method, "params": params});
    accepting(door).post("/mcp", &message)
}

/// Sends a message and returns what came back.
#[track_caller]
fn asked(door: &Http, method: &str, params: &Value) -> Value {
    let answer = sent(door, method, params).json(200);
    assert_eq!(answer["id"], json!(7), "{answer}");
    answer
}

#[track_caller]
fn called(door: &Http, tool: &str, arguments: &Value) -> Value {
    asked(door, "tools/call", &json!({"name": tool, "arguments": arguments}))["result"].clone()
}

#[test]
fn a_worker_lives_by_tools_over_http_without_a_session() {
    let fleet = Fleet::boot();
    let worker = Worker::hold(&fleet, &[]);
    let door = worker.door();
    let client = json!({"name": "test", "version": "1"});
    let hello = json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client});

    let opened = sent(&door, "initialize", &hello);
    assert!(opened.head.contains("content-type: application/json"), "{}", opened.head);
    assert!(!opened.head.contains("mcp-session-id"), "there are no sessions: {}", opened.head);
    assert_eq!(opened.json(200)["result"]["protocolVersion"], json!("2025-06-18"));
    let door = door.with("mcp-protocol-version", "2025-06-18");
    let begun = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    assert_eq!(accepting(&door).post("/mcp", &begun).status, 202);

    assert_eq!(names(&asked(&door, "tools/list", &json!({}))["result"]), OF_A_WORKER);
    let shown = called(&door, "kanban_show", &json!({}));
    assert_eq!(shown["structuredContent"]["task"]["id"], json!(worker.task), "its own: {shown}");
    let file = json!({"filename": "a.bin", "content_base64": "AAEC"});
    assert_eq!(called(&door, "kanban_attach", &file)["structuredContent"]["size"], json!(3));
    let path = called(&door, "kanban_attach", &json!({"filename": "x", "path": "/etc/hostname"}));
    assert!(text(&path).contains("does not read /etc/hostname"), "{path}");
    let done = called(&door, "kanban_complete", &json!({"summary": "over http"}));
    assert_eq!(done["isError"], json!(false), "{done}");
    worker.go();
    assert_eq!(fleet.wait_for(&worker.task, "done")["latest_summary"], "over http");
}

#[test]
fn the_version_without_a_handshake_names_itself_in_each_request() {
    let fleet = Fleet::boot();
    let (_, token) = idle_worker(&fleet, &[]);
    let door = as_worker(&fleet, &token).with("mcp-protocol-version", "2026-07-28");

    let found =
        asked(&door.with("mcp-method", "server/discover"), "server/discover", &json!({"_meta": meta()}));
    assert!(
        found["result"]["supportedVersions"].as_array().unwrap().contains(&json!("2026-07-28")),
        "{found}"
    );
    let listed = asked(&door.with("mcp-method", "tools/list"), "tools/list", &json!({"_meta": meta()}));
    assert_eq!(names(&listed["result"]), OF_A_WORKER);
    let door = door.with("mcp-method", "tools/call");
    let params = json!({"name": "kanban_show", "arguments": {}, "_meta": meta()});
    let shown = asked(&door.with("mcp-name", "kanban_show"), "tools/call", &params);
    assert_eq!(shown["result"]["resultType"], json!("complete"), "{shown}");
    let astray = sent(&door.with("mcp-name", "kanban_block"), "tools/call", &params);
    assert_eq!(astray.status, 400, "the header names another tool: {}", astray.body);
}

#[test]
fn a_message_goes_through_the_same_doors_as_every_request() {
    let fleet = Fleet::boot();
    let (task, token) = idle_worker(&fleet, &[]);
    let door = as_worker(&fleet, &token);
    let list = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"});

    let stranger = accepting(&workers_door(&fleet)).post("/mcp", &list);
    assert_eq!(stranger.status, 403, "{}", stranger.body);
    let forged = accepting(&workers_door(&fleet).with("authorization", "Bearer 0123")).post("/mcp", &list);
    assert_eq!(forged.status, 403, "{}", forged.body);
    let other = accepting(&door.with("x-supervisor-board", "other")).post("/mcp", &list);
    assert_eq!(other.status, 403, "{}", other.body);
    for method in ["GET", "DELETE"] {
        let refused = door.with("accept", "text/event-stream").send(method, "/mcp", b"");
        assert_eq!(refused.status, 405, "{}", refused.body);
        assert!(refused.head.contains("allow: post"), "{}", refused.head);
    }
    let large = vec![b' '; 5 << 20];
    assert_eq!(accepting(&door).send("POST", "/mcp", &large).status, 413);
    assert_eq!(door.with("accept", "text/html").post("/mcp", &list).status, 406);
    let page = accepting(&door.with("origin", "https://example.com")).post("/mcp", &list);
    assert_eq!(page.status, 403, "a page of a browser: {}", page.body);
    for broken in ["{", "[]", "{\"jsonrpc\": \"2.0\", \"id\": 1}", "\"x\"", ""] {
        let answer = accepting(&door).send_as("POST", "/mcp", Some("application/json"), broken.as_bytes());
        assert!((400..=422).contains(&answer.status), "{broken}: {} {}", answer.status, answer.body);
    }
    let broken = accepting(&door).send_as("POST", "/mcp", Some("application/json"), b"{").json(400);
    assert_eq!((&broken["error"]["code"], &broken["id"]), (&json!(-32700), &json!(null)), "{broken}");
    let deep = [b"{\"a\":".repeat(10_000), b"1".to_vec(), b"}".repeat(10_000)].concat();
    assert!(accepting(&door).send("POST", "/mcp", &deep).status >= 400);

    let said = called(&door, "kanban_comment", &json!({"body": "still here"}));
    assert_eq!(said["isError"], json!(false), "{said}");
    assert_eq!(fleet.show(&task)["comments"].as_array().unwrap().len(), 1);
    assert!(!fleet.log().contains("kanban_comment"), "the log tells nothing of what clients send");
}

#[test]
fn a_run_that_sends_more_messages_than_it_may_is_throttled() {
    let fleet = Fleet::offline();
    fleet.configure("[api]\nrequests_per_second_per_run = 1");
    fleet.start();
    let (_, token) = idle_worker(&fleet, &[]);
    let message = json!({"jsonrpc": "2.0", "id": 7, "method": "tools/list"}).to_string();
    let head = format!(
        "POST /mcp HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {token}\r\ncontent-type: application/json\r\n\
         accept: application/json, text/event-stream\r\ncontent-length: {}\r\n",
        message.len()
    );
    let one = format!("{head}\r\n{message}");
    let last = format!("{head}connection: close\r\n\r\n{message}");
    let mut stream = UnixStream::connect(first_socket(&fleet)).unwrap();

    // At once and on one connection: on a slow host the rate would come back between two of them otherwise.
    stream.write_all((one.repeat(12) + &last).as_bytes()).unwrap();

    let mut said = String::new();
    stream.read_to_string(&mut said).unwrap();
    assert!(said.starts_with("HTTP/1.1 200 "), "{said}");
    let (_, refused) = said.split_once("HTTP/1.1 429 ").expect("one of them was too many");
    assert!(refused.contains("retry-after: 1"), "{refused}");
    assert!(refused.contains("requests_per_second_per_run"), "{refused}");
}

#[test]
fn a_call_that_is_sent_again_under_its_request_id_is_done_once_also_when_it_ended_the_run() {
    let fleet = Fleet::boot();
    let worker = Worker::hold(&fleet, &[]);
    let door = worker.door();
    let note = || called(&door.with("x-request-id", "a-note"), "kanban_comment", &json!({"body": "once"}));
    let first = note();

    assert_eq!(note(), first);

    assert_eq!(fleet.show(&worker.task)["comments"].as_array().unwrap().len(), 1);
    let verdict = |door: &Http| {
        called(&door.with("x-request-id", "verdict"), "kanban_complete", &json!({"summary": "all good"}))
    };
    let done = verdict(&door);
    assert_eq!(done["isError"], json!(false), "{done}");
    worker.go();
    fleet.wait_for(&worker.task, "done");
    assert_eq!(verdict(&worker.door()), done, "also when the run has ended");
    let late = called(&worker.door(), "kanban_comment", &json!({"body": "late"}));
    assert!(text(&late).contains("the run has ended"), "{late}");
}

#[test]
fn an_operator_has_the_tools_of_all_scopes_over_http() {
    let fleet = Fleet::boot();
    let door = operator(&fleet);
    let listed = names(&asked(&door, "tools/list", &json!({}))["result"]);
    assert!(listed.contains(&"kanban_assign".to_owned()) && listed.len() == 23, "{listed:?}");
    let made = called(&door, "kanban_create", &json!({"title": "x", "triage": true}));
    assert_eq!(made["structuredContent"]["status"], json!("triage"), "{made}");
}
