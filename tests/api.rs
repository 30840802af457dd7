//! The API on the operator's socket, as any HTTP client sees it.

use serde_json::json;

use crate::harness::Fleet;
use crate::http::Http;

/// The operator's door. Where workers share the operator's uid it asks for the key.
fn operator(fleet: &Fleet) -> Http {
    let key = std::fs::read_to_string(fleet.root().join("operator.key")).unwrap();
    Http::at(fleet.root().join("run/supervisor.sock")).with("x-supervisor-key", &key)
}

#[test]
fn a_task_that_is_posted_is_found_under_its_id_and_on_the_board() {
    let fleet = Fleet::boot();
    let api = operator(&fleet);

    let created = api.post("/api/v1/tasks", &json!({"title": "look", "body": "x"})).json(201);

    let id = created["id"].as_str().unwrap();
    assert_eq!(api.get(&format!("/api/v1/tasks/{id}")).json(200)["task"]["title"], "look");
    let board = api.get("/api/v1/board").json(200);
    let column = board["columns"].as_array().unwrap().iter().find(|column| column["name"] == "ready");
    assert_eq!(column.unwrap()["tasks"][0]["id"], id, "{board:#}");
}
